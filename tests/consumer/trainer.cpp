// The trainer and the views of networks, from an installed attmirror: a mistake in a configuration is found.
#include <attmirror/base/error.hpp>
#include <attmirror/deep/token_score.hpp>
#include <attmirror/deep/train_config.hpp>

#include <cstdio>

int main() {
  try {
    attmirror::parse_train_config("[model]\nwidht = 3\n", "mine.toml", ".");
  } catch (const attmirror::Error& error) {
    std::printf("%s\n", error.what());
    return error.kind() == attmirror::ErrorKind::bad_input ? 0 : 1;
  }
  return 1;
}

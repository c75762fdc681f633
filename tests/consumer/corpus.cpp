// A user's program with attmirror::corpus: a text becomes ids.
#include <attmirror/deep/tokenize.hpp>

#include <cstdio>

int main() {
  using namespace attmirror;
  const WordPiece wordpiece({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "film", "##s"});
  const TokenSet tokens = make_token_set({{"Good films"}, {1}}, wordpiece, 8);
  std::printf("%lld ids, %s\n", static_cast<long long>(tokens.ids.size()), unicode_version().c_str());
  return tokens.ids == std::vector<std::int32_t>{2, 4, 5, 6, 3} ? 0 : 1;
}

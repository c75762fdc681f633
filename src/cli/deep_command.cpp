#include "cli/deep_command.hpp"

#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace attmirror::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* program = "attmirror-deep";

// Beside the file that runs, and not beside the name it was called by, which may be a link.
fs::path deep_program() {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  if (error)
    throw environment_error(fmt::format("cannot read /proc/self/exe, beside which {} is looked for: {}",
                                        program, error.message()));
  return own.parent_path() / program;
}

}  // namespace

void hand_over_to_deep(std::span<char* const> words) {
  const auto word = std::ranges::find_if(words, [](std::string_view text) { return !text.starts_with('-'); });
  if (word == words.end() || std::string_view(*word) != "deep") return;
  const fs::path path = deep_program();
  std::error_code error;
  if (!fs::exists(path, error))
    throw bad_input(
        fmt::format("attmirror deep is the program {}, which is not in {}: it is built where LibTorch "
                    "(libtorch-dev) is found, and reads texts where ICU (libicu-dev) is, too",
                    program, path.parent_path().string()));
  std::string name = path.string();
  std::vector<char*> arguments{name.data()};
  for (auto other = words.begin(); other != words.end(); ++other)
    if (other != word) arguments.push_back(*other);
  arguments.push_back(nullptr);
  // LibTorch's threads wait for their next loop by spinning, which takes the cores from all others (ours, another
  // training). It reads this when it is loaded, so this is the last moment to say that they should sleep.
  ::setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0);
  ::execv(name.c_str(), arguments.data());
  throw environment_error(fmt::format("cannot run {}: {}", name, std::strerror(errno)));
}

Subcommand add_deep(CLI::App& parent) {
  struct Options {
    CommonOptions common;
    std::string subcommand;
    std::vector<std::string> arguments;
  };
  auto options = std::make_shared<Options>();
  CLI::App& app =
      *parent.add_subcommand("deep", "train transformers on LibTorch and show what they attend to");
  app.add_option("subcommand", options->subcommand, "what to do; attmirror deep --help says more")
      ->type_name("attention-map|histogram|report|score|tokenize|train");
  app.add_option("arguments", options->arguments, "the options and files of the subcommand")
      ->type_name("FILE");
  add_common_options(app, options->common);
  app.footer("Example:\n  attmirror deep train sst2.toml -o run/");
  // Only words that hand_over_to_deep() did not see come here, and there are none.
  return {&app, &options->common,
          []() -> int { throw bad_input("deep is the first word of its command line"); }};
}

}  // namespace attmirror::cli

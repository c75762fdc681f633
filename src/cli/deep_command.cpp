#include "cli/deep_command.hpp"

#include "cli/console.hpp"
#include "cli/deep/deep_subcommands.hpp"
#include "cli/help.hpp"
#include "cli/screen.hpp"
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

bool is_built() {
  std::error_code error;
  return fs::exists(deep_program(), error);
}

std::string missing_text() {
  return fmt::format(
      "attmirror deep is the program {}, which is not in {}: install LibTorch (libtorch-dev) and, for texts, ICU "
      "(libicu-dev), then configure and build attmirror again",
      program, deep_program().parent_path().string());
}

// Where the program is missing and its help is asked for: said in --help, and not in man pages, which may be
// read on another machine.
bool tells_what_is_missing = false;

auto find_deep(std::span<char* const> words) {
  return std::ranges::find(words, std::string_view("deep"),
                           [](const char* word) { return std::string_view(word); });
}

// `deep --help`, `deep train -h`, `deep help train`.
bool asks_for_help(std::span<char* const> words) {
  const auto is_help = [](std::string_view word) { return word == "--help" || word == "-h"; };
  return std::ranges::any_of(words, is_help) ||
         first_word(std::span(find_deep(words) + 1, words.end())) == "help";
}

}  // namespace

void hand_over_to_deep(std::span<char* const> words) {
  if (first_word(words) != "deep") return;
  const auto word = find_deep(words);
  if (!is_built()) {
    if (!asks_for_help(words)) throw bad_input(missing_text());
    tells_what_is_missing = true;
    return;
  }
  const fs::path path = deep_program();
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
  std::string names, list;
  for (const DeepSubcommand& one : deep_subcommands) {
    names += fmt::format("{}{}", names.empty() ? "" : "|", one.name);
    list += fmt::format("  {:<15} {}\n", one.name, one.description);
  }
  app.add_option("subcommand", options->subcommand, "one of the subcommands below")->type_name(names);
  app.add_option("arguments", options->arguments, "the options and files of the subcommand")
      ->type_name("FILE");
  add_common_options(app, options->common);
  app.footer(fmt::format(
      "Subcommands of attmirror deep:\n{}\n{}Example:\n  attmirror deep train sst2.toml -o run/", list,
      tells_what_is_missing
          ? fmt::format("Not available here:\n{}\n", wrapped(missing_text() + ".", "  ", 80))
          : "attmirror deep SUBCOMMAND --help lists the options of a subcommand.\n\n"));
  // With the program nothing comes here, and without it `deep help train` alone.
  return {&app, &options->common, [options, &app] {
            print(help_text(app));
            return static_cast<int>(done);
          }};
}

}  // namespace attmirror::cli

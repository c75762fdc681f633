// What every command of ours does around its subcommands: read the words, answer --help and --version, run the chosen
// subcommand, and turn whatever happened into one sentence and an exit code. `attmirror` and `attmirror deep` are two
// programs (LibTorch takes half a second to load) and should be indistinguishable in all of this.
#pragma once

#include "cli/options.hpp"
#include <attmirror/base/error.hpp>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror::cli {

struct CommandLine {
  std::string name;  // as users type it: "attmirror", "attmirror deep"
  std::string description;
  std::string example;  // at the end of --help
  std::function<std::vector<Subcommand>(CLI::App&)> subcommands;
  // Sees the words before anything else does, and may end the program or replace it. Empty: nobody does.
  std::function<void(std::span<char* const> words)> before_parsing = {};
  // How messages spell the fields of options.
  FieldSpelling spelling;
};

// For std::set_terminate(), at the beginning of main(): a lack of memory ends the program with a sentence and exit
// code 3 wherever it strikes.
[[noreturn]] void end_without_memory();

// The whole of main(): nothing is thrown out of it.
int run_command_line(CommandLine line, int argc, char** argv);

}  // namespace attmirror::cli

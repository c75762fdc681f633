// attmirror help: `help train` is `train --help`, whoever answers it, and `help environment` lists the
// variables.
#pragma once

#include "cli/options.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror::cli {

// The words of a command line with `help WORDS` turned into `WORDS --help`, which the subcommand itself
// answers, in another program, too. Other words come back as they are.
std::vector<std::string> with_help_as_option(std::span<char* const> words);

// The first word that is not an option, a subcommand; empty if there is none.
std::string_view first_word(std::span<char* const> words);

// For --help, completion and man pages. Call it after all other subcommands are there.
Subcommand add_help(CLI::App& parent);

}  // namespace attmirror::cli

// attmirror deep: the subcommands that need LibTorch, in a program of their own.
//
// Loading LibTorch takes half a second, and many machines do not have it. So what needs it is the program
// attmirror-deep, which lies beside this one; `attmirror deep ...` is replaced by it, with every word passed on as
// it came.
#pragma once

#include "cli/options.hpp"

#include <span>
#include <string_view>

namespace attmirror::cli {

// Where the words call for `deep`, does not come back. Where attmirror-deep was not built it comes back for
// --help, which says what is missing, and throws Error (bad input) for anything else.
void hand_over_to_deep(std::span<char* const> words);

// For --help and the completion of shells; the work is done by the above.
Subcommand add_deep(CLI::App& parent);

}  // namespace attmirror::cli

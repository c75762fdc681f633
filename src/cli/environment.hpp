// The environment variables that attmirror reads, each with a sentence: for `attmirror help environment` and
// the man pages. A test holds them against the sources.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace attmirror::cli {

using NamedTexts =
    std::vector<std::pair<std::string, std::string>>;  // a name, and what there is to say about it

NamedTexts common_environment();  // of every subcommand
NamedTexts sweep_environment();   // of `attmirror sweep` under mpirun
NamedTexts deep_environment();    // of `attmirror deep`

// All of them, as `attmirror help environment` prints them.
std::string environment_help();

}  // namespace attmirror::cli

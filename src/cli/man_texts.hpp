// What a man page says beyond --help: what a subcommand is for, which files and variables of the environment it uses.
#pragma once

#include "cli/environment.hpp"

#include <string>
#include <vector>

namespace attmirror::cli {

struct ManText {
  std::string command;      // as users type it: "attmirror train"
  std::string description;  // paragraphs, with an empty line between them
  NamedTexts files = {};
  NamedTexts environment = {};             // besides what every subcommand heeds
  std::vector<std::string> see_also = {};  // pages: "attmirror-margin"
  std::string summary = {};                // after the name; empty: what --help calls it
};

// The text of a command; one with nothing but its name where nobody has written more, and then the page has what
// --help has.
ManText man_text(const std::string& command);

}  // namespace attmirror::cli

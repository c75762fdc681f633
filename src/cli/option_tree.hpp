// The subcommands and options of a command as plain data, read from the tree by which CLI11 parses the command line.
// Completion scripts and man pages are written from it, so that they cannot fall behind --help.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace attmirror::cli {

// An option, or an argument without dashes.
struct OptionInfo {
  std::vector<std::string> names;  // "-o", "--output"; the name of an argument, "data"
  std::string type;                // what follows: "FILE", "md|gd"; empty for a flag
  std::string description;
  std::string default_text;          // empty: none
  std::string group;                 // its heading in --help
  std::vector<std::string> choices;  // "md", "gd"; "normal:" where something of the user's follows
  bool takes_value = false;
  // A file or a folder, as it is; after the choices "file:" and "run:" one follows, too.
  bool takes_file = false;
  bool required = false, repeats = false;
};

struct CommandInfo {
  std::string name;  // "train"; the root's is what users type, "attmirror" or "attmirror deep"
  std::string description;
  std::string footer;               // what --help ends with: notes and examples
  std::vector<std::string> groups;  // the headings, in the order of --help
  std::vector<OptionInfo> options, arguments;
  std::vector<CommandInfo> subcommands;
  bool hidden = false;  // not listed by --help
};

CommandInfo option_tree(const CLI::App& app);

}  // namespace attmirror::cli

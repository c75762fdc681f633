// The subcommands of `attmirror deep` by name, for the program that has them and for --help of an attmirror
// that was built without it.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace attmirror::cli {

struct DeepSubcommand {
  std::string_view name, description;
};

inline constexpr std::array deep_subcommands{
    DeepSubcommand{"train", "train the transformer that a TOML file describes"},
    DeepSubcommand{"tokenize", "turn texts into token ids by WordPiece"},
    DeepSubcommand{"attention-map", "show what networks attend to in texts or images"},
    DeepSubcommand{"score",
                   "measure how often attention selects the word that decides a review (P1's score)"},
    DeepSubcommand{"histogram", "show how the weights of K, Q and V are distributed"},
    DeepSubcommand{"report", "make one page of trainings: curves and tables of trials"},
};

constexpr const DeepSubcommand* find_deep_subcommand(std::string_view name) {
  for (const DeepSubcommand& one : deep_subcommands)
    if (one.name == name) return &one;
  return nullptr;
}

// Does not compile for a name that is none.
template <std::size_t n>
consteval std::string_view deep_description(const char (&name)[n]) {
  const DeepSubcommand* found = find_deep_subcommand(std::string_view(name, n - 1));
  if (found == nullptr) throw "no subcommand of attmirror deep";
  return found->description;
}

}  // namespace attmirror::cli

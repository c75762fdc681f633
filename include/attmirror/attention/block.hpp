// The name of a block of weights. An attention layer has the blocks W, K, Q, p and v; a model of your own names its
// blocks as it likes. Runs store blocks under these names, so a name must be usable as an array name in a file.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace attmirror {

// The name of a block of weights. Those of attention are constants; other models have names of their own.
class Block {
 public:
  static constexpr std::size_t max_length = 31;

  // A letter, then letters, digits and underscores, at most 31 characters in all; none of the words that run
  // folders use for other arrays (`step`, `loss`, `selected`, ...). Throws Error (bad input) for anything
  // else. A string literal converts by itself: parameters.matrix("U"); parse other text with Block(text).
  constexpr Block(const char* name) : Block(std::string_view(name)) {}
  constexpr explicit Block(std::string_view name) {
    if (!is_name(name)) refuse(name);
    std::ranges::copy(name, text_.begin());
    text_[max_length] = static_cast<char>(name.size());
  }

  static constexpr bool is_name(std::string_view text);

  // The blocks of an attention layer.
  static const Block W, K, Q, p, v;

  constexpr std::string_view name() const {
    return {text_.data(), static_cast<std::size_t>(text_[max_length])};
  }

  friend constexpr bool operator==(const Block& a, const Block& b) {
    if (std::is_constant_evaluated()) return a.text_ == b.text_;
    return std::memcmp(a.text_.data(), b.text_.data(), a.text_.size()) == 0;
  }
  friend constexpr std::strong_ordering operator<=>(const Block& a, const Block& b) {
    return a.name() <=> b.name();
  }

 private:
  [[noreturn]] static void refuse(std::string_view name);

  // Padded with zeros, with the length at the end: names are equal if all 32 bytes are.
  std::array<char, max_length + 1> text_{};
};

constexpr bool Block::is_name(std::string_view text) {
  // The other arrays of run folders and checkpoints.
  constexpr std::array<std::string_view, 10> reserved{
      "format", "format_version", "step",        "loss",      "max_softmax",
      "norm",   "selected",       "key_weights", "scheduled", "kept"};
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_inner = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  return !text.empty() && text.size() <= max_length && is_letter(text.front()) &&
         std::ranges::all_of(text, is_inner) && !text.starts_with("fixed_") &&
         std::ranges::find(reserved, text) == reserved.end();
}

inline constexpr Block Block::W{"W"}, Block::K{"K"}, Block::Q{"Q"}, Block::p{"p"}, Block::v{"v"};

// The blocks of attention, in the order in which files have them.
inline constexpr std::array attention_blocks{Block::W, Block::K, Block::Q, Block::p, Block::v};

constexpr std::string_view to_string(const Block& block) { return block.name(); }

// One of the blocks of an attention layer; throws Error (bad input) for other names.
Block parse_block(std::string_view name);

}  // namespace attmirror

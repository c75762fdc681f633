#include "base/words.hpp"
#include <attmirror/attention/block.hpp>
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace attmirror {

void Block::refuse(std::string_view name) {
  throw bad_input(fmt::format(
      "\"{}\" cannot be the name of a block: expected a letter, then letters, digits and underscores, at most {} "
      "characters, and not a word that run folders use themselves, such as step, loss, selected or fixed_...",
      name, max_length));
}

Block parse_block(std::string_view name) {
  const auto found = std::ranges::find(attention_blocks, name, &Block::name);
  if (found != attention_blocks.end()) return *found;
  std::vector<std::string_view> names;
  for (const Block& block : attention_blocks) names.push_back(block.name());
  throw bad_input(fmt::format("block is \"{}\": expected {}", name, expected_choice(name, names)));
}

}  // namespace attmirror

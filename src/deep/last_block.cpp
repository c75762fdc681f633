#include <attmirror/base/error.hpp>
#include <attmirror/deep/last_block.hpp>

#include <fmt/format.h>

namespace attmirror::torch {

std::string_view to_string(LastBlock last_block) {
  switch (last_block) {
    case LastBlock::first_token:
      return "first_token";
    case LastBlock::all_tokens:
      return "all_tokens";
  }
  return "unknown";
}

LastBlock last_block(std::string_view text) {
  for (const LastBlock value : {LastBlock::first_token, LastBlock::all_tokens})
    if (to_string(value) == text) return value;
  throw bad_input(fmt::format("last_block is \"{}\": expected first_token or all_tokens", text));
}

}  // namespace attmirror::torch

// A classifier that answers from one token needs of its last block that token alone: keys and values of all tokens, but
// queries, and all that follows them, of the first. The answer and every gradient stay the same.
#pragma once

#include <string_view>

namespace attmirror::torch {

enum class LastBlock { first_token, all_tokens };
std::string_view to_string(LastBlock last_block);
LastBlock last_block(std::string_view text);  // throws Error (bad input)

}  // namespace attmirror::torch

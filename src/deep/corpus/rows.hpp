// Which rows of a set are used, and how much of each. Internal.
#pragma once

#include <attmirror/deep/token_set.hpp>

#include <cstdint>
#include <vector>

namespace attmirror {

// `limit` of 0..rows-1, evenly spaced: where a file is sorted by label, all labels keep their share. 0: all.
std::vector<std::int64_t> limited_rows(std::int64_t rows, std::int64_t limit);

// Rows cut to `length` ids: a token file may hold longer ones than a network has places.
TokenSet shortened(TokenSet tokens, std::int64_t length);

}  // namespace attmirror

// Batches of texts from a TokenSet: the rows asked for, end to end.
#pragma once

#include <attmirror/deep/network.hpp>
#include <attmirror/deep/token_set.hpp>

#include <optional>
#include <span>

namespace attmirror::deep {

// `first_sample` is the place of the first row here in the batch that all processes share. On the CPU; in page-locked
// memory where there is a GPU to send it to.
//
// `row_multiple` above 1: filler is added, a sequence of 1 to `row_multiple` rows that nothing depends on, so that all
// rows are a multiple of it. A GPU's library of matrix products looks for the best kernel whenever it meets a
// new number of rows, which takes it as long as the product; and every batch of texts has another number. In
// multiples of 256 there are a few dozen, and 1 row in 200 is filler.
Batch pack(const TokenSet& tokens, std::span<const std::int64_t> rows,
           std::optional<DropoutPlace> dropout = {}, std::int64_t first_sample = 0,
           std::int64_t row_multiple = 1);

}  // namespace attmirror::deep

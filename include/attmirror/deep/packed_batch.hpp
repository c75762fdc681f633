// Batches of texts from a TokenSet: the requested rows, end to end.
#pragma once

#include <attmirror/deep/network.hpp>
#include <attmirror/deep/token_set.hpp>

#include <optional>
#include <span>

namespace attmirror::deep {

// `first_sample` is the position of the first row within the batch that all processes share. The batch is on
// the CPU, in page-locked memory if there is a GPU to send it to.
//
// If `row_multiple` is above 1, filler is added: a sequence of 1 to `row_multiple` rows that nothing depends on, so
// that the number of rows is a multiple of it. A GPU's matrix-product library searches for the best kernel whenever
// it meets a new number of rows, which takes as long as the product, and every batch of texts has a different
// number. With multiples of 256 there are a few dozen, and 1 row in 200 is filler.
Batch pack(const TokenSet& tokens, std::span<const std::int64_t> rows,
           std::optional<DropoutPlace> dropout = {}, std::int64_t first_sample = 0,
           std::int64_t row_multiple = 1);

}  // namespace attmirror::deep

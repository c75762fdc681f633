// Batches of texts from a TokenSet: the rows asked for, end to end.
#pragma once

#include <attmirror/deep/network.hpp>
#include <attmirror/deep/token_set.hpp>

#include <optional>
#include <span>

namespace attmirror::torch {

// `first_sample` is the place of the first row here in the batch that all processes share. On the CPU; in page-locked memory where there is a GPU to send it to.
Batch pack(const TokenSet& tokens, std::span<const std::int64_t> rows,
           std::optional<DropoutPlace> dropout = {}, std::int64_t first_sample = 0);

}  // namespace attmirror::torch

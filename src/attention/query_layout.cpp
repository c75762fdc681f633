#include "attention/query_layout.hpp"

#include "attention/block_kernels.hpp"

#include <algorithm>
#include <numeric>

namespace attmirror {

using kernels::padded_tokens;

namespace {

// A block's tokens should stay in the second-level cache between the two times that they are used.
constexpr std::ptrdiff_t block_doubles = 32 * 1024;
// A chunk is worth a thread's attention from about this much work; more chunks than this buy nothing.
constexpr std::ptrdiff_t chunk_doubles = 128 * 1024;
constexpr std::ptrdiff_t max_chunks = 32;
// Each chunk has a gradient of its own to clear and to add. Streams wait for memory, which fewer threads exhaust.
constexpr std::ptrdiff_t max_streams = 16;

// Streams are faster where the data exceed a second-level cache, a row has a few vectors (one alone waits for its own
// sums), and a query has enough to do (T d^2 multiplications, roughly) beside what is done once for each: by 1.5 to 2.5
// times from n = 32768, T = 8, d = 32 to n = 4096, T = 128, d = 128. At T = d = 16 they are slower by a tenth, at
// d = 10 by a third (bench/large_data_bench.cpp).
constexpr std::ptrdiff_t least_stream_doubles = 128 * 1024;
constexpr std::ptrdiff_t least_stream_row = 16;
constexpr std::ptrdiff_t least_stream_work = 8 * 1024;

DataPath choose_path(const Dataset& data) {
  const std::ptrdiff_t row = padded(data.dim()), size = data.total_tokens() * row;
  const bool streams = size >= least_stream_doubles && row >= least_stream_row &&
                       size / data.samples() * row >= least_stream_work;
  return streams ? DataPath::stream : DataPath::block;
}

}  // namespace

QueryLayout::QueryLayout(const Attention& model, DataPath wanted)
    : path(wanted == DataPath::automatic ? choose_path(model.data()) : wanted) {
  place_queries(model.data());
  const std::ptrdiff_t stride = padded(model.data().dim());
  if (path == DataPath::stream)
    divide_into_streams(stride);
  else
    divide_into_blocks(stride);
}

void QueryLayout::place_queries(const Dataset& data) {
  const std::ptrdiff_t N = data.total_queries();
  score_places.push_back(0);
  for (std::ptrdiff_t j = 0; j < N; ++j) {
    token_rows.push_back(data.offset(data.sequence_of(j)));
    lengths.push_back(data.attended_length(j));
    score_places.push_back(score_places.back() + padded_tokens(lengths.back()));
  }
  if (data.mask() != Mask::custom) return;
  mask.assign(static_cast<std::size_t>(score_places.back()), 0);
  for (std::ptrdiff_t j = 0; j < N; ++j)
    std::ranges::copy(data.mask_row(j), mask.begin() + score_places[static_cast<std::size_t>(j)]);
}

// Blocks by size of what their queries attend to, then chunks of whole blocks by total size.
void QueryLayout::divide_into_blocks(std::ptrdiff_t stride) {
  std::ptrdiff_t rows = 0, total_rows = 0;
  block_starts.push_back(0);
  for (std::size_t j = 0; j < lengths.size(); ++j) {
    rows += lengths[j];
    total_rows += lengths[j];
    const bool last = j + 1 == lengths.size();
    if (last || (rows + lengths[j + 1]) * stride > block_doubles) {
      block_starts.push_back(static_cast<std::ptrdiff_t>(j) + 1);
      rows = 0;
    }
  }
  const auto blocks = static_cast<std::ptrdiff_t>(block_starts.size()) - 1;
  const std::ptrdiff_t count =
      std::clamp<std::ptrdiff_t>(total_rows * stride / chunk_doubles, 1, std::min(max_chunks, blocks));
  for (std::ptrdiff_t c = 0; c <= count; ++c) chunk_starts.push_back(blocks * c / count);

  for (std::size_t b = 0; b + 1 < block_starts.size(); ++b) {
    const auto first = static_cast<std::size_t>(block_starts[b]),
               last = static_cast<std::size_t>(block_starts[b + 1]);
    scratch_queries = std::max(scratch_queries, padded_tokens(block_starts[b + 1] - block_starts[b]));
    scratch_tokens = std::max(scratch_tokens, score_places[last] - score_places[first]);
  }
}

// A stream is a whole chunk: its kernel reads ahead from one query to the next. Chunks have equal shares of what is
// attended to, and no more of them than keep the sums of d x d numbers that each has a sixteenth of its tokens.
void QueryLayout::divide_into_streams(std::ptrdiff_t stride) {
  const auto N = static_cast<std::ptrdiff_t>(lengths.size());
  const std::ptrdiff_t total_rows = std::accumulate(lengths.begin(), lengths.end(), std::ptrdiff_t{0});
  const std::ptrdiff_t count = std::clamp<std::ptrdiff_t>(
      std::min(total_rows * stride / chunk_doubles, total_rows / (16 * stride)), 1, std::min(max_streams, N));
  block_starts.push_back(0);
  std::ptrdiff_t rows = 0;
  for (std::ptrdiff_t j = 0; j < N; ++j) {
    rows += lengths[static_cast<std::size_t>(j)];
    const auto done = static_cast<std::ptrdiff_t>(block_starts.size());
    if (done < count && rows >= total_rows / count * done) block_starts.push_back(j + 1);
    scratch_tokens = std::max(scratch_tokens, padded_tokens(lengths[static_cast<std::size_t>(j)]));
  }
  if (block_starts.back() != N) block_starts.push_back(N);
  for (std::size_t c = 0; c < block_starts.size(); ++c)
    chunk_starts.push_back(static_cast<std::ptrdiff_t>(c));
  scratch_queries = kernels::stream_batch + padded_tokens(1);
}

}  // namespace attmirror

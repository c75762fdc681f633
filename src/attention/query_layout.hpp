// How the queries of a dataset are laid out for the kernels and divided among threads.
//
// Both are matters of shape alone, never of the number of threads: results have the same bits for any number.
#pragma once

#include <attmirror/attention/gradient.hpp>

#include <cstdint>
#include <vector>

namespace attmirror {

struct QueryLayout {
  QueryLayout(const Attention& model, DataPath wanted);

  DataPath path = DataPath::block;  // block or stream, as wanted or by shape

  // By query: the first token it attends to, how many, and its place in padded arrays with a number for each (one entry
  // more, the total). Then a custom mask in that layout, else empty.
  std::vector<std::ptrdiff_t> token_rows, lengths, score_places;
  std::vector<std::uint8_t> mask;

  // A kernel is called for the queries [block_starts[b], block_starts[b+1]). Chunk c works off the blocks
  // [chunk_starts[c], chunk_starts[c+1]).
  std::vector<std::ptrdiff_t> block_starts, chunk_starts;
  std::ptrdiff_t chunks() const { return static_cast<std::ptrdiff_t>(chunk_starts.size()) - 1; }

  // What the kernels keep at a time: queries, and numbers per token.
  std::ptrdiff_t scratch_queries = 0, scratch_tokens = 0;

 private:
  void place_queries(const Dataset& data);
  void divide_into_blocks(std::ptrdiff_t stride);
  void divide_into_streams(std::ptrdiff_t stride);
};

}  // namespace attmirror

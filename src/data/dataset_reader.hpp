// A data set in an .npz file or in arrays of the same names, in two steps: all but the tokens and the queries, which
// are what makes a file large, is read and checked at once; they are then either put where a Dataset keeps them, or
// looked through and forgotten. Internal.
#pragma once

#include "data/npz_reader.hpp"
#include <attmirror/data/dataset.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace attmirror {

inline constexpr std::int64_t dataset_format_version = 1;

// How the tokens lie in X.
enum class TokenLayout {
  box,     // (n, T, d)
  padded,  // (n, T, d) with lengths: rows of X that are no tokens
  ragged,  // (sum of lengths, d) with lengths
};

std::string_view to_string(TokenLayout layout);

class DatasetReader {
 public:
  // Throws Error (bad input) where the arrays do not fit, naming the array but not the file. The file, or the
  // arrays, must outlive the reader.
  explicit DatasetReader(const NpzReader& file);
  explicit DatasetReader(const NamedArrays& arrays);
  ~DatasetReader();
  DatasetReader(const DatasetReader&) = delete;
  DatasetReader& operator=(const DatasetReader&) = delete;

  // The data without their tokens and queries: sizes, lengths, labels, mask and heads are there, the matrices
  // all_tokens() and queries() have no rows, and fingerprint() is 0.
  const Dataset& frame() const;

  TokenLayout layout() const;
  const Shape& tokens_shape() const;  // of X, as the file has it

  // Reads the rest. Takes the memory of the Dataset and a piece.
  Dataset load() &&;

  // Reads the rest, checks it and returns the fingerprint of the data. `use` sees the tokens in their order: some rows,
  // and the number of the first among all_tokens(). Takes the memory of a piece, and of the queries where they are
  // tokens (query_index).
  using UseRows = std::function<void(std::ptrdiff_t first, ConstMatrixView rows)>;
  std::uint64_t look_through(const UseRows& use) const;

 private:
  struct State;
  void read_frame();
  std::unique_ptr<State> state_;
};

}  // namespace attmirror

// The tokens with the best scores, found while the tokens go by. Internal.
#pragma once

#include "base/numbers.hpp"
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/selection.hpp>

#include <cstdint>
#include <vector>

namespace attmirror {

// For each query the first token with the largest score Y_j v^T x_t among those that it may attend to. The rows of
// tokens come in order and in pieces of any size; a row's score does not depend on the rows beside it as long as pieces
// begin at multiples of eight rows of the data, or of a sequence. The data need not hold their tokens (DatasetReader).
class OptimalTokens {
 public:
  OptimalTokens(const Dataset& data, const Vector& v)
      : data_(data),
        v_(v),
        best_(static_cast<std::size_t>(data.total_queries()), -infinity),
        tokens_(static_cast<std::size_t>(data.total_queries()), 0) {}

  // The rows first, first + 1, ... of all tokens.
  void add(std::ptrdiff_t first, ConstMatrixView rows) {
    scores_.noalias() = rows.eigen() * v_;
    for (std::ptrdiff_t row = 0; row < rows.rows; ++row) {
      while (first + row >= data_.offset(sequence_ + 1)) ++sequence_;
      const std::ptrdiff_t t = first + row - data_.offset(sequence_);
      for (std::ptrdiff_t j = data_.first_query(sequence_); j < data_.first_query(sequence_ + 1); ++j) {
        const auto query = static_cast<std::size_t>(j);
        const double score = data_.labels()[query] * scores_[row];
        if (!(score > best_[query]) || !data_.allows(j, t)) continue;
        best_[query] = score;
        tokens_[query] = t;
      }
    }
  }

  // After all rows.
  Selection selection() const { return {tokens_}; }

 private:
  const Dataset& data_;
  Vector v_, scores_;
  std::vector<double> best_;
  std::vector<std::int64_t> tokens_;
  std::ptrdiff_t sequence_ = 0;
};

}  // namespace attmirror

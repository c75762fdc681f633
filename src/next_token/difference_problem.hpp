// Every max-margin problem of next-token prediction is about differences of scores. Internal.
//
//   min ||W||   s.t.   (l_i - l_j)^T W z_g >= 1  or  = 0     for the differences (i, j) of each group g
//
// A group is a token that looks (the query of W_kq, the token whose successor W_ov predicts) and z_g is its
// embedding. The left vectors l are the embeddings again for W_kq and the unit vectors of R^|V| for W_ov. The
// differences are three numbers each; the dense vectors l_i - l_j, of which 2,000 tokens would have gigabytes, are
// formed only where a coupled problem needs them.
#pragma once

#include <attmirror/margin/constraints.hpp>
#include <attmirror/next_token/embedding.hpp>
#include <attmirror/next_token/sentences.hpp>

#include <cstddef>
#include <vector>

namespace attmirror {

// score(better) - score(worse) >= 1, or = 0.
struct Difference {
  Token better = 0, worse = 0;
  Relation relation = Relation::at_least;

  double bound() const { return relation == Relation::at_least ? 1 : 0; }
};

enum class LeftVectors {
  units,       // W has |V| rows: W_ov
  embeddings,  // W has d rows: W_kq
};

struct DifferenceProblem {
  struct Group {
    Token token = no_token;
    std::vector<Difference> differences;
  };

  const Embedding* embedding = nullptr;  // not owned
  LeftVectors left = LeftVectors::embeddings;
  std::vector<Group> groups;

  std::ptrdiff_t vocabulary_size() const { return embedding->vocabulary_size(); }
  std::ptrdiff_t rows() const { return left == LeftVectors::units ? vocabulary_size() : embedding->dim(); }
  std::ptrdiff_t cols() const { return embedding->dim(); }
  std::ptrdiff_t count() const;
};

// How many numbers the dense constraints may have: 2 GB, and as much again while they are copied.
constexpr std::ptrdiff_t max_dense_numbers = std::ptrdiff_t{1} << 28;

// The same problem with its vectors written out. An origin is (group's token, better, worse). Throws Error (bad input)
// beyond max_dense_numbers.
MarginConstraints dense_constraints(const DifferenceProblem& problem);

}  // namespace attmirror

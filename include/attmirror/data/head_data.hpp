// Data for heads that are not linear, on which attention keeps several tokens of a sequence (P3, section on
// nonlinear heads), with torch's generator in single precision, then widened to double.
#pragma once

#include <attmirror/data/dataset.hpp>

#include <cstdint>

namespace attmirror {

// For the ReLU head 1^T ReLU(V^T u): in this order V = randn(d, d) / Frobenius norm, tokens randn(n, T, d) with
// rows of norm 1, labels the sign of randn(n), queries randn(n, d) with rows of norm 1. There is no decoder; V is
// head_weights(). P3 skips data without a label of -1, which is left to the experiment.
struct ReluHeadData {
  std::int64_t samples = 3;  // n
  std::int64_t tokens = 4;   // T
  std::int64_t dim = 4;      // d; P3 has 4, 6, 8 and 10
  std::uint64_t seed = 1;    // of torch's generator; its lower 32 bits count

  void validate() const;  // throws Error (bad input) for sizes below 1 or that no memory holds
};

Dataset generate(const ReluHeadData& options);

// For the quadratic head v^T u - lambda |u|^2: the tokens of each sequence are orthonormal, and all labels +1. Then
// the best attention is known, sparsemax(gamma / (2 lambda)) for the scores gamma = X v.
//
// In this order v = randn(d) / norm, tokens from randn(n, T, d), queries randn(n, d) with rows of norm 1. P3 takes
// the left factor of torch's singular value decomposition of each sequence, whose choice of rotation and
// signs is the library's own and is not repeated here: ours are the rows in the order of Gram and Schmidt (the QR
// decomposition with positive diagonal), orthonormal in double precision.
struct OrthonormalData {
  std::int64_t samples = 3;  // n
  std::int64_t tokens = 4;   // T, at most d
  std::int64_t dim = 4;      // d; P3 has d = T
  std::uint64_t seed = 1;    // of torch's generator; its lower 32 bits count

  void validate() const;  // throws Error (bad input) for such sizes and for more tokens than dimensions
};

Dataset generate(const OrthonormalData& options);

}  // namespace attmirror

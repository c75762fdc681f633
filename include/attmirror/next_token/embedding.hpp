// The vectors of the tokens: row x of E in R^{|V| x d} is the embedding of token x.
//
// The theory of P4 is exact for orthonormal embeddings, where each query is a separate problem; its experiment
// suggests random ones, where queries share directions and convergence becomes visible in both stages.
#pragma once

#include <attmirror/base/matrix.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace attmirror {

// Where the vectors of words come from.
enum class EmbeddingKind {
  one_hot,      // E = I, d = |V|; products with E are free
  orthonormal,  // a random rotation of it: the first |V| rows of a Haar orthogonal matrix of size d >= |V|
  gaussian,     // rows uniform on the unit sphere of R^d, any d
  file,         // a .npy file of shape (|V|, d)
};
std::string_view to_string(EmbeddingKind kind);

// Which embedding to make, of which dimension, from which seed.
struct EmbeddingOptions {
  EmbeddingKind kind = EmbeddingKind::one_hot;
  std::ptrdiff_t dim = 0;        // 0: |V|; must be |V| for one-hot
  std::uint64_t seed = 0;        // of orthonormal and gaussian
  std::filesystem::path path{};  // of a file

  // Reads one-hot, orthonormal, gaussian or file:E.npy; throws Error (bad input).
  static EmbeddingOptions parse(std::string_view word);
  std::string to_string() const;  // what parse() reads
};

// One vector for each word of a vocabulary.
struct Embedding {
  EmbeddingKind kind = EmbeddingKind::one_hot;
  PaddedMatrix vectors;  // (|V|, d)

  std::ptrdiff_t vocabulary_size() const { return vectors.view().rows; }
  std::ptrdiff_t dim() const { return vectors.view().cols; }
  bool is_one_hot() const { return kind == EmbeddingKind::one_hot; }
  // max |E E^T - I|: 0 for one-hot, rounding for orthonormal rows.
  double orthonormality_error() const;
  std::uint64_t fingerprint() const;
};

// Throws Error (bad input) for an empty vocabulary, a dimension that does not fit the kind, a file whose
// shape does not fit or that has a number that is not finite, or a row of zeros.
Embedding make_embedding(std::ptrdiff_t vocabulary_size, const EmbeddingOptions& options);
Embedding given_embedding(const Matrix& vectors);  // the same checks as for a file

}  // namespace attmirror

#include "base/random.hpp"
#include "base/words.hpp"
#include "data/npy.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/fingerprint.hpp>
#include <attmirror/next_token/embedding.hpp>

#include <algorithm>
#include <cmath>

#include <Eigen/QR>
#include <fmt/format.h>

namespace attmirror {
namespace {

constexpr std::string_view file_prefix = "file:";

Matrix gaussian_matrix(std::ptrdiff_t rows, std::ptrdiff_t cols, std::uint64_t seed) {
  const CounterRandom random(seed, RandomStream::embedding);
  Matrix result(rows, cols);
  for (std::ptrdiff_t j = 0; j < result.size(); ++j)
    result.data()[j] = random.normal(static_cast<std::uint64_t>(j));
  return result;
}

// G = Q R with G of independent normals, d x |V|: rotating G by any U leaves its distribution, so it leaves that of Q
// where Q is a function of G alone. R with a positive diagonal makes it one (Stewart 1980); Householder's has either
// sign. The columns of Q are then the first |V| of a Haar matrix of size d.
Matrix orthonormal_rows(std::ptrdiff_t count, std::ptrdiff_t dim, std::uint64_t seed) {
  using Columns = Eigen::MatrixXd;
  const Eigen::HouseholderQR<Columns> qr(gaussian_matrix(count, dim, seed).transpose());
  Columns Q = qr.householderQ() * Columns::Identity(dim, count);
  for (std::ptrdiff_t x = 0; x < count; ++x)
    if (qr.matrixQR()(x, x) < 0) Q.col(x) = -Q.col(x);
  return Q.transpose();
}

Embedding checked(EmbeddingKind kind, const Matrix& vectors, std::string_view name) {
  if (vectors.rows() < 1 || vectors.cols() < 1)
    throw bad_input(fmt::format("{} has the shape ({}, {}): expected one row or more and one column or more",
                                name, vectors.rows(), vectors.cols()));
  for (std::ptrdiff_t x = 0; x < vectors.rows(); ++x) {
    for (std::ptrdiff_t j = 0; j < vectors.cols(); ++j)
      if (!std::isfinite(vectors(x, j)))
        throw bad_input(fmt::format("{}[{}, {}] is {}: expected a finite number", name, x, j, vectors(x, j)));
    if ((vectors.row(x).array() == 0).all())
      throw bad_input(fmt::format("{}: row {} is all zeros: expected a vector for each token", name, x));
  }
  return {.kind = kind, .vectors = PaddedMatrix(vectors)};
}

}  // namespace

std::string_view to_string(EmbeddingKind kind) {
  switch (kind) {
    case EmbeddingKind::one_hot:
      return "one-hot";
    case EmbeddingKind::orthonormal:
      return "orthonormal";
    case EmbeddingKind::gaussian:
      return "gaussian";
    case EmbeddingKind::file:
      return "file";
  }
  return "unnamed";
}

EmbeddingOptions EmbeddingOptions::parse(std::string_view word) {
  EmbeddingOptions options;
  using enum EmbeddingKind;
  for (const EmbeddingKind named : {one_hot, orthonormal, gaussian}) {
    if (word != attmirror::to_string(named)) continue;
    options.kind = named;
    return options;
  }
  if (!word.starts_with(file_prefix) || word.size() == file_prefix.size())
    throw bad_input(fmt::format("embedding is \"{}\": expected {}", word,
                                expected_choice(word, {"one-hot", "orthonormal", "gaussian", "file:E.npy"})));
  options.kind = file;
  options.path = word.substr(file_prefix.size());
  return options;
}

std::string EmbeddingOptions::to_string() const {
  if (kind == EmbeddingKind::file) return std::string(file_prefix) + path.string();
  return std::string(attmirror::to_string(kind));
}

Embedding make_embedding(std::ptrdiff_t vocabulary_size, const EmbeddingOptions& options) {
  const std::ptrdiff_t size = vocabulary_size;
  if (size < 1)
    throw bad_input(fmt::format("an embedding of {} tokens: expected a vocabulary of 1 or more", size));
  if (options.dim < 0)
    throw bad_input(
        fmt::format("dim is {}: expected 1 or more, or 0 for the size of the vocabulary", options.dim));
  if (options.kind == EmbeddingKind::file) {
    const std::string name = options.path.string();
    const Matrix vectors = to_matrix(load_npy(options.path), name);
    if (vectors.rows() != size)
      throw bad_input(fmt::format("{} has the shape ({}, {}): expected {} rows, one for each token", name,
                                  vectors.rows(), vectors.cols(), size));
    if (options.dim != 0 && vectors.cols() != options.dim)
      throw bad_input(fmt::format("{} has the shape ({}, {}): expected {} columns, as dim says", name,
                                  vectors.rows(), vectors.cols(), options.dim));
    return checked(options.kind, vectors, name);
  }
  const std::ptrdiff_t dim = options.dim == 0 ? size : options.dim;
  element_count({size, dim}, DType::float64, "the embedding");  // can it be addressed?
  switch (options.kind) {
    case EmbeddingKind::one_hot: {
      if (dim != size)
        throw bad_input(
            fmt::format("dim is {}: expected {}, the number of tokens, for a one-hot embedding", dim, size));
      Embedding result{.kind = options.kind, .vectors = PaddedMatrix(size, size)};
      result.vectors.view().eigen().diagonal().setOnes();
      return result;
    }
    case EmbeddingKind::orthonormal:
      if (dim < size)
        throw bad_input(fmt::format(
            "dim is {}: expected {} or more, the number of tokens, for orthonormal vectors", dim, size));
      return checked(options.kind, orthonormal_rows(size, dim, options.seed), "the embedding");
    case EmbeddingKind::gaussian: {
      Matrix vectors = gaussian_matrix(size, dim, options.seed);
      for (std::ptrdiff_t x = 0; x < size; ++x) vectors.row(x) /= vectors.row(x).norm();
      return checked(options.kind, vectors, "the embedding");
    }
    case EmbeddingKind::file:
      break;
  }
  throw bad_input(fmt::format("kind is {}: expected a kind of embedding", static_cast<int>(options.kind)));
}

Embedding given_embedding(const Matrix& vectors) {
  return checked(EmbeddingKind::file, vectors, "the embedding");
}

// E E^T in blocks of rows, the upper triangle only: a large vocabulary's whole product would be as large as E itself.
double Embedding::orthonormality_error() const {
  if (is_one_hot()) return 0;
  constexpr std::ptrdiff_t block = 128;
  const auto E = vectors.view().eigen();
  double largest = 0;
  Matrix products;
  for (std::ptrdiff_t begin = 0; begin < E.rows(); begin += block) {
    const std::ptrdiff_t rows = std::min(block, E.rows() - begin);
    products.noalias() = E.middleRows(begin, rows) * E.bottomRows(E.rows() - begin).transpose();
    products.diagonal().array() -= 1;
    largest = std::max(largest, products.cwiseAbs().maxCoeff());
  }
  return largest;
}

std::uint64_t Embedding::fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(std::string_view(to_string(kind)));
  fingerprint.add(vectors.view().eigen());
  return fingerprint.value();
}

}  // namespace attmirror

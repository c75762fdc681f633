// The parameters of one softmax-attention layer, and how their logits are formed:
//
//   W        a_i = X_i W z_i            W in R^{d x d}
//   KQ       a_i = X_i K Q^T z_i        K, Q in R^{d x m}
//   Prompt   a_i = X_i A^T p            p in R^d, A fixed (P2 writes W for A)
//
// and the decoder v of the linear head f_i = v^T X_i^T softmax(a_i). Other models have their own blocks, by name.
// `Parameters` is what users see: plain matrices under the papers' names. `ParameterBlocks` is what the training loop
// works on: the same numbers in padded, aligned memory, each matrix stored so that hot loops run along its rows.
#pragma once

#include <attmirror/attention/block.hpp>
#include <attmirror/base/matrix.hpp>

#include <cstddef>
#include <map>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace attmirror {

// `word` is what runs record.
struct W {
  static constexpr std::string_view word = "W";
};
// Keys and queries: logits X K Q^T z with K and Q of shape (d, rank).
struct KQ {
  static constexpr std::string_view word = "KQ";
  std::ptrdiff_t rank = 0;  // m; 0 means m = d, the papers' default
};
// A prompt: logits X A^T p with a trained vector p and fixed key weights A.
struct Prompt {
  static constexpr std::string_view word = "prompt";
  Matrix key_weights{};  // A; empty means the identity
};
// How the logits depend on the weights.
using Parameterization = std::variant<W, KQ, Prompt>;

std::string_view to_string(const Parameterization& parameterization);

// Blocks that a model does not have are empty or absent.
struct Parameters {
  Matrix W{}, K{}, Q{};
  Vector p{}, v{};
  // The blocks of other models, as in matrices["W_ov"].
  std::map<Block, Matrix> matrices{};
  std::map<Block, Vector> vectors{};

  bool has(const Block& block) const;

  // Any block, including those of attention. Throws Error (bad input) if it is missing or of the other kind.
  const Matrix& matrix(const Block& block) const&;
  const Vector& vector(const Block& block) const&;
  Matrix matrix(const Block& block) && { return std::as_const(*this).matrix(block); }
  Vector vector(const Block& block) && { return std::as_const(*this).vector(block); }
};

// The blocks that exist: W, K, Q, p and v first, then the others by name.
std::vector<Block> block_names(const Parameters& parameters);

// A block to write to, created if it is missing. Throws Error (bad input) if that name belongs to the other
// kind: W, K and Q are matrices, p and v are vectors.
Matrix& make_matrix(Parameters& parameters, const Block& block);
Vector& make_vector(Parameters& parameters, const Block& block);

// Whether a visitor was called with a vector.
template <class Values>
inline constexpr bool is_vector = std::is_same_v<std::remove_cvref_t<Values>, Vector>;

// The result of `visitor` for the Matrix or Vector that a block is, or for an empty Matrix if it is missing;
// the result must have one type for all of them.
template <class Visitor>
decltype(auto) visit_block(const Parameters& parameters, const Block& block, Visitor visitor) {
  if (block == Block::W) return visitor(parameters.W);
  if (block == Block::K) return visitor(parameters.K);
  if (block == Block::Q) return visitor(parameters.Q);
  if (block == Block::p) return visitor(parameters.p);
  if (block == Block::v) return visitor(parameters.v);
  if (const auto found = parameters.vectors.find(block); found != parameters.vectors.end())
    return visitor(found->second);
  static const Matrix none;
  const auto found = parameters.matrices.find(block);
  return visitor(found == parameters.matrices.end() ? none : found->second);
}

// Calls `visitor` with the name of each block that attention or `b` has, and with its value in `a` and in `b`.
template <class Visitor>
void visit_blocks(Parameters& a, const Parameters& b, Visitor visitor) {
  visitor(Block::W, a.W, b.W);
  visitor(Block::K, a.K, b.K);
  visitor(Block::Q, a.Q, b.Q);
  visitor(Block::p, a.p, b.p);
  visitor(Block::v, a.v, b.v);
  for (const auto& [name, values] : b.matrices)
    if (values.size() > 0) visitor(name, a.matrices[name], values);
  for (const auto& [name, values] : b.vectors)
    if (values.size() > 0) visitor(name, a.vectors[name], values);
}

// The combined weights W of a model's parameters: W itself, or K Q^T. Throws Error (bad input) for a prompt,
// which has none.
Matrix combined_weights(const Parameters& parameters);

// What to compare with a max-margin solution: the combined weights, or the prompt p as one column.
Matrix attention_weights(const Parameters& parameters);

// One block in the memory of the training loop. W and K are stored transposed (`transposed`), so that
// W z = sum_c z_c W[:,c] walks along rows. A vector is stored as one row.
struct BlockShape {
  Block name = Block::W;
  std::ptrdiff_t rows = 0, cols = 0;  // as stored
  bool transposed = false;
  bool is_vector = false;

  static BlockShape matrix(const Block& name, std::ptrdiff_t rows, std::ptrdiff_t cols) {
    return {name, rows, cols, false, false};
  }
  static BlockShape vector(const Block& name, std::ptrdiff_t size) { return {name, 1, size, false, true}; }
};

// Blocks of weights in padded, aligned memory, as the training loop reads and writes them.
class ParameterBlocks {
 public:
  ParameterBlocks() = default;
  // Throws Error (bad input) when two blocks have the same name, or when a block of attention is not of the
  // kind it must be.
  explicit ParameterBlocks(std::vector<BlockShape> shapes);

  std::ptrdiff_t count() const { return static_cast<std::ptrdiff_t>(shapes_.size()); }
  const BlockShape& shape(std::ptrdiff_t b) const { return shapes_[static_cast<std::size_t>(b)]; }
  MatrixView view(std::ptrdiff_t b);
  ConstMatrixView view(std::ptrdiff_t b) const;

  // The position of a block, or -1.
  std::ptrdiff_t find(const Block& name) const;

  // Copies from and to the paper's orientation. `assign` throws Error (bad input) when a shape does not fit
  // or a number is not finite.
  void assign(const Parameters& parameters);
  Parameters parameters() const;

 private:
  std::vector<BlockShape> shapes_;
  std::vector<std::ptrdiff_t> offsets_;
  AlignedVector values_;
};

}  // namespace attmirror

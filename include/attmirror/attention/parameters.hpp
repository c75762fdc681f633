// The parameters of one softmax-attention layer, and how their logits are formed:
//
//   W        a_i = X_i W z_i            W in R^{d x d}
//   KQ       a_i = X_i K Q^T z_i        K, Q in R^{d x m}
//   Prompt   a_i = X_i A^T p            p in R^d, A fixed (P2 writes W for A)
//
// and the decoder v of the linear head f_i = v^T X_i^T softmax(a_i). The model of room `next_token` has blocks of its own:
// W_kq in R^{d x d} for W, and W_ov in R^{|V| x d}, which turns what attention has gathered into the logits of the next
// token. `Parameters` is what users see: plain
// matrices by the paper's names. `ParameterBlocks` is what the training loop works on: the same numbers in
// padded, aligned memory, each matrix stored so that the hot loops run along its rows.
#pragma once

#include <attmirror/base/aligned.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace attmirror {

// The trainable pieces. A run stores them by these names.
enum class Block { W, K, Q, p, v, W_ov, W_kq };

inline constexpr std::array all_blocks{Block::W, Block::K,    Block::Q,   Block::p,
                                       Block::v, Block::W_ov, Block::W_kq};

std::string_view to_string(Block block);
Block parse_block(std::string_view name);
constexpr bool is_vector(Block block) { return block == Block::p || block == Block::v; }

struct W {};
struct KQ {
  std::ptrdiff_t rank = 0;  // m; 0 means m = d, the papers' default
};
struct Prompt {
  Matrix key_weights{};  // A; empty means the identity
};
using Parameterization = std::variant<W, KQ, Prompt>;

std::string_view to_string(const Parameterization& parameterization);

// Blocks that a model does not have are empty.
struct Parameters {
  Matrix W{}, K{}, Q{};
  Vector p{}, v{};
  Matrix W_ov{}, W_kq{};
};

// The result of `visitor` for the Matrix or the Vector that a block is: it must be of one type for both.
template <class AnyParameters, class Visitor>
decltype(auto) visit_block(AnyParameters& parameters, Block block, Visitor visitor) {
  switch (block) {
    case Block::K:
      return visitor(parameters.K);
    case Block::Q:
      return visitor(parameters.Q);
    case Block::p:
      return visitor(parameters.p);
    case Block::v:
      return visitor(parameters.v);
    case Block::W_ov:
      return visitor(parameters.W_ov);
    case Block::W_kq:
      return visitor(parameters.W_kq);
    case Block::W:
      break;
  }
  return visitor(parameters.W);
}

// Calls `visitor` with each block's name and what it is in `a` and in `b`.
template <class Visitor>
void visit_blocks(Parameters& a, const Parameters& b, Visitor visitor) {
  visitor(Block::W, a.W, b.W);
  visitor(Block::K, a.K, b.K);
  visitor(Block::Q, a.Q, b.Q);
  visitor(Block::p, a.p, b.p);
  visitor(Block::v, a.v, b.v);
  visitor(Block::W_ov, a.W_ov, b.W_ov);
  visitor(Block::W_kq, a.W_kq, b.W_kq);
}

// The combined weights W of a model's parameters: W itself, or K Q^T. Throws Error (bad input) for a prompt,
// which has none.
Matrix combined_weights(const Parameters& parameters);

// What a max-margin solution is compared with: the combined weights, or the prompt p as one column.
Matrix attention_weights(const Parameters& parameters);

// One block in the memory of the training loop. W and K are stored transposed (`transposed`), so that
// W z = sum_c z_c W[:,c] walks along rows.
struct BlockShape {
  Block name = Block::W;
  std::ptrdiff_t rows = 0, cols = 0;  // as stored
  bool transposed = false;
};

class ParameterBlocks {
 public:
  ParameterBlocks() = default;
  explicit ParameterBlocks(std::vector<BlockShape> shapes);

  std::ptrdiff_t count() const { return static_cast<std::ptrdiff_t>(shapes_.size()); }
  const BlockShape& shape(std::ptrdiff_t b) const { return shapes_[static_cast<std::size_t>(b)]; }
  MatrixView view(std::ptrdiff_t b);
  ConstMatrixView view(std::ptrdiff_t b) const;

  // The position of a block, or -1.
  std::ptrdiff_t find(Block name) const;

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

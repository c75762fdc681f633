#include <attmirror/attention/attention.hpp>
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

// The blocks of each parameterization; throws where its options do not fit the data.
struct AttentionBlocks {
  std::ptrdiff_t d;
  std::vector<BlockShape> operator()(const W&) const { return {{Block::W, d, d, true}}; }
  std::vector<BlockShape> operator()(const KQ& kq) const {
    if (kq.rank < 0 || kq.rank > d)
      throw bad_input(
          fmt::format("rank is {}: expected 1 to {} (the dimension), or 0 for the dimension", kq.rank, d));
    const std::ptrdiff_t m = kq.rank == 0 ? d : kq.rank;
    return {{Block::K, m, d, true}, {Block::Q, d, m, false}};
  }
  std::vector<BlockShape> operator()(const Prompt& prompt) const {
    const Matrix& A = prompt.key_weights;
    if (A.size() != 0 && (A.rows() != d || A.cols() != d))
      throw bad_input(
          fmt::format("key weights have shape ({}, {}): expected ({}, {})", A.rows(), A.cols(), d, d));
    for (std::ptrdiff_t i = 0; i < A.rows(); ++i)
      for (std::ptrdiff_t j = 0; j < A.cols(); ++j)
        if (!std::isfinite(A(i, j)))
          throw bad_input(fmt::format("key weights[{},{}] is {}: expected a finite number", i, j, A(i, j)));
    return {BlockShape::vector(Block::p, d)};
  }
};

// Gradients are products of two token entries, a query's and the decoder's. Within these bounds none of them over- or
// underflows, so an exact zero means that there is nothing to gain.
void check_magnitude(ConstMatrixView values, const char* name) {
  const double largest = values.rows == 0 ? 0.0 : values.eigen().cwiseAbs().maxCoeff();
  if (largest != 0 && !(largest >= 1e-70 && largest <= 1e70))
    throw bad_input(
        fmt::format("the largest entry of the {} is {:g}: expected 1e-70 to 1e70, please rescale the data",
                    name, largest));
}

// The head with all that it needs; throws where that does not fit.
struct ResolveHead {
  const Dataset& data;
  Head operator()(LinearHead head) const { return head; }
  Head operator()(ReluHead head) const {
    if (head.V.size() == 0) {
      if (data.head_weights().rows == 0)
        throw bad_input("the data have no weights V for the head relu: give the array V");
      head.V = data.head_weights().eigen().transpose();
    }
    if (head.V.rows() != data.dim())
      throw bad_input(
          fmt::format("V of the ReLU head has shape ({}, {}): expected {} rows, the dimension of the tokens",
                      head.V.rows(), head.V.cols(), data.dim()));
    if (!head.V.allFinite()) throw bad_input("V of the ReLU head has an entry that is not finite");
    check_magnitude(PaddedMatrix(head.V).view(), "weights V of the ReLU head");
    return head;
  }
  Head operator()(QuadraticHead head) const {
    if (!std::isfinite(head.lambda))
      throw bad_input(
          fmt::format("lambda of the quadratic head is {}: expected a finite number", head.lambda));
    return head;
  }
  Head operator()(std::shared_ptr<const CustomHead> head) const {
    if (!head) throw bad_input("the custom head is null");
    return head;
  }
};

}  // namespace

Attention::Attention(const Dataset& data, Parameterization parameterization, Loss loss,
                     AttentionOptions options)
    : data_(&data),
      parameterization_(std::move(parameterization)),
      loss_(std::move(loss)),
      head_(std::visit(ResolveHead{data}, std::move(options.head))),
      penalty_(options.penalty) {
  if (!(penalty_ >= 0) || std::isinf(penalty_))
    throw bad_input(fmt::format("penalty is {}: expected a finite number, 0 or greater", penalty_));
  if (const auto* custom = std::get_if<std::shared_ptr<const CustomLoss>>(&loss_); custom && !*custom)
    throw bad_input("the custom loss is null");
  blocks_ = std::visit(AttentionBlocks{data.dim()}, parameterization_);
  if (options.train.empty())
    for (const BlockShape& shape : blocks_) options.train.push_back(shape.name);
  if (options.scaled) logit_scale_ = 1 / std::sqrt(static_cast<double>(rank()));
  if (uses_decoder(head_)) blocks_.push_back(BlockShape::vector(Block::v, data.dim()));

  for (const Block& block : options.train) {
    if (!has_block(block))
      throw bad_input(block == Block::v
                          ? fmt::format("cannot train v: the head {} has none", to_string(head_))
                          : fmt::format("cannot train {}: parameterization {} has no such block",
                                        to_string(block), to_string(parameterization_)));
    if (std::ranges::count(options.train, block) > 1)
      throw bad_input(fmt::format("block {} is listed twice among those to train", to_string(block)));
  }
  for (const BlockShape& shape : blocks_)
    if (std::ranges::count(options.train, shape.name) > 0) trained_.push_back(shape.name);
  if (penalty_ > 0 && trained_ == std::vector{Block::v})
    throw bad_input(fmt::format("penalty is {}, but only v is trained, which has none", penalty_));
  check_magnitude(data.all_tokens(), "tokens");
  check_magnitude(data.queries(), "queries");
  check_magnitude(data.decoder(), "decoder");
  if (uses_decoder(head_) && !data.has_decoder() && !is_trained(Block::v))
    throw bad_input(data.head_weights().rows > 0 && std::holds_alternative<LinearHead>(head_)
                        ? "the data have no decoder v, but weights V: choose the head relu, or train v too"
                        : "the data have no decoder v: give the array v, or train v too");
}

std::ptrdiff_t Attention::rank() const {
  return std::holds_alternative<KQ>(parameterization_) ? blocks_.front().rows : data_->dim();
}

bool Attention::has_block(const Block& block) const {
  return std::ranges::any_of(blocks_, [&](const BlockShape& shape) { return shape.name == block; });
}

bool Attention::is_trained(const Block& block) const { return std::ranges::count(trained_, block) > 0; }

std::vector<BlockShape> Attention::trained_blocks() const {
  std::vector<BlockShape> result;
  for (const BlockShape& shape : blocks_)
    if (is_trained(shape.name)) result.push_back(shape);
  return result;
}

Parameters Attention::zero_parameters() const {
  Parameters result = ParameterBlocks(blocks_).parameters();
  if (data_->has_decoder() && has_block(Block::v)) result.v = data_->decoder().eigen().transpose();
  return result;
}

}  // namespace attmirror

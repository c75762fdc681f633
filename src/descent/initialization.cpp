#include <attmirror/base/error.hpp>
#include <attmirror/base/random.hpp>
#include <attmirror/descent/initialization.hpp>

#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

// Entry (i, j) of a block is random number i * cols + j of the block's own stream.
void fill(Eigen::Ref<Matrix> block, const Initialization& init, RandomStream stream, std::ptrdiff_t dim) {
  const CounterRandom random(init.seed, stream);
  const double bound = 1 / std::sqrt(static_cast<double>(dim));
  for (std::ptrdiff_t i = 0; i < block.rows(); ++i)
    for (std::ptrdiff_t j = 0; j < block.cols(); ++j) {
      const auto index = static_cast<std::uint64_t>(i * block.cols() + j);
      block(i, j) = init.kind == InitKind::normal ? init.std * random.normal(index)
                                                  : bound * (2 * random.uniform(index) - 1);
    }
}

}  // namespace

void Initialization::validate() const {
  if (!(std >= 0) || std::isinf(std))
    throw bad_input(
        fmt::format("std of the initialization is {}: expected a finite number, 0 or greater", std));
}

Parameters initial_parameters(const Attention& model, const Initialization& init) {
  init.validate();
  Parameters start = model.zero_parameters();
  const std::ptrdiff_t d = model.data().dim();
  if (init.kind != InitKind::zero) {
    if (start.W.size() > 0) fill(start.W, init, RandomStream::init_W, d);
    if (start.K.size() > 0) fill(start.K, init, RandomStream::init_K, d);
    if (start.Q.size() > 0) fill(start.Q, init, RandomStream::init_Q, d);
    if (start.p.size() > 0) {
      Matrix row(1, d);
      fill(row, init, RandomStream::init_prompt, d);
      start.p = row.transpose();
    }
  }
  visit_blocks(start, init.given, [&](Block block, auto& into, const auto& from) {
    if (from.size() == 0) return;
    if (!model.has_block(block))
      throw bad_input(fmt::format("an initial {} is given, but parameterization {} has no such block",
                                  to_string(block), to_string(model.parameterization())));
    into = from;
  });
  ParameterBlocks(model.blocks()).assign(start);  // checks shapes and finiteness
  if (start.K.size() > 0 && start.K.isZero(0) && start.Q.isZero(0))
    throw bad_input(
        "K and Q both start at 0, where the gradient is 0: start them from uniform, normal or a file");
  return start;
}

}  // namespace attmirror

#include "descent/momentum_buffer.hpp"

namespace attmirror {

MomentumBuffer::MomentumBuffer(const Momentum& options, std::span<const BlockShape> trained)
    : options_(options) {
  if (options_.kind == MomentumKind::none) return;
  average_ = ParameterBlocks({trained.begin(), trained.end()});
  log_scale_.assign(trained.size(), 0.0);
}

ScaledBlock MomentumBuffer::add(const Gradient& gradient, std::ptrdiff_t b) {
  const ScaledBlock g = scaled_block(gradient, b);
  if (options_.kind == MomentumKind::none) return g;
  MatrixView m = average_.view(b);
  double& scale = log_scale_[static_cast<std::size_t>(b)];
  const double weight = options_.kind == MomentumKind::ema ? 1 - options_.beta : 1.0;
  const double factor = weight * align_scale(g, scale, {m});
  for (std::ptrdiff_t j = 0; j < m.flat_size(); ++j)
    m.data[j] = options_.beta * m.data[j] + factor * g.values.data[j];
  recenter(scale, {m});
  return {m, scale};
}

std::vector<std::pair<std::string, ParameterBlocks*>> MomentumBuffer::state() {
  if (options_.kind == MomentumKind::none) return {};
  return {{"momentum", &average_}};
}

std::vector<std::pair<std::string, std::span<double>>> MomentumBuffer::numbers() {
  if (options_.kind == MomentumKind::none) return {};
  return {{"momentum.log_scale", std::span(log_scale_)}};
}

}  // namespace attmirror

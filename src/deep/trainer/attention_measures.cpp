#include "deep/trainer/attention_measures.hpp"

#include <array>
#include <span>

#include <ATen/ATen.h>

namespace attmirror::deep {

namespace {

// Entropy, share of the top token, tokens that hold 90 %: a tensor of three numbers, where they are computed.
at::Tensor spread_numbers(const at::Tensor& probabilities) {
  const at::Tensor p = probabilities.to(at::kDouble);
  const at::Tensor entropy = -(p * p.clamp_min(1e-300).log()).sum(-1);
  const at::Tensor sorted = std::get<0>(p.sort(-1, /*descending=*/true));
  // Those before the one that passes 90 %, and that one. Sums of rounded probabilities may end just below 0.9.
  const at::Tensor held =
      (sorted.cumsum(-1) < 0.9).sum(-1).to(at::kDouble).add(1).clamp_max(static_cast<double>(p.size(-1)));
  return at::stack({entropy.mean(), sorted.select(-1, 0).mean(), held.mean()});
}

AttentionSpread spread_of(const double* numbers) { return {numbers[0], numbers[1], numbers[2]}; }

// ||K_h^T Q_h||_F^2 of all heads: the sum of the products of the entries of K_h K_h^T and Q_h Q_h^T.
at::Tensor squared_product(const at::Tensor& key, const at::Tensor& query, std::int64_t heads) {
  const auto gram = [&](const at::Tensor& weight) {
    const at::Tensor parts = weight.to(at::kDouble).view({heads, -1, weight.size(1)});
    return at::matmul(parts, parts.transpose(1, 2));
  };
  return (gram(key) * gram(query)).sum();
}

}  // namespace

AttentionSpread attention_spread(const at::Tensor& probabilities) {
  const at::Tensor numbers = spread_numbers(probabilities).to(at::kCPU);
  return spread_of(numbers.data_ptr<double>());
}

std::vector<AttentionMeasures> measured_attention(Network& network, const BatchSource& source,
                                                  at::Device device) {
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> sums;  // of each block: of all queries, then of the first
  std::int64_t heads = 1;
  const std::vector<std::int64_t> rows = limited_rows(source.rows(), attention_samples);
  for (const std::int64_t row : rows) {
    PlannedBatch planned = source.plan(std::span(&row, 1), std::nullopt, 0, 1);
    source.prepare(planned);
    Batch one = source.on_device(planned.to(device));
    // Without filler: the rows of the sample alone.
    const std::int64_t length = source.length(row);
    if (one.row_count != length) {
      one.tokens = one.tokens.narrow(0, 0, length);
      one.positions = one.positions.narrow(0, 0, length);
      one.offsets = one.offsets.narrow(0, 0, 2);
      one.row_count = one.longest = length;
    }
    const std::vector<at::Tensor> maps = network.attention_maps(one);
    for (std::size_t b = 0; b < maps.size(); ++b) {
      heads = maps[b].size(0);
      const at::Tensor numbers = at::cat({spread_numbers(maps[b]), spread_numbers(maps[b].narrow(1, 0, 1))});
      if (sums.size() <= b)
        sums.push_back(numbers);
      else
        sums[b] += numbers;
    }
  }
  std::vector<at::Tensor> squares(sums.size() * 3);  // of K, Q, K Q^T of each block
  std::vector<std::array<at::Tensor, 2>> weights(sums.size());
  for (const Projection& projection : network.projections())
    if (projection.map != 'V')
      weights[static_cast<std::size_t>(projection.block)][projection.map == 'K' ? 0 : 1] = projection.weight;
  for (std::size_t b = 0; b < weights.size(); ++b) {
    squares[3 * b] = weights[b][0].to(at::kDouble).square().sum();
    squares[3 * b + 1] = weights[b][1].to(at::kDouble).square().sum();
    squares[3 * b + 2] = squared_product(weights[b][0], weights[b][1], heads);
  }
  const at::Tensor means = at::stack(sums).div(static_cast<double>(rows.size())).to(at::kCPU),
                   norms = at::stack(squares).sqrt().to(at::kCPU);
  std::vector<AttentionMeasures> result(sums.size());
  for (std::size_t b = 0; b < result.size(); ++b) {
    const double* mean = means.data_ptr<double>() + 6 * b;
    const double* norm = norms.data_ptr<double>() + 3 * b;
    result[b] = {spread_of(mean), spread_of(mean + 3), norm[0], norm[1], norm[2]};
  }
  return result;
}

}  // namespace attmirror::deep

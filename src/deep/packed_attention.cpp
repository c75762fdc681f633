#include "deep/packed_attention.hpp"

#include "deep/dropout_bits.hpp"
#include "deep/network_kernels.hpp"
#include <attmirror/base/error.hpp>

#include <array>
#include <cmath>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <Eigen/Dense>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>

namespace attmirror::deep {

namespace {

// The column under which the probability (head, place of the key) is hashed.
std::uint32_t probability_column(std::int64_t head, std::int64_t place) {
  return static_cast<std::uint32_t>(head) << 20 | static_cast<std::uint32_t>(place);
}

bool has_dropout(const AttentionDropout& dropout) {
  return dropout.probability > 0 && dropout.keys.defined();
}

// ---- plain
// ------------------------------------------------------------------------------------------------------------

// [heads, rows, places]: 0 or 1/(1 - probability), for the rows whose keys are given.
at::Tensor dropout_factors(const at::Tensor& row_keys, std::int64_t heads, std::int64_t places,
                           const AttentionDropout& dropout) {
  const at::Tensor keys = row_keys.to(at::kCPU).contiguous();
  at::Tensor factors = at::zeros({heads, keys.size(0), places}, at::kDouble);
  const std::uint32_t threshold = dropout_threshold(dropout.probability);
  auto* factor = factors.data_ptr<double>();
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t r = 0; r < keys.size(0); ++r)
      for (std::int64_t t = 0; t < places; ++t, ++factor)
        if (dropout_bits(static_cast<std::uint64_t>(keys.data_ptr<std::int64_t>()[r]), dropout.site,
                         probability_column(h, t)) >= threshold)
          *factor = 1 / (1 - dropout.probability);
  return factors;
}

at::Tensor plain_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const PackedRows& queries, const PackedRows& keys,
                           const AttentionDropout& dropout) {
  const at::Tensor query_offsets = queries.offsets.to(at::kCPU), key_offsets = keys.offsets.to(at::kCPU);
  const double scale = 1 / std::sqrt(static_cast<double>(query.size(2)));
  std::vector<at::Tensor> results;
  for (std::int64_t i = 0; i + 1 < query_offsets.size(0); ++i) {
    const auto rows = [&](const at::Tensor& x, const at::Tensor& offsets) {
      const std::int64_t begin = offsets.data_ptr<std::int32_t>()[i],
                         end = offsets.data_ptr<std::int32_t>()[i + 1];
      return x.slice(0, begin, end);
    };
    const at::Tensor q = rows(query, query_offsets).transpose(0, 1),
                     k = rows(key, key_offsets).transpose(0, 1), v = rows(value, key_offsets).transpose(0, 1);
    at::Tensor probabilities = at::softmax(at::matmul(q, k.transpose(1, 2)) * scale, -1);
    if (has_dropout(dropout))
      probabilities =
          probabilities * dropout_factors(rows(dropout.keys, query_offsets), q.size(0), k.size(1), dropout)
                              .to(probabilities.options());
    results.push_back(at::matmul(probabilities, v).transpose(0, 1));
  }
  return results.empty() ? query * 0 : at::cat(results, 0);
}

// ---- packed: our own loops on the CPU
// ------------------------------------------------------------------------------------

template <class Number>
using RowMajor = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class Number>
using Rows = Eigen::Map<RowMajor<Number>, 0, Eigen::OuterStride<>>;

// One head of a tensor [rows, heads, width] whose last dimension has no gaps.
template <class Number>
Rows<Number> head_rows(const at::Tensor& x, std::int64_t head, std::int64_t begin, std::int64_t end) {
  return Rows<Number>(x.data_ptr<Number>() + begin * x.stride(0) + head * x.stride(1), end - begin, x.size(2),
                      Eigen::OuterStride<>(x.stride(0)));
}

struct PackedProblem {
  at::Tensor query, key, value, query_offsets, key_offsets, dropout_keys;
  std::uint32_t site = 0;
  double probability = 0;

  double scale() const { return 1 / std::sqrt(static_cast<double>(query.size(2))); }
  std::array<std::int64_t, 2> query_rows(std::int64_t i) const {
    return {query_offsets.data_ptr<std::int32_t>()[i], query_offsets.data_ptr<std::int32_t>()[i + 1]};
  }
  std::array<std::int64_t, 2> key_rows(std::int64_t i) const {
    return {key_offsets.data_ptr<std::int32_t>()[i], key_offsets.data_ptr<std::int32_t>()[i + 1]};
  }
};

// softmax(Q K^T / sqrt(width)) of one head of one sample.
template <class Number>
void find_probabilities(const Rows<Number>& q, const Rows<Number>& k, double scale, RowMajor<Number>& s) {
  s.noalias() = q * k.transpose();
  for (Eigen::Index r = 0; r < s.rows(); ++r) {
    auto row = s.row(r).array();
    row = ((row - row.maxCoeff()) * static_cast<Number>(scale)).exp();
    row /= row.sum();
  }
}

// Zeroes or scales the entries of `x`, one per probability.
template <class Number>
void drop_probabilities(const PackedProblem& problem, std::int64_t first_row, std::int64_t head,
                        RowMajor<Number>& x) {
  if (problem.probability <= 0) return;
  const std::uint32_t threshold = dropout_threshold(problem.probability);
  const auto scale = static_cast<Number>(1 / (1 - problem.probability));
  for (Eigen::Index r = 0; r < x.rows(); ++r) {
    const auto key = static_cast<std::uint64_t>(problem.dropout_keys.data_ptr<std::int64_t>()[first_row + r]);
    for (Eigen::Index t = 0; t < x.cols(); ++t)
      x(r, t) = dropout_bits(key, problem.site, probability_column(head, t)) >= threshold ? x(r, t) * scale
                                                                                          : Number(0);
  }
}

// Calls work(sample, head) for all, on LibTorch's threads. No two of them write to the same place.
template <class Work>
void for_each_head(const PackedProblem& problem, const Work& work) {
  const std::int64_t samples = problem.query_offsets.size(0) - 1, heads = problem.query.size(1);
  at::parallel_for(0, samples * heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) work(i / heads, i % heads);
  });
}

template <class Number>
at::Tensor packed_forward(const PackedProblem& problem) {
  at::Tensor result = at::empty(problem.query.sizes(), problem.query.options());
  for_each_head(problem, [&](std::int64_t sample, std::int64_t head) {
    const auto [q_begin, q_end] = problem.query_rows(sample);
    const auto [k_begin, k_end] = problem.key_rows(sample);
    RowMajor<Number> p(q_end - q_begin, k_end - k_begin);
    find_probabilities<Number>(head_rows<Number>(problem.query, head, q_begin, q_end),
                               head_rows<Number>(problem.key, head, k_begin, k_end), problem.scale(), p);
    drop_probabilities(problem, q_begin, head, p);
    head_rows<Number>(result, head, q_begin, q_end).noalias() =
        p * head_rows<Number>(problem.value, head, k_begin, k_end);
  });
  return result;
}

// With P the probabilities, D those after dropout, G the gradient of the result: dV = D^T G, dD = G V^T,
// dS = P * (dP - rowsum(dP * P)), dQ = dS K / sqrt(width), dK = dS^T Q / sqrt(width).
template <class Number>
std::array<at::Tensor, 3> packed_backward(const PackedProblem& problem, const at::Tensor& gradient) {
  const auto like = [](const at::Tensor& x) { return at::empty(x.sizes(), x.options()); };
  std::array<at::Tensor, 3> result{like(problem.query), like(problem.key), like(problem.value)};
  const auto scale = static_cast<Number>(problem.scale());
  for_each_head(problem, [&](std::int64_t sample, std::int64_t head) {
    const auto [q_begin, q_end] = problem.query_rows(sample);
    const auto [k_begin, k_end] = problem.key_rows(sample);
    const auto q = head_rows<Number>(problem.query, head, q_begin, q_end);
    const auto k = head_rows<Number>(problem.key, head, k_begin, k_end);
    const auto v = head_rows<Number>(problem.value, head, k_begin, k_end);
    const auto g = head_rows<Number>(gradient, head, q_begin, q_end);
    RowMajor<Number> p(q_end - q_begin, k_end - k_begin);
    find_probabilities<Number>(q, k, problem.scale(), p);
    RowMajor<Number> s = p;
    drop_probabilities(problem, q_begin, head, s);
    head_rows<Number>(result[2], head, k_begin, k_end).noalias() = s.transpose() * g;
    s.noalias() = g * v.transpose();
    drop_probabilities(problem, q_begin, head, s);
    for (Eigen::Index r = 0; r < s.rows(); ++r) {
      const Number mean = s.row(r).dot(p.row(r));
      s.row(r) = p.row(r).array() * (s.row(r).array() - mean);
    }
    head_rows<Number>(result[0], head, q_begin, q_end).noalias() = scale * (s * k);
    head_rows<Number>(result[1], head, k_begin, k_end).noalias() = scale * (s.transpose() * q);
  });
  return result;
}

at::Tensor without_gaps(const at::Tensor& x) { return x.stride(2) == 1 ? x : x.contiguous(); }

struct PackedFunction : public torch::autograd::Function<PackedFunction> {
  static PackedProblem problem(const torch::autograd::variable_list& saved, std::int64_t site,
                               double probability) {
    return {saved[0],   saved[1], saved[2], saved[3], saved[4], saved[5], static_cast<std::uint32_t>(site),
            probability};
  }
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& query,
                            const at::Tensor& key, const at::Tensor& value, const at::Tensor& query_offsets,
                            const at::Tensor& key_offsets, const at::Tensor& dropout_keys, std::int64_t site,
                            double probability) {
    const torch::autograd::variable_list saved{query, key, value, query_offsets, key_offsets, dropout_keys};
    context->save_for_backward(saved);
    context->saved_data["site"] = site;
    context->saved_data["probability"] = probability;
    const PackedProblem p = problem(saved, site, probability);
    return query.scalar_type() == at::kDouble ? packed_forward<double>(p) : packed_forward<float>(p);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const PackedProblem p = problem(context->get_saved_variables(), context->saved_data["site"].toInt(),
                                    context->saved_data["probability"].toDouble());
    const at::Tensor gradient = without_gaps(gradients[0]);
    const auto [q, k, v] = p.query.scalar_type() == at::kDouble ? packed_backward<double>(p, gradient)
                                                                : packed_backward<float>(p, gradient);
    return {q, k, v, {}, {}, {}, {}, {}};
  }
};

bool can_pack(const at::Tensor& query) {
  return query.device().is_cpu() && (query.scalar_type() == at::kFloat || query.scalar_type() == at::kDouble);
}

}  // namespace

at::Tensor packed_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const PackedRows& queries, const PackedRows& keys,
                            const AttentionDropout& dropout, AttentionKind kind) {
  if (kind == AttentionKind::automatic)
    kind = has_fused_attention(query) ? AttentionKind::fused
           : can_pack(query)          ? AttentionKind::packed
                                      : AttentionKind::plain;
  if (kind == AttentionKind::plain) return plain_attention(query, key, value, queries, keys, dropout);
  if (kind == AttentionKind::packed) {
    if (!can_pack(query)) throw bad_input("attention is packed: expected float32 or float64 on the CPU");
    return PackedFunction::apply(without_gaps(query), without_gaps(key), without_gaps(value), queries.offsets,
                                 keys.offsets, has_dropout(dropout) ? dropout.keys : no_keys(query),
                                 static_cast<std::int64_t>(dropout.site),
                                 has_dropout(dropout) ? dropout.probability : 0.0);
  }
  if (!has_fused_attention(query))
    throw bad_input(
        "attention is fused: expected bfloat16 or float16 on a GPU, heads of at most 256 numbers, and "
        "LibTorch 2");
  return fused_attention(query, key, value, queries, keys, dropout);
}

}  // namespace attmirror::deep

// Attention without padding, by our own loops, against tensor operations sample by sample.
#include "deep/packed_attention.hpp"

#include "deep/networks.hpp"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace attmirror::deep_tests {
namespace {

struct Problem {
  at::Tensor query, key, value, weight;  // the loss is sum(weight * result)
  am::PackedRows queries, keys;
  am::AttentionDropout dropout;
};

am::PackedRows rows_of(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int32_t> offsets{0};
  std::int64_t longest = 0;
  for (const std::int64_t length : lengths) {
    offsets.push_back(offsets.back() + static_cast<std::int32_t>(length));
    longest = std::max(longest, length);
  }
  return {at::tensor(offsets, at::kInt), longest};
}

Problem problem(const std::vector<std::int64_t>& query_lengths, const std::vector<std::int64_t>& key_lengths,
                double dropout, at::ScalarType type) {
  Problem p;
  p.queries = rows_of(query_lengths);
  p.keys = rows_of(key_lengths);
  const std::int64_t q = p.queries.offsets[-1].item<std::int32_t>(),
                     k = p.keys.offsets[-1].item<std::int32_t>();
  p.query = random({q, 3, 8}, 1, type, 2);
  p.key = random({k, 3, 8}, 2, type, 2);
  p.value = random({k, 3, 8}, 3, type);
  p.weight = random({q, 3, 8}, 4, type);
  if (dropout > 0) {
    std::vector<std::int64_t> samples(query_lengths.size());
    std::iota(samples.begin(), samples.end(), 40);
    p.dropout = {dropout, am::dropout_keys({7, 2}, samples, query_lengths), 5, 0, 0};
  }
  return p;
}

// The result and the gradients of query, key and value.
std::vector<at::Tensor> solved(const Problem& p, am::AttentionKind kind) {
  const at::Tensor query = leaf(p.query), key = leaf(p.key), value = leaf(p.value);
  const at::Tensor result = am::packed_attention(query, key, value, p.queries, p.keys, p.dropout, kind);
  (result * p.weight).sum().backward();
  return {result.detach(), query.grad(), key.grad(), value.grad()};
}

void expect_packed_is_plain(const Problem& p, double tolerance) {
  const auto packed = solved(p, am::AttentionKind::packed), plain = solved(p, am::AttentionKind::plain);
  const char* const names[] = {"result", "query", "key", "value"};
  for (std::size_t i = 0; i < packed.size(); ++i)
    EXPECT_LE(distance(packed[i], plain[i]), tolerance) << names[i];
}

TEST(PackedAttention, EqualsPlainAttention) {
  const std::vector<std::int64_t> ragged{5, 1, 17, 1, 33, 2}, firsts(ragged.size(), 1);
  for (const double dropout : {0.0, 0.3}) {
    expect_packed_is_plain(problem(ragged, ragged, dropout, at::kDouble), 1e-12);
    expect_packed_is_plain(problem(ragged, ragged, dropout, at::kFloat), 1e-5);
    expect_packed_is_plain(problem(firsts, ragged, dropout, at::kDouble), 1e-12);  // one query a sample
    expect_packed_is_plain(problem(firsts, ragged, dropout, at::kFloat), 1e-5);
    expect_packed_is_plain(problem({64}, {64}, dropout, at::kDouble), 1e-12);
  }
}

TEST(PackedAttention, PlainAttentionIsItsFormula) {
  const Problem p = problem({4, 3}, {4, 3}, 0, at::kDouble);
  const at::Tensor result =
      am::packed_attention(p.query, p.key, p.value, p.queries, p.keys, {}, am::AttentionKind::plain);
  for (std::int64_t row = 0; row < 7; ++row)
    for (std::int64_t head = 0; head < 3; ++head) {
      const std::int64_t begin = row < 4 ? 0 : 4, end = row < 4 ? 4 : 7;
      const at::Tensor q = p.query[row][head];
      at::Tensor sum = at::zeros({8}, at::kDouble);
      double total = 0;
      for (std::int64_t t = begin; t < end; ++t) {
        const double e = std::exp(q.dot(p.key[t][head]).item<double>() / std::sqrt(8.0));
        sum += e * p.value[t][head];
        total += e;
      }
      EXPECT_LE(distance(result[row][head], sum / total), 1e-14);
    }
}

TEST(PackedAttention, TakesViewsWithGaps) {
  Problem p = problem({3, 6}, {3, 6}, 0.2, at::kDouble);
  const auto expected = solved(p, am::AttentionKind::packed);
  // Query, key and value side by side, as one product of matrices makes them; and with the last axis first.
  const auto side_by_side = at::stack({p.query, p.key, p.value}, 1).unbind(1);
  const at::Tensor turned = p.value.permute({2, 0, 1}).contiguous().permute({1, 2, 0});
  ASSERT_NE(turned.stride(2), 1);
  EXPECT_TRUE(same_bits(am::packed_attention(side_by_side[0], side_by_side[1], turned, p.queries, p.keys,
                                             p.dropout, am::AttentionKind::packed),
                        expected[0]));
  // A gradient that is spread out: that of a sum.
  const at::Tensor query = leaf(p.query), other = leaf(p.query);
  am::packed_attention(query, p.key, p.value, p.queries, p.keys, {}, am::AttentionKind::packed)
      .sum()
      .backward();
  am::packed_attention(other, p.key, p.value, p.queries, p.keys, {}, am::AttentionKind::plain)
      .sum()
      .backward();
  EXPECT_LE(at::max(at::abs(query.grad() - other.grad())).item<double>(), 1e-12);
}

TEST(PackedAttention, StaysFiniteWhereScoresAreHuge) {
  Problem p = problem({5, 9}, {5, 9}, 0, at::kFloat);
  p.query = p.query * 1e4;
  p.key = p.key * 1e4;
  for (const at::Tensor& tensor : solved(p, am::AttentionKind::packed))
    EXPECT_TRUE(tensor.isfinite().all().item<bool>());
}

TEST(PackedAttention, HasTheSameBitsOnAnyNumberOfThreads) {
  const Problem p = problem({40, 1, 13, 64}, {40, 1, 13, 64}, 0.2, at::kFloat);
  const int threads = at::get_num_threads();
  const auto expected = solved(p, am::AttentionKind::packed);
  at::set_num_threads(threads == 1 ? 2 : 1);
  const auto others = solved(p, am::AttentionKind::packed);
  at::set_num_threads(threads);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same_bits(others[i], expected[i]));
}

// With equal scores and one-hot values a result shows each probability times its factor.
TEST(PackedAttention, DropsTheShareOfProbabilitiesThatWasAskedFor) {
  const std::int64_t length = 64, samples = 12, heads = 2, rows = length * samples;
  const auto lengths = std::vector<std::int64_t>(samples, length);
  std::vector<std::int64_t> indices(samples);
  std::iota(indices.begin(), indices.end(), 0);
  const at::Tensor zeros = at::zeros({rows, heads, length}, at::kDouble);
  const at::Tensor value =
      at::eye(length, at::kDouble).repeat({samples, 1}).unsqueeze(1).expand({rows, heads, length});
  for (const double p : {0.1, 0.5}) {
    const am::AttentionDropout dropout{p, am::dropout_keys({3, 1}, indices, lengths), 4, 0, 0};
    const at::Tensor shown = am::packed_attention(zeros, zeros, value, rows_of(lengths), rows_of(lengths),
                                                  dropout, am::AttentionKind::packed) *
                             (static_cast<double>(length) * (1 - p));
    const at::Tensor kept = shown.gt(0.5).to(at::kDouble);
    EXPECT_LE(at::max(at::abs(shown - kept)).item<double>(), 1e-12);  // 0 or 1, nothing else
    const auto n = static_cast<double>(kept.numel());
    EXPECT_NEAR(kept.mean().item<double>(), 1 - p, 5 * std::sqrt(p * (1 - p) / n));
    // Heads do not share their decisions.
    const at::Tensor both = (kept.select(1, 0) * kept.select(1, 1)).mean();
    EXPECT_NEAR(both.item<double>(), (1 - p) * (1 - p), 5 / std::sqrt(n / 2));
  }
}

TEST(PackedAttention, NamesItsKindsAndRefusesWhatCannotBe) {
  for (const am::AttentionKind kind : {am::AttentionKind::automatic, am::AttentionKind::plain,
                                       am::AttentionKind::packed, am::AttentionKind::fused})
    EXPECT_EQ(am::attention_kind(am::to_string(kind)), kind);
  EXPECT_EQ(refusal([] { am::attention_kind("flash"); }),
            "attention is \"flash\": expected automatic, plain, packed or fused");
  const Problem p = problem({2}, {2}, 0, at::kFloat);
  const auto attention = [&](at::ScalarType type, am::AttentionKind kind) {
    return am::packed_attention(p.query.to(type), p.key.to(type), p.value.to(type), p.queries, p.keys, {},
                                kind);
  };
  EXPECT_EQ(refusal([&] { attention(at::kBFloat16, am::AttentionKind::packed); }),
            "attention is packed: expected float32 or float64 on the CPU");
  EXPECT_EQ(refusal([&] { attention(at::kFloat, am::AttentionKind::fused); }).substr(0, 18),
            "attention is fused");
  EXPECT_LE(distance(attention(at::kBFloat16, am::AttentionKind::automatic),
                     attention(at::kFloat, am::AttentionKind::automatic)),
            0.02);
}

}  // namespace
}  // namespace attmirror::deep_tests

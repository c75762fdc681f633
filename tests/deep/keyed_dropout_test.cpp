#include "deep/keyed_dropout.hpp"

#include "deep/networks.hpp"

#include <cmath>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace attmirror::deep_tests {
namespace {

at::Tensor keys_of(std::int64_t samples, std::int64_t length, am::DropoutPlace place = {9, 3}) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(samples));
  std::iota(indices.begin(), indices.end(), 0);
  return am::dropout_keys(place, indices,
                          std::vector<std::int64_t>(static_cast<std::size_t>(samples), length));
}

// 1 where an element stays.
at::Tensor kept(const at::Tensor& keys, std::int64_t width, double probability, std::uint32_t site) {
  const at::Tensor ones = at::ones({keys.size(0), width}, at::kDouble);
  return am::dropped(ones, {probability, keys, site}).gt(0).to(at::kDouble);
}

void expect_uncorrelated(const at::Tensor& a, const at::Tensor& b, const std::string& what) {
  const at::Tensor x = a - a.mean(), y = b - b.mean();
  const double correlation = ((x * y).sum() / (x.norm() * y.norm())).item<double>();
  EXPECT_LE(std::abs(correlation), 5 / std::sqrt(static_cast<double>(a.numel()))) << what;
}

TEST(KeyedDropout, KeepsTheShareAndTheMean) {
  const at::Tensor keys = keys_of(20, 50);
  for (const double p : {0.1, 0.2, 0.5, 0.9}) {
    const at::Tensor stays = kept(keys, 384, p, 6);
    const double sigma = std::sqrt(p * (1 - p) / static_cast<double>(stays.numel()));
    EXPECT_NEAR(stays.mean().item<double>(), 1 - p, 5 * sigma) << p;
    // What stays is x / (1 - p), so that means stay.
    const at::Tensor x = random({keys.size(0), 384}, 1, at::kDouble);
    EXPECT_LE(distance(am::dropped(x, {p, keys, 6}), x * stays / (1 - p)), 1e-15);
    EXPECT_NEAR(am::dropped(at::ones_like(x), {p, keys, 6}).mean().item<double>(), 1, 5 * sigma / (1 - p));
    // No row and no column is favoured.
    const at::Tensor rows = stays.mean(1), columns = stays.mean(0);
    EXPECT_LE(at::max(at::abs(rows - (1 - p))).item<double>(), 5.5 * std::sqrt(p * (1 - p) / 384));
    EXPECT_LE(at::max(at::abs(columns - (1 - p))).item<double>(), 5.5 * std::sqrt(p * (1 - p) / 1000));
  }
}

TEST(KeyedDropout, DecisionsAreUncorrelated) {
  const std::int64_t width = 256, length = 60, samples = 12;
  const at::Tensor keys = keys_of(samples, length);
  const double p = 0.4;
  const at::Tensor stays = kept(keys, width, p, 1);
  const auto part = [](const at::Tensor& x, std::int64_t axis, std::int64_t begin, std::int64_t less) {
    return x.slice(axis, begin, x.size(axis) - less + begin);
  };
  for (const std::int64_t lag : {1, 2, 3, 8, 32, 60}) {  // 60: the same place of the next sample
    expect_uncorrelated(part(stays, 0, 0, lag), part(stays, 0, lag, lag), "rows " + std::to_string(lag));
    expect_uncorrelated(part(stays, 1, 0, lag), part(stays, 1, lag, lag), "columns " + std::to_string(lag));
  }
  for (const std::uint32_t site : {0u, 2u, 3u, 5u, 17u, 33u})
    expect_uncorrelated(stays, kept(keys, width, p, site), "site " + std::to_string(site));
  expect_uncorrelated(stays, kept(keys_of(samples, length, {9, 4}), width, p, 1), "step");
  expect_uncorrelated(stays, kept(keys_of(samples, length, {10, 3}), width, p, 1), "seed");
  // Parities of four neighbours (a hash can be weak there and pass all of the above).
  const at::Tensor sign = 2 * kept(keys, width, 0.5, 1) - 1;
  const at::Tensor four = part(part(sign, 0, 0, 1), 1, 0, 1) * part(part(sign, 0, 1, 1), 1, 0, 1) *
                          part(part(sign, 0, 0, 1), 1, 1, 1) * part(part(sign, 0, 1, 1), 1, 1, 1);
  EXPECT_LE(std::abs(four.mean().item<double>()), 5 / std::sqrt(static_cast<double>(four.numel())));
}

TEST(KeyedDropout, KeysAreFunctionsOfSeedStepSampleAndPlace) {
  const std::vector<std::int64_t> samples{4, 9, 2}, lengths{3, 5, 1}, one{9}, five{5}, seven{7};
  const at::Tensor keys = am::dropout_keys({1, 2}, samples, lengths);
  EXPECT_EQ(keys.size(0), 9);
  EXPECT_TRUE(at::equal(keys.slice(0, 3, 8), am::dropout_keys({1, 2}, one, five)));
  // A longer text begins with the same keys.
  EXPECT_TRUE(
      at::equal(am::dropout_keys({1, 2}, one, five), am::dropout_keys({1, 2}, one, seven).slice(0, 0, 5)));
  EXPECT_FALSE(at::equal(keys, am::dropout_keys({1, 3}, samples, lengths)));
  EXPECT_FALSE(at::equal(keys, am::dropout_keys({2, 2}, samples, lengths)));
  const at::Tensor many = keys_of(300, 60);
  EXPECT_EQ(std::get<0>(at::_unique(many)).size(0), many.size(0));  // no two alike
}

TEST(KeyedDropout, GradientsPassWhereElementsStay) {
  const at::Tensor keys = keys_of(4, 5);
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor x = leaf(random({20, 30}, 1, type)), weight = random({20, 30}, 2, type);
    const am::Dropout dropout{0.3, keys, 2};
    (am::dropped(x, dropout) * weight).sum().backward();
    const at::Tensor factors = am::dropped(at::ones_like(weight), dropout);
    EXPECT_LE(distance(x.grad(), weight * factors), 1e-7);
    EXPECT_GT(x.grad().eq(0).sum().item<std::int64_t>(), 100);
  }
}

TEST(KeyedDropout, ResidualNormsHaveTheGradientsOfDifferences) {
  const am::Dropout dropout{0.3, keys_of(2, 3), 2};
  const Tensors inputs{leaf(random({6, 7}, 1, at::kDouble)), leaf(random({6, 7}, 2, at::kDouble)),
                       leaf(random({7}, 3, at::kDouble))};
  const at::Tensor weight = random({6, 7}, 4, at::kDouble);
  const auto loss = [&] {
    return (am::residual_norm(inputs[0], inputs[1], inputs[2], dropout).normed * weight).sum();
  };
  loss().backward();
  const at::NoGradGuard no_gradients;
  const double h = 1e-5;
  for (const at::Tensor& input : inputs) {
    double* const values = input.data_ptr<double>();
    for (std::int64_t i = 0; i < input.numel(); ++i) {
      const double before = values[i];
      values[i] = before + h;
      const double above = loss().item<double>();
      values[i] = before - h;
      const double below = loss().item<double>();
      values[i] = before;
      EXPECT_NEAR(input.grad().view(-1)[i].item<double>(), (above - below) / (2 * h), 1e-7);
    }
  }
}

TEST(KeyedDropout, ResidualNormIsItsFormula) {
  const at::Tensor x = random({5, 9}, 1, at::kDouble), branch = random({5, 9}, 2, at::kDouble),
                   weight = random({9}, 3, at::kDouble);
  const am::Dropout dropout{0.3, keys_of(1, 5), 2};
  const at::Tensor sum = x + am::dropped(branch, dropout);
  const at::Tensor centred = sum - sum.mean(1, true);
  const at::Tensor expected = centred / at::sqrt((centred * centred).mean(1, true) + 1e-5) * weight;
  EXPECT_LE(distance(am::residual_norm(x, branch, weight, dropout).normed, expected), 1e-14);
}

TEST(KeyedDropout, SumAndNormIsItsFormula) {
  const at::Tensor x = random({5, 9}, 1, at::kDouble), branch = random({5, 9}, 2, at::kDouble),
                   weight = random({9}, 3, at::kDouble), bias = random({9}, 4, at::kDouble);
  const am::Dropout dropout{0.3, keys_of(1, 5), 2};
  const am::NormedRows rows = am::sum_and_norm(x, {branch, {}}, {weight, bias}, dropout, at::kDouble);
  const at::Tensor sum = x + am::dropped(branch, dropout), centred = sum - sum.mean(1, true);
  EXPECT_TRUE(same_bits(rows.passed, sum));
  EXPECT_LE(
      distance(rows.normed, centred / at::sqrt((centred * centred).mean(1, true) + 1e-5) * weight + bias),
      1e-14);
  EXPECT_TRUE(am::sum_and_norm(x, {}, {weight, bias}, {}, at::kDouble).passed.is_same(x));
  EXPECT_FALSE(am::takes_branch_bias(x, at::kDouble));
  EXPECT_TRUE(same_bits(am::dropped_gelu(x, {}, dropout), am::dropped(at::gelu(x), dropout)));
}

TEST(KeyedDropout, DoesNothingWithoutKeysAndRefusesOtherTypes) {
  const at::Tensor x = random({5, 9}, 1), keys = keys_of(1, 5);
  EXPECT_TRUE(same_bits(am::dropped(x, {0.5, {}, 1}), x));
  EXPECT_TRUE(same_bits(am::dropped(x, {0, keys, 1}), x));
  EXPECT_EQ(refusal([&] {
              am::dropped(x.to(at::kHalf), {0.5, keys, 1});
            }),
            "dropout on the CPU is for float32 and float64");
  const int threads = at::get_num_threads();
  const at::Tensor wide = random({400, 300}, 1), many = keys_of(8, 50);
  const at::Tensor expected = am::dropped(wide, {0.5, many, 1});
  at::set_num_threads(threads == 1 ? 2 : 1);
  EXPECT_TRUE(same_bits(am::dropped(wide, {0.5, many, 1}), expected));
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace attmirror::deep_tests

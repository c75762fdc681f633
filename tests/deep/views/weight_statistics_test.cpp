#include "deep/views/weight_statistics.hpp"

#include "base/random.hpp"
#include "deep/views/example_models.hpp"
#include "deep/views/view_pages.hpp"
#include "deep/views/weight_statistics.hpp"
#include "support/files.hpp"

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include <gtest/gtest.h>

namespace attmirror::view_tests {
namespace {

TEST(WeightStatistics, ByHand) {
  const std::vector<float> weights{0.1f, -0.2f, 0.0005f, 0.0f, 0.05f};
  const auto s = deep::weight_statistics(weights, "K");
  EXPECT_EQ(s.count, 5);
  EXPECT_EQ(s.large, 2);
  EXPECT_NEAR(s.small_share, 0.4, 1e-12);
  EXPECT_NEAR(s.largest, 0.2, 1e-7);
  const double l1 = 0.3505, l2 = 0.01 + 0.04 + 0.0005 * 0.0005 + 0.0025;
  EXPECT_NEAR(s.effective_share, l1 * l1 / l2 / 5, 1e-6);
  EXPECT_NEAR(s.quantiles[0], 0.05, 1e-7);
  EXPECT_NEAR(s.quantiles[1], 0.2, 1e-7);
}

TEST(WeightStatistics, KnownDistributions) {
  const CounterRandom random(3, RandomStream::sentences);
  std::vector<float> uniform, normal;
  for (std::uint64_t i = 0; i < 200000; ++i) {
    const double u = static_cast<double>(random.bits(2 * i) >> 11) * 0x1p-53;
    const double v = static_cast<double>(random.bits(2 * i + 1) >> 11) * 0x1p-53;
    uniform.push_back(static_cast<float>(2 * u - 1));
    normal.push_back(
        static_cast<float>(std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * std::numbers::pi * v)));
  }
  const auto flat = deep::weight_statistics(uniform, "K"), bell = deep::weight_statistics(normal, "K");
  EXPECT_NEAR(flat.kurtosis, 1.8, 0.02);
  EXPECT_NEAR(flat.effective_share, 0.75, 0.005);
  EXPECT_NEAR(bell.kurtosis, 3, 0.06);
  EXPECT_NEAR(bell.effective_share, 2 / std::numbers::pi, 0.005);
  EXPECT_NEAR(bell.quantiles[0], 0.6745, 0.01);
  EXPECT_NEAR(bell.standard_deviation, 1, 0.01);
}

TEST(WeightStatistics, Refusals) {
  test::expect_bad_input({"K of x", "no weights"}, [] { deep::weight_statistics({}, "K of x"); });
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const std::vector<float> weights{0.0f, bad};
    test::expect_bad_input({"K of x", "not finite"}, [&] { deep::weight_statistics(weights, "K of x"); });
    test::expect_bad_input({"not finite"}, [&] { deep::weight_histogram(weights, 1, 3); });
  }
  const std::vector<float> zeros(4);
  EXPECT_EQ(deep::weight_statistics(zeros, "K").kurtosis, 0);
  test::expect_bad_input({"histogram"}, [&] { deep::weight_histogram(zeros, 0, 3); });
}

TEST(WeightHistogram, CountsEveryWeightOnce) {
  const std::vector<float> weights{-1.0f, -0.5f, 0.0f, 0.2f, 0.99f, 1.0f, 7.0f};
  EXPECT_EQ(deep::weight_histogram(weights, 1, 4), (std::vector<std::int64_t>{1, 1, 2, 3}));
}

TEST(WeightStatistics, MapsOfANetwork) {
  const auto network = example_encoder(5, {.blocks = 3, .heads = 2});
  EXPECT_EQ(deep::block_count(*network), 3);
  const auto all = deep::map_weights(*network, 'K');
  EXPECT_EQ(all.size(), 3u * 12 * 12);
  std::vector<float> joined;
  for (std::int64_t b = 0; b < 3; ++b)
    for (const float weight : deep::map_weights(*network, 'K', b)) joined.push_back(weight);
  EXPECT_EQ(all, joined);
  EXPECT_NE(all, deep::map_weights(*network, 'Q'));
}

TEST(WeightPage, HasTablesAndFigures) {
  const std::vector<deep::WeightModel> models{{"a", example_encoder(1)}, {"b", example_vit()}};
  const Page page = deep::weight_page(models);
  const Table table = deep::weight_table(models);
  ASSERT_EQ(table.rows.size(), 6u);
  EXPECT_EQ(table.rows[0][2], "288");  // 2 blocks of 12 x 12
  int figures = 0;
  for (const PageBlock& block : page.sections.front().blocks)
    if (const auto* figure = std::get_if<Figure>(&block)) {
      ++figures;
      ASSERT_EQ(figure->series.size(), 2u);
      double counted = 0;
      for (std::size_t i = 0; i < figure->series[0].y.size(); i += 2) counted += figure->series[0].y[i];
      EXPECT_EQ(counted, 288);
    }
  EXPECT_EQ(figures, 3);
  EXPECT_NE(to_html(page).find("27224"), std::string::npos);
}

}  // namespace
}  // namespace attmirror::view_tests

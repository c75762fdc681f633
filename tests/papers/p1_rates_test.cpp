// The rates of plain mirror descent: the quick version has the numbers of the full one where they do not depend
// on seeds.
#include "papers/result_of.hpp"
#include <attmirror/papers/experiment.hpp>

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

const Finding& finding(const std::string& quantity) {
  const auto found = std::ranges::find(test::quick_result("p1-rates").findings, quantity, &Finding::quantity);
  if (found == test::quick_result("p1-rates").findings.end())
    throw std::runtime_error("no finding \"" + quantity + "\"");
  return *found;
}

TEST(P1Rates, AllFindingsAreReproducedOrNew) {
  for (const Finding& f : test::quick_result("p1-rates").findings)
    EXPECT_TRUE(judge(f) == Verdict::reproduced || judge(f) == Verdict::unpublished)
        << f.quantity << ": " << f.ours;
  EXPECT_GE(test::quick_result("p1-rates").findings.size(), 40u);
}

TEST(P1Rates, NumbersOfIndependentCode) {
  EXPECT_NEAR(finding("p = 2, seed 1: ‖W‖ at k = 1e+04").ours, 16.356, 5e-4);
  EXPECT_NEAR(finding("p = 2, seed 1: D at k = 1e+06").ours, 0.0398, 5e-5);
  EXPECT_NEAR(finding("normalized, p = 3, seed 1: ‖W‖_p at k = 10000").ours, 31.5, 0.05);
  for (const char* p : {"1.5", "1.75", "2", "3"}) {
    const double apart = finding("p = " + std::string(p) +
                                 ": largest relative distance of the flow from plain steps, to k = 3e+04")
                             .ours;
    EXPECT_GT(apart, 0);
    EXPECT_LT(apart, 3e-4);
  }
}

// The exponent of D against log k: twice p - 1 below 2, and 2 from there on; the slope of the norm is |W_mm| in
// the end.
TEST(P1Rates, LimitsOfExponentAndSlope) {
  EXPECT_NEAR(finding("p = 1.5: the same, k = 1e200 to 1e300").ours, 1, 0.1);
  EXPECT_NEAR(finding("p = 1.75: the same, k = 1e200 to 1e300").ours, 1.5, 0.1);
  EXPECT_NEAR(finding("p = 2: the same, k = 1e200 to 1e300").ours, 2, 0.03);
  EXPECT_NEAR(finding("p = 2: slope of ‖W‖_p per log k over ‖W_mm‖_p, k = 1e200 to 1e300").ours, 1, 1e-3);
  const Finding& third = finding("p = 3: exponent a of D ~ (log k)^-a, k = 1e4 to 1e12");
  EXPECT_GT(third.ours, 1.8);
  EXPECT_LT(third.ours, 2.6);
  EXPECT_GT(third.standard_error, 0);
}

TEST(P1Rates, FiguresAreComplete) {
  ASSERT_EQ(test::quick_result("p1-rates").figures.size(), 3u);
  for (const Figure& figure : test::quick_result("p1-rates").figures) {
    EXPECT_NO_THROW(figure.validate());
    for (const Series& series : figure.series) EXPECT_LE(series.x.size(), 300u);
  }
  EXPECT_NO_THROW(test::quick_result("p1-rates").tables.at(0).table.validate());
  // Each curve ends below the bound that started with it.
  const Figure& rates = test::quick_result("p1-rates").figures.front();
  for (std::size_t i = 0; i + 1 < rates.series.size(); i += 2)
    EXPECT_LT(rates.series[i].y.back(), rates.series[i + 1].y.back());
}

}  // namespace
}  // namespace attmirror

// which_margin(): shares are shares of certified margins, do not depend on units, and rows say what is wrong
// with them.
#include "base/numbers.hpp"
#include "data/dataset_arrays.hpp"
#include "support/files.hpp"
#include "support/scaled_data.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/sweep/which_margin.hpp>

#include <cmath>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

std::vector<MarginOptimizer> three_optimizers() {
  return {{"md:1.75", "ℓ1.75 mirror descent", MirrorDescent{.p = 1.75, .normalized = true}},
          {"gd", "gradient descent", GradientDescent{.normalized = true}},
          {"sign", "sign descent", sign_descent()}};
}
const std::vector<Norm> three_norms{Norm::l(1.75), Norm::l(2), Norm::l(infinity)};

// The definition, by hand.
TEST(WhichMarginTable, SharesAreThoseOfCertifiedMargins) {
  const Dataset data = generate(SphereData{.seed = 4, .min_tokens = 3});
  const Attention model(data);
  const std::vector<MarginRun> runs = train_margin_runs(model, three_optimizers(), {.steps = 2000});
  const WhichMargin table = which_margin(runs, three_norms);
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.uncertified, 0);
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t c = 0; c < 3; ++c) {
      const Matrix& W = runs[r].run.last().W;
      const MarginSolution best = max_margin(data, runs[r].run.selected, three_norms[c]);
      const double margin = selection_margin(data, runs[r].run.selected, W) / norm(W, three_norms[c]);
      const MarginShare& share = table.rows[r].shares[c];
      EXPECT_DOUBLE_EQ(share.share, margin * best.norm);
      EXPECT_EQ(share.status, MarginStatus::certified);
      EXPECT_LE(share.share, 1 + 1e-8);
      EXPECT_LE(share.gap, 1e-8);
    }
  EXPECT_EQ(table.rows[1].predicted_column(table.norms), 1u);
}

TEST(WhichMarginTable, DefaultsReachWhatTheoryPredicts) {
  const Dataset data = generate(SphereData{.seed = 1});
  const Attention model(data);
  const WhichMargin table = which_margin(model, default_margin_optimizers(), default_margin_norms());
  ASSERT_EQ(table.rows.size(), 9u);
  ASSERT_EQ(table.norms.size(), 8u);
  EXPECT_EQ(table.uncertified, 0);
  for (const MarginRow& row : table.rows) {
    ASSERT_TRUE(row.predicted_column(table.norms)) << row.name;
    EXPECT_GT(row.shares[*row.predicted_column(table.norms)].share, 0.95) << row.name;
    EXPECT_EQ(row.largest_column(), row.predicted_column(table.norms)) << row.name;
    EXPECT_EQ(row.state, RowState::near_limit) << row.name << ": " << row.remark;
  }
}

// Rounding apart (step sizes have three digits), a thousand times larger tokens are the same data.
TEST(WhichMarginTable, UnitsOfTheDataDoNotMatter) {
  const Dataset data = generate(SphereData{.seed = 2});
  const Attention model(data);
  const std::vector<MarginOptimizer> optimizers = default_margin_optimizers();
  const WhichMarginOptions options{.steps = 5000};
  const WhichMargin table = which_margin(model, optimizers, three_norms, options);
  for (const auto& [tokens, queries] : {std::pair(1000.0, 1.0), std::pair(1.0, 1e-4), std::pair(1e-3, 1e6)}) {
    const Dataset other = test::scaled_data(data, tokens, queries);
    const Attention scaled(other);
    const WhichMargin again = which_margin(scaled, optimizers, three_norms, options);
    for (std::size_t r = 0; r < table.rows.size(); ++r)
      for (std::size_t c = 0; c < table.norms.size(); ++c)
        EXPECT_NEAR(again.rows[r].shares[c].share, table.rows[r].shares[c].share, 0.003)
            << table.rows[r].name << ", tokens by " << tokens << ", queries by " << queries;
  }
}

TEST(WhichMarginTable, RowsThatAreNotNearTheirLimitSaySo) {
  const Dataset data = generate(SphereData{.seed = 1});
  const Attention model(data);
  const std::vector<MarginOptimizer> gd{three_optimizers()[1]};
  const MarginRow at_once = which_margin(model, gd, three_norms, {.steps = 10}).rows.at(0);
  EXPECT_EQ(at_once.state, RowState::unsaturated);
  EXPECT_NE(at_once.remark.find("not decided"), std::string::npos) << at_once.remark;
  const MarginRow early = which_margin(model, gd, three_norms, {.steps = 400}).rows.at(0);
  EXPECT_EQ(early.state, RowState::rising) << early.max_softmax << " " << early.halfway;
  EXPECT_LT(early.halfway + 0.01, early.shares[1].share);
}

// Two equal tokens: no weights prefer one to the other. And a run that has no weights left.
TEST(WhichMarginTable, WhatHasNoMarginIsMarked) {
  NamedArrays arrays = arrays_of(generate(SphereData{.samples = 2, .tokens = 3, .dim = 4, .seed = 1}));
  std::vector<double> X = arrays.at("X").to_doubles();
  std::copy_n(X.begin(), 4, X.begin() + 4);
  std::copy_n(X.begin(), 4, X.begin() + 8);
  arrays.at("X") = Array(arrays.at("X").shape(), X);
  const Dataset data = make_dataset(arrays);
  const Attention model(data);
  const std::vector<MarginOptimizer> gd{three_optimizers()[1]};
  std::vector<MarginRun> runs = train_margin_runs(model, gd, {.steps = 100});
  const WhichMargin table = which_margin(runs, three_norms);
  EXPECT_EQ(table.rows[0].state, RowState::infeasible);
  EXPECT_TRUE(std::isnan(table.rows[0].shares[0].share));
  EXPECT_EQ(table.uncertified, 3);
  runs[0].run.status = RunStatus::diverged;
  runs[0].run.selected = {};
  const WhichMargin lost = which_margin(runs, three_norms);
  EXPECT_EQ(lost.rows[0].state, RowState::diverged);
  EXPECT_EQ(lost.problems, 0);
  EXPECT_FALSE(lost.rows[0].largest_column());
}

TEST(WhichMarginTable, CanBeStopped) {
  const Dataset data = generate(SphereData{.seed = 1});
  const Attention model(data);
  WhichMarginOptions options;
  options.work.stop = StopRequest::make();
  options.work.stop.request();
  const WhichMargin table = which_margin(model, three_optimizers(), three_norms, options);
  EXPECT_TRUE(table.interrupted);
  EXPECT_TRUE(table.rows.empty());
}

TEST(WhichMarginTable, ThreadsDoNotMatter) {
  const Dataset data = generate(SphereData{.seed = 3});
  const Attention model(data);
  WhichMarginOptions options{.steps = 500};
  options.work.threads = 1;
  const WhichMargin one = which_margin(model, three_optimizers(), three_norms, options);
  options.work.threads = 3;
  const WhichMargin three = which_margin(model, three_optimizers(), three_norms, options);
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(one.rows[r].shares[c].share, three.rows[r].shares[c].share);
}

}  // namespace
}  // namespace attmirror

// A study is a sweep file: what it says, and what is read back from its results.
#include "sweep/study.hpp"

#include "support/files.hpp"
#include <attmirror/data/generators.hpp>
#include <attmirror/sweep/plan.hpp>
#include <attmirror/sweep/sweep.hpp>

#include <cmath>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

class StudyTest : public ::testing::Test {
 protected:
  const test::TemporaryFolder folder;
  const Dataset data = generate(SphereData{.samples = 3, .tokens = 5, .dim = 6, .seed = 2, .min_tokens = 3});

  StudyTest() { save_dataset(folder / "data.npz", data); }

  StudyOptions options(const std::string& words, std::vector<double> p) const {
    StudyOptions study;
    study.file = "data.npz";
    study.optimizers = parse_optimizer_words(split_words(words), p);
    study.seeds = 3;
    study.steps = 1500;
    return study;
  }
  SweepPlan plan_of(const StudyOptions& study) const {
    return parse_sweep(study_file(data, study), "sweep.toml", folder.path());
  }
};

TEST_F(StudyTest, OptimizersWithoutAPAppearOnce) {
  const SweepPlan plan = plan_of(options("md,gd,steepest:nuclear,adam:0.95", {1.5, 3}));
  EXPECT_EQ(plan.runs.size(), 3u * 5);
  for (const char* axis : {"init_seed", "optimizer", "p", "norm", "beta2", "lr"})
    EXPECT_NE(std::ranges::find(plan.axes, axis), plan.axes.end()) << axis;
  EXPECT_EQ(plan.record.solutions.size(), 1u);
}

TEST_F(StudyTest, ResultsAreReadByOptimizer) {
  const SweepPlan plan = plan_of(options("md,sign", {1.5}));
  SweepDatabase results(folder / "results.db", SweepDatabase::Mode::create, header_of(plan));
  run_sweep(plan, results, {.threads = 1});
  const Study study = read_study(results);
  ASSERT_EQ(study.groups.size(), 2u);
  EXPECT_EQ(study.runs, 6);
  EXPECT_EQ(study.steps, 1500);
  EXPECT_EQ(study.seeds, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(study.groups[0].word, "md:1.5");
  EXPECT_EQ(study.groups[0].norm, "ℓ1.5");
  EXPECT_EQ(study.groups[1].norm, "ℓ∞");
  // Against the rows themselves.
  std::size_t i = 0;
  std::vector<std::string> wanted{"status", "own.margin_ratio", "optimizer", "init_seed"};
  results.for_each_run(wanted, [&](std::span<const Cell> cells) {
    const StudyGroup& group = study.groups[std::get<std::string>(cells[2]) == "md" ? 0 : 1];
    const double share = group.shares[static_cast<std::size_t>(std::get<std::int64_t>(cells[3]) - 1)];
    if (std::get<std::string>(cells[0]) == "ok")
      EXPECT_EQ(share, std::get<double>(cells[1]));
    else
      EXPECT_TRUE(std::isnan(share));
    ++i;
  });
  EXPECT_EQ(i, 6u);
  EXPECT_FALSE(study.groups[0].curve.empty());
}

TEST_F(StudyTest, WhatMakesNoSenseIsRefused) {
  test::expect_bad_input({"adagrad", "predicts no norm", "which-margin"},
                         [&] { study_file(data, options("adagrad", {})); });
  StudyOptions zero = options("gd", {});
  zero.model.put("init", std::string("zero"));
  test::expect_bad_input({"seeds is 3", "init is zero", "all starts are equal"},
                         [&] { study_file(data, zero); });
  zero.seeds = 1;
  EXPECT_EQ(plan_of(zero).runs.size(), 1u);
  StudyOptions none = options("gd", {});
  none.seeds = 0;
  test::expect_bad_input({"seeds is 0"}, [&] { study_file(data, none); });
  StudyOptions wrong = options("gd", {});
  wrong.lr = -1;
  test::expect_bad_input({"lr is -1"}, [&] { study_file(data, wrong); });
}

// Names of files may hold whatever TOML would take for its own.
TEST_F(StudyTest, NamesOfFilesSurvive) {
  StudyOptions study = options("gd", {});
  study.file = "a \"b\"\\c\t.npz";
  save_dataset(folder / study.file, data);
  EXPECT_EQ(plan_of(study).prepare(0).data->fingerprint(), data.fingerprint());
}

}  // namespace
}  // namespace attmirror

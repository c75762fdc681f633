// P4's Algorithm 1 through the training loop: what its propositions say, any optimizer, resume to the bit.
#include "support/files.hpp"
#include "support/same_bits.hpp"
#include <attmirror/next_token/partial_order.hpp>
#include <attmirror/next_token/realizable.hpp>
#include <attmirror/next_token/targets.hpp>
#include <attmirror/next_token/two_stage.hpp>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::expect_bad_input;

struct Language {
  RealizableData data;
  Embedding embedding;
  PartialOrders orders;
  explicit Language(EmbeddingKind kind, RealizableOptions options = {})
      : data(make_realizable(options)),
        embedding(make_embedding(options.vocabulary, {.kind = kind, .seed = 3})),
        orders(data.sentences, data.collocations) {}
  NextTokenData view() const { return {&embedding, &data.collocations, &data.sentences}; }
};

double metric(const Record& record, const std::string& name) {
  for (const Metric& metric : record.metrics)
    if (metric.name == name) return metric.value;
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

const Record& at_step(const DescentRun& run, std::int64_t step) {
  for (const Record& record : run.records)
    if (record.step == step) return record;
  ADD_FAILURE() << "no record of step " << step;
  return run.records.front();
}

// One-hot embeddings: the first gradient already points at W_ov*, and every later one too.
TEST(TwoStage, OneHotCollocationsAreAlignedFromTheFirstStep) {
  const Language language(EmbeddingKind::one_hot);
  const MarginSolution target =
      collocation_target(language.embedding, language.data.collocations, Norm::frobenius());
  EXPECT_EQ(target.status, MarginStatus::certified);
  EXPECT_NEAR(target.norm, std::sqrt(19.0), 1e-12);
  const StageOptions stage = paper_stage(Stage::collocation, 20, 3'000);
  const double lr = std::get<GradientDescent>(stage.optimizer).lr;
  EXPECT_DOUBLE_EQ(lr, 0.2 / std::sqrt(20.0));
  const NextTokenModel model(language.view(), Stage::collocation);
  const DescentRun run =
      descend(NextTokenObjective(model, {.W_ov = target.W}), stage.optimizer, stage.descent);
  EXPECT_EQ(run.status, RunStatus::completed);
  for (const Record& record : run.records) {
    if (record.step == 0) continue;
    EXPECT_LT(metric(record, "direction_W_ov"), 1e-12) << record.step;
    EXPECT_NEAR(record.norm / (static_cast<double>(record.step) * lr), 1, 1e-12);
    EXPECT_EQ(metric(record, "accuracy"), 1);
  }
  EXPECT_NEAR(std::log(run.loss), std::log(8.2e-13), 0.02);
}

// The second stage turns to W_kq* like 1/t while its norm grows linearly and its loss falls to the floor that the
// frozen W_ov leaves.
TEST(TwoStage, AttentionTurnsToItsTarget) {
  for (const EmbeddingKind kind : {EmbeddingKind::one_hot, EmbeddingKind::gaussian}) {
    const Language language(kind);
    const MarginSolution target = attention_target(language.embedding, language.orders, Norm::frobenius());
    ASSERT_EQ(target.status, MarginStatus::certified);
    const TwoStageRun run = train_two_stage(language.view(), paper_stage(Stage::collocation, 20, 3'000),
                                            paper_stage(Stage::attention, 20, 10'000), {.W_kq = target.W});
    const double lr = 0.05 / std::sqrt(20.0);
    double last = 1;
    for (const std::int64_t step : {100, 1'000, 3'162, 10'000}) {
      const Record& record = at_step(run.attention, step);
      const double gap = metric(record, "direction_W_kq");
      EXPECT_LT(gap, last);
      EXPECT_LT(gap * static_cast<double>(step), 250) << step;
      const double rate = record.norm / (static_cast<double>(step) * lr);
      EXPECT_GT(rate, .85);
      EXPECT_LE(rate, 1 + 1e-12);
      last = gap;
    }
    EXPECT_EQ(metric(run.attention.records.back(), "accuracy"), 1);
    EXPECT_GT(run.attention.loss, run.collocation.loss * .1);
    EXPECT_LT(run.attention.loss, run.collocation.loss * 100) << "the floor of the frozen W_ov";
    EXPECT_NEAR(accuracy(language.data.sentences, language.embedding, run.last()), 1, 0);
    if (kind == EmbeddingKind::one_hot) {
      const Matrix scores = attention_scores(language.embedding, run.last().matrix("W_kq"));
      EXPECT_TRUE(extended_order(scores, language.orders).holds);
      const Sentences unseen = unseen_sentences(language.data, UnseenKind::non_comparable, 300, 5);
      EXPECT_EQ(accuracy(unseen, language.embedding, run.last()), 1) << "by the extended order";
    }
  }
}

std::vector<Optimizer> many_optimizers() {
  return {MirrorDescent{.p = 1.5, .lr = .02, .normalized = true},
          MirrorDescent{.p = 3, .lr = .02, .normalized = true},
          MirrorDescent{.p = 1.1, .lr = .05},
          GradientDescent{.lr = .5, .momentum = {MomentumKind::heavy_ball, .9}},
          GradientDescent{.lr = 1, .schedule = {ScheduleKind::polyak}},
          sign_descent(.01),
          coordinate_descent(.05),
          spectral_descent(.02),
          muon(.02, .9, Orthogonalization::exact),
          Adam{.lr = .01},
          Lion{.lr = .01},
          AdaGrad{}};
}

TEST(TwoStage, EveryOptimizerTrainsBothStages) {
  const Language language(EmbeddingKind::gaussian, {.vocabulary = 8, .sentences = 24});
  for (const Optimizer& optimizer : many_optimizers()) {
    const StageOptions stage{optimizer, {.steps = 400}};
    const TwoStageRun run = train_two_stage(language.view(), stage, stage);
    EXPECT_EQ(run.attention.status, RunStatus::completed) << to_string(optimizer);
    EXPECT_LT(run.collocation.loss, run.collocation.records.front().loss * .7) << to_string(optimizer);
    EXPECT_LT(run.attention.loss, run.attention.records.front().loss) << to_string(optimizer);
    const DescentRun joint = train_joint(language.view(), stage);
    EXPECT_LT(joint.loss, joint.records.front().loss * .9) << to_string(optimizer);
  }
}

TEST(TwoStage, AStopOfTheFirstStageLeavesTheSecondUnbegun) {
  const Language language(EmbeddingKind::gaussian, {.vocabulary = 8, .sentences = 24});
  StageOptions stage = paper_stage(Stage::collocation, 8, 1'000);
  stage.callbacks.stop = StopRequest::make();
  stage.callbacks.stop.request();
  const TwoStageRun run = train_two_stage(language.view(), stage, stage);
  EXPECT_EQ(run.collocation.status, RunStatus::interrupted);
  EXPECT_EQ(run.collocation.steps, 0);
  EXPECT_TRUE(run.attention.records.empty());
  EXPECT_EQ(train_joint(language.view(), stage).status, RunStatus::interrupted);
}

TEST(TwoStage, TheSameBitsForAnyThreadsAndAfterAnyStop) {
  const Language language(EmbeddingKind::gaussian, {.vocabulary = 30, .sentences = 400});
  const NextTokenModel model(language.view(), Stage::joint);
  const NextTokenObjective objective(model);
  const Optimizer optimizer = MirrorDescent{.p = 1.5, .lr = .02, .normalized = true};
  const DescentRun whole = descend(objective, optimizer, {.steps = 60});
  const DescentRun threads = descend(objective, optimizer, {.steps = 60, .threads = 3});
  EXPECT_TRUE(
      test::same_bits(whole.final_parameters.matrix("W_ov"), threads.final_parameters.matrix("W_ov")));
  EXPECT_TRUE(
      test::same_bits(whole.final_parameters.matrix("W_kq"), threads.final_parameters.matrix("W_kq")));

  Descent first(objective, optimizer, {.steps = 25});
  first.run();
  Descent second(objective, optimizer, {.steps = 60}, first.checkpoint());
  const DescentRun resumed = second.run();
  EXPECT_TRUE(
      test::same_bits(whole.final_parameters.matrix("W_kq"), resumed.final_parameters.matrix("W_kq")));
  EXPECT_TRUE(
      test::same_bits(whole.final_parameters.matrix("W_ov"), resumed.final_parameters.matrix("W_ov")));
  ASSERT_EQ(whole.records.size(), resumed.records.size());
  for (std::size_t r = 0; r < whole.records.size(); ++r) {
    EXPECT_EQ(whole.records[r].loss, resumed.records[r].loss);
    ASSERT_EQ(whole.records[r].metrics.size(), resumed.records[r].metrics.size());
    for (std::size_t m = 0; m < whole.records[r].metrics.size(); ++m) {
      EXPECT_EQ(whole.records[r].metrics[m].name, resumed.records[r].metrics[m].name);
      EXPECT_EQ(whole.records[r].metrics[m].value, resumed.records[r].metrics[m].value);
    }
  }
}

TEST(TwoStage, ThePlainEngineWalksTheSamePath) {
  const Language language(EmbeddingKind::gaussian, {.vocabulary = 10, .sentences = 40});
  const NextTokenModel model(language.view(), Stage::joint);
  const Optimizer optimizer = GradientDescent{.lr = .05, .normalized = true};
  const DescentRun fast = descend(NextTokenObjective(model), optimizer, {.steps = 200});
  const DescentRun plain =
      descend(NextTokenObjective(model, {.path = NextTokenPath::plain}), optimizer, {.steps = 200});
  EXPECT_LT((fast.final_parameters.matrix("W_kq") - plain.final_parameters.matrix("W_kq")).norm(), 1e-10);
  EXPECT_LT((fast.final_parameters.matrix("W_ov") - plain.final_parameters.matrix("W_ov")).norm(), 1e-10);
}

TEST(TwoStage, RefusesWhatDoesNotFit) {
  const Language language(EmbeddingKind::one_hot, {.vocabulary = 6, .sentences = 12});
  const NextTokenModel model(language.view(), Stage::attention);
  const Optimizer optimizer = GradientDescent{};
  const auto start = [&](Parameters given) {
    DescentOptions options{.steps = 1};
    options.init.given = std::move(given);
    descend(NextTokenObjective(model), optimizer, options);
  };
  expect_bad_input({"W_ov is frozen and 0"}, [&] { start({}); });
  expect_bad_input({"W_ov has shape (5, 6): expected (6, 6)"}, [&] {
    start({.matrices = {{"W_ov", Matrix::Ones(5, 6)}}});
  });
  expect_bad_input({"an initial K is given", "W_kq"}, [&] {
    start({.K = Matrix::Ones(6, 6), .matrices = {{"W_ov", Matrix::Ones(6, 6)}}});
  });
  expect_bad_input({"the target of W_kq has shape (6, 5): expected (6, 6)"},
                   [&] { NextTokenObjective(model, {.W_kq = Matrix::Ones(6, 5)}); });
  const Sentences others(7);
  expect_bad_input({"vocabulary of 7: expected 6"}, [&] { NextTokenObjective(model, {.unseen = &others}); });
  Parameters bad{.matrices = {{"W_ov", Matrix::Ones(6, 6)}}};
  bad.matrices["W_ov"](2, 3) = std::nan("");
  expect_bad_input({"W_ov[2,3] is nan"}, [&] { start(bad); });
}

TEST(DirectionGap, KeepsItsDigits) {
  Matrix a = Matrix::Zero(2, 2), b = Matrix::Zero(2, 2);
  a(0, 0) = b(0, 0) = 1;
  EXPECT_EQ(direction_gap(a, 3 * b), 0);
  b(1, 1) = 1e-9;  // 1 - cos = 5e-19: no double below 1 is that near
  EXPECT_NEAR(direction_gap(a, b) / 5e-19, 1, 1e-6);
  EXPECT_NEAR(direction_gap(a, -a), 2, 1e-15);
  EXPECT_TRUE(std::isnan(direction_gap(a, Matrix::Zero(2, 2))));
}

}  // namespace
}  // namespace attmirror

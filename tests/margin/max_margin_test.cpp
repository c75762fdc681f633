// The driver on the papers' own problems: golden solutions, published costs, ranks, and every p.
#include "support/golden.hpp"
#include "support/random_data.hpp"
#include "support/same_bits.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/margin/general_svm.hpp>
#include <attmirror/margin/max_margin.hpp>
#include <attmirror/margin/support.hpp>
#include <attmirror/mirror/direction.hpp>

#include <cmath>
#include <numbers>
#include <string>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::GoldenRuns;

Dataset sphere_data(std::int64_t n, std::int64_t T, std::int64_t d, std::uint64_t seed) {
  return generate(SphereData{.samples = n, .tokens = T, .dim = d, .seed = seed});
}

// Certified, and the certificate in the solution is the one that the raw data give.
void expect_certified(const MarginSolution& svm, const Dataset& data, const MarginProblem& problem,
                      double tol) {
  EXPECT_EQ(svm.status, MarginStatus::certified) << svm.report();
  EXPECT_LE(svm.gap, tol);
  const Certificate again = certify(data, problem, svm.kind, svm.W, svm.lambda);
  EXPECT_EQ(again.gap, svm.gap);
  EXPECT_TRUE(again.certifies(tol));
  EXPECT_GE(again.worst_margin, 1 - 1e-12);
}

TEST(MaxMargin, NinetyGoldenSolutions) {
  const GoldenRuns golden(test::fixture("golden_margins.npz"));
  ASSERT_EQ(golden.seeds(), 30);
  for (const auto method : {MarginMethod::automatic, MarginMethod::interior_point})
    for (const auto& [p, tag] : test::golden_geometries)
      for (std::ptrdiff_t seed = 0; seed < golden.seeds(); ++seed) {
        const Dataset data = golden.data(seed);
        const Selection alpha{golden.selected(tag, seed)};
        const MarginSolution svm = max_margin(data, alpha, Norm::l(p), {.method = method});
        SCOPED_TRACE(std::string(tag) + " seed " + std::to_string(seed + 1));
        expect_certified(svm, data, AttentionSvm{alpha}, 1e-10);
        const double expected = test::slice(golden.array(std::string(tag) + "_svm_norm"), seed)[0];
        EXPECT_NEAR(svm.norm / expected, 1, 1e-9);
      }
}

TEST(MaxMargin, GoldenWeights) {
  const GoldenRuns golden(test::fixture("golden_local.npz"));
  for (const auto& [p, tag] : test::golden_geometries)
    for (std::ptrdiff_t seed = 0; seed < golden.seeds(); ++seed) {
      const MarginSolution svm =
          max_margin(golden.data(seed), Selection{golden.selected(tag, seed)}, Norm::l(p));
      EXPECT_LT(test::relative_error(svm.W, golden.solution(tag, seed)), 1e-5) << tag << " seed " << seed;
    }
}

TEST(MaxMargin, EndsWhenAsked) {
  const Dataset data = sphere_data(6, 8, 10, 1);
  MarginOptions options;
  options.stop = StopRequest::make();
  EXPECT_EQ(max_margin(data, optimal_tokens(data), Norm::nuclear(), options).status, MarginStatus::certified);
  options.stop.request();
  for (const Norm& norm : {Norm::frobenius(), Norm::l(1.5), Norm::nuclear()}) {
    const MarginSolution svm = max_margin(data, optimal_tokens(data), norm, options);
    EXPECT_EQ(svm.status, MarginStatus::stopped) << to_string(norm);
    EXPECT_EQ(svm.reason, "a stop was requested");
  }
}

// P1's Setting B: seed 1, all p select the optimal tokens.
TEST(MaxMargin, SettingB) {
  const Dataset data = sphere_data(6, 8, 10, 1);
  const Selection opt = optimal_tokens(data);
  EXPECT_EQ(opt.tokens, (std::vector<std::int64_t>{3, 2, 6, 2, 6, 2}));
  struct Expected {
    double p, norm;
    std::size_t active;
    double w12, w34;
  };
  for (const auto& [p, norm, active, w12, w34] :
       {Expected{1.75, 3.45949206, 18, -.189537, -.023064}, Expected{2, 2.66015688, 19, -.220378, -.039626},
        Expected{3, 1.41786894, 17, -.281828, -.081329}}) {
    const MarginSolution svm = max_margin(data, opt, Norm::l(p));
    expect_certified(svm, data, AttentionSvm{opt}, 1e-10);
    EXPECT_NEAR(svm.norm / norm, 1, 1e-6);
    EXPECT_EQ(svm.support.size(), active);
    EXPECT_NEAR(svm.W(1, 2), w12, 2e-6);
    EXPECT_NEAR(svm.W(3, 4), w34, 2e-6);
  }
  const MarginSolution nuclear = max_margin(data, opt, Norm::nuclear());
  expect_certified(nuclear, data, AttentionSvm{opt}, 1e-8);
  EXPECT_NEAR(nuclear.norm / 4.635479, 1, 1e-6);
  EXPECT_EQ(nuclear.dual_multiplicity, 3);
  EXPECT_LT(nuclear.singular_values[3], 1e-4 * nuclear.singular_values[0]);
}

// P3's two visualizations.
TEST(MaxMargin, Visualizations) {
  const Dataset first = generate(Visualization1Data{}), second = generate(Visualization2Data{});
  const Selection one = optimal_tokens(first), two = optimal_tokens(second);
  EXPECT_NEAR(max_margin(first, one, Norm::frobenius()).norm, 8.68573, 1e-5);
  EXPECT_NEAR(max_margin(second, two, Norm::frobenius()).norm, 1.52636, 1e-5);
  const MarginSolution a = max_margin(first, one, Norm::nuclear()),
                       b = max_margin(second, two, Norm::nuclear());
  expect_certified(a, first, AttentionSvm{one}, 1e-8);
  expect_certified(b, second, AttentionSvm{two}, 1e-8);
  EXPECT_NEAR(a.norm, 9.75481, 1e-5);
  EXPECT_NEAR(b.norm, 1.87260, 1e-5);
  EXPECT_EQ(a.dual_multiplicity, 1);
  EXPECT_EQ(b.dual_multiplicity, 2);
  const Matrix expected{{.48671, .46926}, {7.00553, 6.75439}};
  EXPECT_LT((a.W - expected).norm(), 1e-4);
}

// P1's Setting C: attention and decoder.
TEST(MaxMargin, JointTraining) {
  const Dataset data = generate(JointData{});
  struct Expected {
    double p;
    Selection alpha;
    Matrix W, v;
  };
  for (const auto& [p, alpha, W, v] :
       {Expected{
            1.75, {{1, 0}}, Matrix{{-.081802, -.062741}, {-.077671, .198514}}, Matrix{{.025510}, {.459184}}},
        Expected{
            2, {{1, 0}}, Matrix{{-.083919, -.067505}, {-.079436, .194544}}, Matrix{{.025510}, {.459184}}},
        Expected{
            3, {{0, 0}}, Matrix{{.109823, -.032279}, {-.066640, .196870}}, Matrix{{-.183150}, {.421245}}}}) {
    const MarginSolution attention = max_margin(data, alpha, Norm::l(p));
    expect_certified(attention, data, AttentionSvm{alpha}, 1e-10);
    EXPECT_LT((attention.W - W).cwiseAbs().maxCoeff(), 1e-6);
    const MarginSolution decoder = max_margin(data, DecoderSvm{alpha}, Norm::l(p));
    expect_certified(decoder, data, DecoderSvm{alpha}, 1e-10);
    EXPECT_LT((decoder.W - v).cwiseAbs().maxCoeff(), 1e-6);
  }
}

// P2: half the squared norm is the notebooks' cost.
TEST(MaxMargin, PromptCosts) {
  const auto cost = [](const Dataset& data, const PromptSvm& problem) {
    const MarginSolution svm = max_margin(data, problem, Norm::frobenius());
    EXPECT_EQ(svm.status, MarginStatus::certified);
    return svm.norm * svm.norm / 2;
  };
  const Dataset several = generate(MultiInputData{});
  const Selection first{{0, 0, 0}};
  EXPECT_NEAR(cost(several, {first}), 0.313189, 1e-6);
  EXPECT_NEAR(cost(several, {first, score_blind_key_weights()}), 0.371338, 1e-6);
  const Dataset single = generate(SingleInputData{});
  EXPECT_NEAR(cost(single, {Selection{{0}}, score_blind_key_weights()}), 0.49505, 1e-5);
  EXPECT_NEAR(cost(single, {Selection{{1}}, score_blind_key_weights()}), 0.5, 1e-9);
}

// P2's joint training: where an input is no support vector of the decoder, its attention constraint relaxes to >= 0.
TEST(MaxMargin, RelaxedPrompt) {
  const Selection best{{1, 1, 1}};
  const auto solve = [&](JointPromptData::LabelMargin kind) {
    const Dataset data = generate(JointPromptData{kind});
    const MarginSolution decoder = max_margin(data, DecoderSvm{best}, Norm::frobenius());
    EXPECT_LT((decoder.W - Matrix{{0.0}, {1.0}}).norm(), 1e-9);
    const std::vector<double> bounds = relaxed_bounds(data, decoder.support);
    return std::pair{max_margin(data, PromptSvm{best}, Norm::frobenius()),
                     max_margin(data, PromptSvm{best, {}, bounds}, Norm::frobenius())};
  };
  const auto [tight, tight_relaxed] = solve(JointPromptData::LabelMargin::tight);
  EXPECT_LT((tight.W - Matrix{{4.0 / 3}, {1.0 / 3}}).norm(), 1e-9);
  EXPECT_LT((tight_relaxed.W - tight.W).norm(), 1e-12);
  const auto [slack, relaxed] = solve(JointPromptData::LabelMargin::slack);
  EXPECT_EQ(relaxed.status, MarginStatus::certified) << relaxed.report();
  EXPECT_LT((slack.W - Matrix{{1.25}, {.25}}).norm(), 1e-9);
  EXPECT_LT((relaxed.W - Matrix{{1.0}, {0.0}}).norm(), 1e-9);
}

// The headline p of P1 and far beyond, on its size.
TEST(MaxMargin, EveryPAtThePapersSize) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Dataset data = sphere_data(6, 8, 10, seed);
    const Selection opt = optimal_tokens(data);
    for (const double p :
         {1.001, 1.01, 1.05, 1.1, 1.3, 1.9, 1.999, 2.001, 2.5, std::numbers::pi, 5.0, 10.0, 50.0}) {
      SCOPED_TRACE("p = " + std::to_string(p) + ", seed " + std::to_string(seed));
      expect_certified(max_margin(data, opt, Norm::l(p)), data, AttentionSvm{opt}, 1e-10);
    }
  }
}

TEST(MaxMargin, EveryNormAtThePapersSize) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Dataset data = sphere_data(6, 8, 10, seed);
    const Selection opt = optimal_tokens(data);
    for (const char* name :
         {"1", "inf", "nuclear", "spectral", "schatten:1.1", "schatten:1.5", "schatten:3", "schatten:10"}) {
      SCOPED_TRACE(std::string(name) + ", seed " + std::to_string(seed));
      expect_certified(max_margin(data, opt, parse_norm(name)), data, AttentionSvm{opt}, 1e-8);
    }
  }
}

// P3's rank study with infeasible problems counted as such: mean ranks over the seeds 0 to 39 of each cell. A solver
// that gives up on large norms calls more of them infeasible (26 of 40 at n = 5, d = 2): two there have certified
// solutions of norm 899 and 398, and one at n = 10, d = 4 has norm 2460.
TEST(MaxMargin, CertifiedRanks) {
  struct Cell {
    std::int64_t n, T, d;
    double infeasible, frobenius, nuclear;
  };
  for (const auto& [n, T, d, share, frobenius, nuclear] :
       {Cell{5, 5, 2, .6, 2, 1.6}, Cell{5, 5, 3, .12, 2.97, 2.5}, Cell{5, 5, 5, 0, 4.88, 2.6},
        Cell{5, 5, 10, 0, 5, 2.5}, Cell{10, 5, 2, .95, 2, 2}, Cell{10, 5, 4, .15, 4, 3.4},
        Cell{10, 5, 10, 0, 9.97, 3.8}}) {
    SCOPED_TRACE(std::to_string(n) + " sequences, d = " + std::to_string(d));
    int infeasible = 0, feasible = 0;
    double rank_frobenius = 0, rank_nuclear = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const Dataset data = sphere_data(n, T, d, seed);
      const Selection opt = optimal_tokens(data);
      const MarginSolution f = max_margin(data, opt, Norm::frobenius());
      const MarginSolution s = max_margin(data, opt, Norm::nuclear());
      ASSERT_NE(f.status, MarginStatus::stopped) << seed << f.report();
      ASSERT_EQ(s.status, f.status) << seed << s.report();
      if (f.status == MarginStatus::infeasible) {
        ++infeasible;
        EXPECT_GE(f.conflict.size(), 2u);
        continue;
      }
      ++feasible;
      const auto rank = [](const Vector& values) {
        return static_cast<double>((values.array() > 1e-4 * values[0]).count());
      };
      rank_frobenius += rank(f.singular_values);
      rank_nuclear += rank(s.singular_values);
      EXPECT_LE(rank(s.singular_values), static_cast<double>(s.dual_multiplicity));
    }
    EXPECT_NEAR(infeasible / 40.0, share, .013);
    EXPECT_NEAR(rank_frobenius / feasible, frobenius, .051);
    EXPECT_NEAR(rank_nuclear / feasible, nuclear, .13);
  }
}

TEST(MaxMargin, RankLimitedNuclear) {
  const Dataset data = sphere_data(6, 8, 10, 1);
  const Selection opt = optimal_tokens(data);
  const MarginSolution free = max_margin(data, opt, Norm::nuclear());
  const MarginSolution enough = max_margin(data, opt, Norm::nuclear(), {.max_rank = 3});
  EXPECT_EQ(enough.status, MarginStatus::certified) << enough.report();
  EXPECT_NEAR(enough.norm / free.norm, 1, 2e-8);
  EXPECT_LT(enough.singular_values[3], 1e-14 * enough.singular_values[0]);
  const MarginSolution few = max_margin(data, opt, Norm::nuclear(), {.max_rank = 2});
  EXPECT_EQ(few.status, MarginStatus::stopped);
  EXPECT_NE(few.reason.find("rank above 2"), std::string::npos) << few.reason;
  EXPECT_NEAR(few.dual / free.norm, 1, 2e-8);
}

TEST(MaxMargin, BatchGivesTheBitsOfSingleCalls) {
  std::vector<Dataset> sets;
  for (std::uint64_t seed = 0; seed < 24; ++seed) sets.push_back(sphere_data(6, 8, 10, seed));
  std::vector<MarginTask> tasks;
  for (std::size_t i = 0; i < sets.size(); ++i)
    tasks.push_back(
        {&sets[i], AttentionSvm{optimal_tokens(sets[i])}, Norm::l(std::array{1.75, 2.0, 3.0}[i % 3])});
  for (const int threads : {1, 2, 8}) {
    const std::vector<MarginSolution> all = max_margins(tasks, {.threads = threads});
    ASSERT_EQ(all.size(), tasks.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const MarginSolution one = max_margin(sets[i], tasks[i].problem, tasks[i].norm);
      EXPECT_EQ(all[i].status, MarginStatus::certified);
      EXPECT_TRUE(test::same_bits(all[i].W, one.W));
      EXPECT_EQ(all[i].lambda, one.lambda);
    }
  }
}

TEST(MaxMargin, WarmStartsLeadToTheSameAnswer) {
  const Dataset data = sphere_data(6, 8, 10, 3);
  const Selection opt = optimal_tokens(data);
  const MarginConstraints rows = constraints(data, AttentionSvm{opt});
  WarmStart start;
  for (const double p : {2.0, 1.8, 1.5, 1.2, 1.1, 1.5, 3.0, 4.0, 2.0}) {
    const MarginSolution cold = max_margin(data, opt, Norm::l(p)),
                         warm = max_margin(data, opt, Norm::l(p), {}, start);
    EXPECT_EQ(warm.status, MarginStatus::certified) << p << warm.report();
    EXPECT_NEAR(warm.norm / cold.norm, 1, 1e-10);
    start = {warm.W, warm.lambda};
  }
  start.W.setConstant(1e300);
  start.lambda.setConstant(-1);
  EXPECT_EQ(max_margin(data, opt, Norm::l(1.5), {}, start).status, MarginStatus::certified);
}

TEST(MaxMargin, SeveralQueriesAndCausalMasks) {
  const Dataset several = generate(SphereData{.samples = 4, .tokens = 5, .dim = 12, .seed = 2, .queries = 2});
  const Selection opt = optimal_tokens(several);
  const Dataset causal = with_causal_mask(generate(SphereData{
      .samples = 3, .tokens = 4, .dim = 14, .seed = 5, .query_from = SphereData::QueryFrom::all_tokens}));
  const Selection last = optimal_tokens(causal);
  for (const Norm& norm : {Norm::l(1.5), Norm::frobenius(), Norm::l(4), Norm::nuclear()}) {
    expect_certified(max_margin(several, opt, norm), several, AttentionSvm{opt}, 1e-8);
    expect_certified(max_margin(causal, last, norm), causal, AttentionSvm{last}, 1e-8);
  }
  // The query at token k sees k others at most: 0 + 1 + 2 + 3 constraints a sequence.
  EXPECT_EQ(constraints(causal, AttentionSvm{last}).count(), 3 * 6);
}

}  // namespace
}  // namespace attmirror

// svm.npz: what is written comes back, and what does not fit is refused in a sentence.
#include "support/files.hpp"
#include "support/random_data.hpp"
#include "support/same_bits.hpp"
#include <attmirror/data/npz.hpp>
#include <attmirror/margin/svm_file.hpp>

#include <limits>

namespace attmirror::test {
namespace {

Dataset small_set() { return generate(SphereData{.samples = 3, .tokens = 4, .dim = 5, .seed = 2}); }

// A solution that nobody computed: the file does not care.
MarginSolution made_up(const Dataset& data, const MarginProblem& problem) {
  const MarginConstraints all = constraints(data, problem);
  MarginSolution solution;
  solution.status = MarginStatus::certified;
  solution.kind = Norm::l(1.75);
  solution.W = random_matrix(all.rows(), all.cols(), 5);
  solution.lambda = random_matrix(all.count(), 1, 6).cwiseAbs();
  solution.norm = 3;
  solution.dual = 2.5;
  solution.gap = 1.0 / 6;
  solution.support = {0, all.count() - 1};
  solution.method = "guessed";
  return solution;
}

TEST(SvmFile, RoundTripsEveryKindOfWeights) {
  const TemporaryFolder folder;
  const Dataset data = small_set();
  const Selection alpha{{1, 0, 3}};
  const Matrix keys = random_matrix(5, 5, 9);
  for (const MarginProblem& problem :
       {MarginProblem(AttentionSvm{alpha}), MarginProblem(PromptSvm{alpha, keys}),
        MarginProblem(DecoderSvm{alpha}), MarginProblem(PromptSvm{alpha, {}, {1, 0, 1}})}) {
    const MarginSolution solution = made_up(data, problem);
    save_solution(folder / "svm.npz", data, problem, solution);
    const SavedSolution saved = load_solution(folder / "svm.npz", data);
    EXPECT_EQ(saved.problem, problem_name(problem));
    EXPECT_EQ(saved.kind, Norm::l(1.75));
    EXPECT_EQ(saved.status, MarginStatus::certified);
    EXPECT_TRUE(test::same_bits(saved.weights(problem), solution.W)) << problem_name(problem);
    EXPECT_EQ(saved.lambda, solution.lambda);
    EXPECT_EQ(saved.alpha, alpha);
    EXPECT_EQ(saved.data_fingerprint, data.fingerprint());
    const MarginConstraints all = constraints(data, problem);
    ASSERT_EQ(saved.constraints.size(), all.origins().size());
    EXPECT_TRUE(std::equal(saved.constraints.begin(), saved.constraints.end(), all.origins().begin()));
    EXPECT_EQ(saved.support, (std::vector{all.origins().front(), all.origins().back()}));
    EXPECT_EQ(matched_multipliers(saved.lambda, saved.constraints, all, Unmatched::refuse, "lambda"),
              solution.lambda);
  }
  EXPECT_EQ(folder.names().size(), 1u);
}

TEST(SvmFile, NamesWhatNumpyReads) {
  const TemporaryFolder folder;
  const Dataset data = small_set();
  const MarginProblem problem = PromptSvm{Selection{{1, 0, 3}}, random_matrix(5, 5, 9)};
  save_solution(folder / "svm.npz", data, problem, made_up(data, problem));
  const NamedArrays arrays = load_npz(folder / "svm.npz");
  EXPECT_EQ(arrays.at("p").shape(), (Shape{5}));
  EXPECT_FALSE(arrays.contains("W"));
  EXPECT_EQ(arrays.at("lambda").shape(), (Shape{9}));
  EXPECT_EQ(arrays.at("constraints").shape(), (Shape{9, 3}));
  EXPECT_EQ(arrays.at("constraints").dtype(), DType::int64);
  EXPECT_EQ(arrays.at("alpha").shape(), (Shape{3}));
  EXPECT_EQ(arrays.at("support").shape(), (Shape{2, 3}));
  EXPECT_EQ(arrays.at("bounds").to_doubles(), std::vector<double>(9, 1.0));
  EXPECT_EQ(arrays.at("norm").to_doubles(), std::vector{3.0});
}

TEST(SvmFile, HasAnAxisForSeveralQueries) {
  const TemporaryFolder folder;
  const Dataset data = generate(SphereData{.samples = 2, .tokens = 3, .dim = 4, .seed = 1, .queries = 2});
  const MarginProblem problem = AttentionSvm{Selection{{0, 1, 2, 0}}};
  save_solution(folder / "svm.npz", data, problem, made_up(data, problem));
  EXPECT_EQ(load_npz(folder / "svm.npz").at("alpha").shape(), (Shape{2, 2}));
  EXPECT_EQ(load_solution(folder / "svm.npz", data).alpha, (Selection{{0, 1, 2, 0}}));
  EXPECT_EQ(load_solution(folder / "svm.npz", data).constraints[2], (ConstraintOrigin{0, 1, 0}));
}

TEST(SvmFile, KeepsAProofWithoutWeights) {
  const TemporaryFolder folder;
  const Dataset data = small_set();
  const MarginProblem problem = AttentionSvm{Selection{{1, 0, 3}}};
  MarginSolution solution = made_up(data, problem);
  solution.status = MarginStatus::infeasible;
  solution.W.setConstant(std::numeric_limits<double>::quiet_NaN());
  save_solution(folder / "svm.npz", data, problem, solution);
  const SavedSolution saved = load_solution(folder / "svm.npz", data);
  EXPECT_EQ(saved.status, MarginStatus::infeasible);
  EXPECT_EQ(saved.W.size(), 0);
  EXPECT_EQ(saved.lambda, solution.lambda);
}

TEST(SvmFile, HoldsBothHalvesOfAGeneralProblem) {
  const TemporaryFolder folder;
  const Dataset data = small_set();
  const GeneralFiniteSvm problem{{{{0, 2}, {1}, {0, 1, 3}}},
                                 {Vector::Zero(4), Vector::Ones(4), Vector::LinSpaced(4, 0, 1)}};
  GeneralSolution solution{made_up(data, GeneralDirectionSvm{problem.kept}), made_up(data, problem), 7.5};
  EXPECT_EQ(solution.status(), MarginStatus::certified);
  solution.finite.status = MarginStatus::stopped;
  EXPECT_EQ(solution.status(), MarginStatus::stopped);
  solution.direction.status = MarginStatus::infeasible;
  EXPECT_EQ(solution.status(), MarginStatus::infeasible);
  save_solution(folder / "svm.npz", data, problem, solution);
  const SavedSolution saved = load_solution(folder / "svm.npz", data);
  EXPECT_EQ(saved.problem, "general");
  EXPECT_TRUE(test::same_bits(saved.W, solution.direction.W));
  EXPECT_TRUE(test::same_bits(saved.W_fin, solution.finite.W));
  EXPECT_TRUE(test::same_bits(saved.weights(problem), solution.finite.W));
  EXPECT_EQ(saved.lambda_fin, solution.finite.lambda);
  EXPECT_EQ(saved.constraints_fin.size(), 3u);
  EXPECT_EQ(load_npz(folder / "svm.npz").at("R").to_doubles(), std::vector{7.5});
  EXPECT_EQ(load_npz(folder / "svm.npz").at("kept").shape(), (Shape{6, 3}));
}

TEST(SvmFile, EqualSolutionsAreEqualFiles) {
  const TemporaryFolder folder;
  const Dataset data = small_set();
  const MarginProblem problem = AttentionSvm{Selection{{1, 0, 3}}};
  MarginSolution solution = made_up(data, problem);
  save_solution(folder / "a.npz", data, problem, solution);
  solution.seconds = 12;  // a clock is no part of the answer
  save_solution(folder / "b.npz", data, problem, solution);
  EXPECT_EQ(load_npz(folder / "a.npz"), load_npz(folder / "b.npz"));
}

TEST(SvmFile, ReadsTheFilesOfOthers) {
  const TemporaryFolder folder;
  const Dataset data = small_set();
  const Matrix W = random_matrix(5, 5, 1);
  save_npz(folder / "w.npz", {{"W", Array({5, 5}, std::span(W.data(), 25))}});
  const SavedSolution saved = load_solution(folder / "w.npz", data);
  EXPECT_EQ(saved.W, W);
  EXPECT_EQ(saved.problem, "");
  EXPECT_FALSE(saved.kind || saved.status || saved.alpha || saved.data_fingerprint);
  EXPECT_EQ(saved.lambda.size(), 0);
}

TEST(SvmFile, RefusesWhatDoesNotFit) {
  const TemporaryFolder folder;
  const Dataset data = small_set();
  const MarginProblem problem = AttentionSvm{Selection{{1, 0, 3}}};
  save_solution(folder / "good.npz", data, problem, made_up(data, problem));
  const auto refuses = [&](const char* name, const Array& array,
                           std::initializer_list<std::string_view> words) {
    NamedArrays arrays = load_npz(folder / "good.npz");
    arrays.insert_or_assign(name, array);
    save_npz(folder / "bad.npz", arrays);
    expect_bad_input(words, [&] { load_solution(folder / "bad.npz", data); });
  };
  std::vector<double> W(25, 1.0);
  refuses("W", Array({1, 25}, W), {"bad.npz: W has shape (1, 25): expected (5, 5)"});
  W[7] = std::numeric_limits<double>::quiet_NaN();
  refuses("W", Array({5, 5}, W), {"bad.npz: W[1,2] is nan: expected a finite number"});
  refuses("p", Array(std::vector<double>(4, 1.0)), {"p has shape (4,): expected (5,)"});
  refuses("lambda", Array(std::vector<double>(8, 1.0)), {"lambda has 8 entries: expected 9"});
  std::vector<double> lambda(9, 1.0);
  lambda[3] = std::numeric_limits<double>::infinity();
  refuses("lambda", Array(lambda), {"lambda[3] is inf"});
  refuses("lambda", Array({3, 3}, std::vector<double>(9, 1.0)),
          {"lambda has shape (3, 3): expected one axis"});
  refuses("constraints", Array({9, 2}, std::vector<std::int64_t>(18, 0)),
          {"constraints has shape (9, 2)", "(m, 3)"});
  refuses("alpha", Array(std::vector<std::int64_t>{0, 0, 4}), {"alpha does not fit the data", "4", "0 to 3"});
  refuses("alpha", Array(std::vector<std::int64_t>{0, 0}), {"alpha does not fit the data", "expected 3"});
  refuses("alpha", Array(std::vector<double>{0, 0, 0.5}), {"alpha[2] is 0.5"});
  refuses("alpha", Array({3, 1}, std::vector<std::int64_t>{0, 0, 0}),
          {"alpha has shape (3, 1): expected (3,)"});
  refuses("status", Array(std::vector<double>{1}), {"status is float64", "expected a text"});
  refuses("kind", Array(DType::uint8, {3}, to_bytes("0.5")), {"kind", "0.5"});
  refuses("format_version", Array::scalar(std::int64_t{2}), {"format_version is 2", "reads 1"});
  expect_bad_input({"none.npz"}, [&] { load_solution(folder / "none.npz", data); });
  MarginSolution wrong = made_up(data, problem);
  wrong.lambda.conservativeResize(4);
  expect_bad_input({"4 multipliers: expected 9"},
                   [&] { save_solution(folder / "none.npz", data, problem, wrong); });
  EXPECT_EQ(folder.names().size(), 2u);
}

TEST(SvmFile, MatchesMultipliersByOrigin) {
  const Dataset data = small_set();
  const MarginConstraints all = constraints(data, AttentionSvm{Selection{{1, 0, 3}}});
  const std::vector<ConstraintOrigin> two{all.origins()[7], all.origins()[2]};
  Vector lambda(2), expected = Vector::Zero(9);
  lambda << 0.5, 4;
  expected[7] = 0.5;
  expected[2] = 4;
  EXPECT_EQ(matched_multipliers(lambda, two, all, Unmatched::refuse, "lambda"), expected);
  // The selected token itself has no constraint: one of another selection.
  const std::vector<ConstraintOrigin> other{all.origins()[7], {0, 0, 1}};
  expect_bad_input({"lambda[1] belongs to sequence 0, query 0, token 1", "no such constraint"},
                   [&] { matched_multipliers(lambda, other, all, Unmatched::refuse, "lambda"); });
  expected[2] = 0;
  EXPECT_EQ(matched_multipliers(lambda, other, all, Unmatched::drop, "lambda"), expected);
  const std::vector<ConstraintOrigin> twice{all.origins()[7], all.origins()[7]};
  expect_bad_input({"lambda[1]", "another entry does too"},
                   [&] { matched_multipliers(lambda, twice, all, Unmatched::refuse, "lambda"); });
  expect_bad_input({"lambda has 2 entries: expected 9"},
                   [&] { matched_multipliers(lambda, {}, all, Unmatched::refuse, "lambda"); });
  EXPECT_EQ(matched_multipliers({}, {}, all, Unmatched::refuse, "lambda").size(), 0);
}

}  // namespace
}  // namespace attmirror::test

// The answers of max_margin() beside those of other solvers: HiGHS, CVXOPT, Clarabel and Newton's method with 50
// digits. tests/fixtures/margin/make_references.py says how each was found and proved; a reference is a bracket lower
// <= optimum <= upper.
#include "support/golden.hpp"
#include <attmirror/data/generators.hpp>
#include <attmirror/margin/max_margin.hpp>

#include <cstdint>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror {
namespace {

using Json = nlohmann::json;

Matrix read_matrix(const Json& rows) {
  Matrix result(static_cast<std::ptrdiff_t>(rows.size()), static_cast<std::ptrdiff_t>(rows.at(0).size()));
  for (std::ptrdiff_t i = 0; i < result.rows(); ++i)
    for (std::ptrdiff_t j = 0; j < result.cols(); ++j)
      result(i, j) = rows.at(static_cast<std::size_t>(i)).at(static_cast<std::size_t>(j)).get<double>();
  return result;
}

Dataset read_data(const Json& entry) {
  if (entry.contains("generate")) {
    const Json& from = entry.at("generate");
    return generate(SphereData{.samples = from.at("samples").get<std::int64_t>(),
                               .tokens = from.at("tokens").get<std::int64_t>(),
                               .dim = from.at("dim").get<std::int64_t>(),
                               .seed = from.at("seed").get<std::uint64_t>()});
  }
  DatasetArrays arrays;
  arrays.tokens = read_matrix(entry.at("tokens"));
  entry.at("lengths").get_to(arrays.lengths);
  entry.at("labels").get_to(arrays.labels);
  if (entry.contains("queries")) {
    arrays.queries = read_matrix(entry.at("queries"));
  } else {
    entry.at("query_index").get_to(arrays.query_index);
    entry.at("query_counts").get_to(arrays.query_counts);
  }
  Dataset data(arrays);
  return entry.value("causal", false) ? with_causal_mask(std::move(data)) : data;
}

std::vector<double> read_bounds(const Json& entry) {
  return entry.contains("bounds") ? entry.at("bounds").get<std::vector<double>>() : std::vector<double>{};
}

MarginProblem read_problem(const Json& entry) {
  const std::string kind = entry.at("problem").get<std::string>();
  const auto tokens = [&] { return Selection{entry.at("tokens").get<std::vector<std::int64_t>>()}; };
  const auto kept = [&] {
    return KeptTokens{entry.at("kept").get<std::vector<std::vector<std::int64_t>>>()};
  };
  if (kind == "attention") return AttentionSvm{.tokens = tokens(), .bounds = read_bounds(entry)};
  if (kind == "prompt")
    return PromptSvm{.tokens = tokens(),
                     .key_weights = read_matrix(entry.at("key_weights")),
                     .bounds = read_bounds(entry)};
  if (kind == "decoder") return DecoderSvm{.tokens = tokens()};
  if (kind == "general direction") return GeneralDirectionSvm{.kept = kept()};
  if (kind != "general finite") throw std::runtime_error("unknown problem " + kind);
  GeneralFiniteSvm result{.kept = kept(), .logits = {}};
  const Matrix logits = read_matrix(entry.at("logits"));
  for (std::ptrdiff_t j = 0; j < logits.rows(); ++j) result.logits.push_back(logits.row(j).transpose());
  return result;
}

class References {
 public:
  References() {
    std::ifstream file(test::fixture("margin/references.json"));
    const Json all = Json::parse(file);
    for (const auto& [name, entry] : all.at("data").items()) data_.emplace(name, read_data(entry));
    problems_ = all.at("problems");
  }

  // Calls look(name, data, problem, norm, lower, upper) for each reference.
  template <class F>
  void for_each(F&& look) const {
    for (const Json& problem : problems_)
      for (const Json& reference : problem.at("references"))
        look(problem.at("name").get<std::string>(), data_.at(problem.at("data").get<std::string>()),
             read_problem(problem), parse_norm(reference.at("norm").get<std::string>()),
             reference.at("lower").get<double>(), reference.at("upper").get<double>());
  }

 private:
  std::map<std::string, Dataset> data_;
  Json problems_;
};

// Rounding of the references and of the library's last digits: the feasibility that a certificate grants.
constexpr double slack = 2 * feasibility_tolerance;

// An answer of norm N with gap g says: the optimum lies in [(1 - g) N, N]. Both brackets must overlap, and N must be as
// near to the optimum as its gap promises.
void expect_agreement(const MarginSolution& svm, double tolerance, double lower, double upper) {
  EXPECT_EQ(svm.status, MarginStatus::certified) << svm.brief();
  EXPECT_GE(svm.norm, lower * (1 - slack)) << "better than what is proved to be the best";
  EXPECT_LE(svm.dual, upper * (1 + slack)) << "a lower bound above what was reached";
  EXPECT_LE(svm.norm * (1 - tolerance), upper * (1 + slack));
}

TEST(References, EveryNormOnEveryProblem) {
  int count = 0;
  References().for_each([&](const std::string& name, const Dataset& data, const MarginProblem& problem,
                            const Norm& norm, double lower, double upper) {
    SCOPED_TRACE(name + ", norm " + to_string(norm));
    const MarginSolution svm = max_margin(data, problem, norm);
    expect_agreement(svm, MarginOptions{}.tolerance(norm), lower, upper);
    ++count;
  });
  EXPECT_GE(count, 100);
}

// The interior-point method solves all of them too, alone; and the active-set method those it is for.
TEST(References, EachMethodAlone) {
  References().for_each([&](const std::string& name, const Dataset& data, const MarginProblem& problem,
                            const Norm& norm, double lower, double upper) {
    SCOPED_TRACE(name + ", norm " + to_string(norm));
    MarginOptions options{.method = MarginMethod::interior_point};
    options.tol = 1e-8;
    expect_agreement(max_margin(data, problem, norm, options), 1e-8, lower, upper);
    if (!norm.is_entrywise() || norm.p() == 1 || norm.p() > 1e300) return;
    options.method = MarginMethod::active_set;
    expect_agreement(max_margin(data, problem, norm, options), 1e-8, lower, upper);
  });
}

}  // namespace
}  // namespace attmirror

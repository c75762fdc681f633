// Trainings on data whose assumptions are checked, and how they end. Internal to theory_checks.cpp, which says what
// this is about.
#pragma once

#include "papers/workers.hpp"
#include <attmirror/margin/theory.hpp>

#include <cstdint>
#include <vector>

namespace attmirror::theory {

// What the tokens of a sequence but the best one have in common.
enum class ScoreKind {
  drawn,  // nothing: unit sphere
  equal,  // the score, which is set to their mean along v
};

enum class EndOn { global, local, neither };

// One training of W with a fixed v, from W = 0.
struct Outcome {
  EndOn end = EndOn::neither;
  bool saturated = false;
  TheoryReport report;  // for the best tokens
};

// n = T = 5 in dimension d, seeds 0 to seeds - 1. `uncertified` counts problems neither solved nor refuted.
struct OutcomeColumn {
  ScoreKind scores = ScoreKind::drawn;
  std::int64_t d = 0;
  std::vector<Outcome> outcomes;
  std::ptrdiff_t uncertified = 0;
};
Dataset outcome_data(ScoreKind scores, std::int64_t d, std::uint64_t seed);
OutcomeColumn measure_outcomes(const ExperimentContext& context, ScoreKind scores, std::int64_t d,
                               std::uint64_t seeds);

// Plain gradient descent with the step size factor / L: how many of the runs never raise the loss, and how many prefer
// the best tokens after the last step.
struct StepColumn {
  double factor = 1;
  std::ptrdiff_t runs = 0, never_rising = 0, global = 0;
};
std::vector<StepColumn> measure_steps(const ExperimentContext& context, const std::vector<double>& factors,
                                      std::uint64_t seeds);

// Joint training of v and W from a random start: whether the label-margin condition holds for the tokens that the run
// selects, and how far v and W are from the decoder SVM and the relaxed attention SVM of these tokens.
struct JointOutcome {
  AssumptionStatus label_margin = AssumptionStatus::open;
  bool decided = false;  // the tokens are classified, and both problems are certified
  double v_distance = 0, W_distance = 0;
};
std::vector<JointOutcome> measure_joint(const ExperimentContext& context, std::uint64_t seeds);

}  // namespace attmirror::theory

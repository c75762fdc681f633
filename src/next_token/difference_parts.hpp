// One group of a decoupled problem: the parts that no comparison connects, and the answer to each. Internal.
#pragma once

#include "next_token/difference_problem.hpp"
#include <attmirror/margin/max_margin.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace attmirror {

// Tokens that comparisons connect. `differences` count them from 0.
struct DifferencePart {
  std::vector<Token> tokens;
  std::vector<Difference> differences;
  std::vector<std::ptrdiff_t> constraints;  // the position of each difference in its group
};

// In the order of their first constraint.
std::vector<DifferencePart> connected_parts(const DifferenceProblem::Group& group,
                                            std::ptrdiff_t vocabulary_size);

struct PartAnswer {
  MarginStatus status = MarginStatus::stopped;
  std::vector<double> scores;  // one per token of the part; NaN where infeasible
  std::vector<double> lambda;  // >= 0 at inequalities, scaled so that those add up to 1
  Certificate certificate;
  std::vector<std::ptrdiff_t> conflict;  // positions in the part
  int iterations = 0;
  bool closed_form = false;
  std::string reason;
};

// The smallest scores of one part in an entrywise norm.
PartAnswer solve_part(const DifferencePart& part, const Norm& norm, const MarginOptions& options);

}  // namespace attmirror

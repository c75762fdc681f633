// The points of the study of attractors: data with equal scores of all tokens but the best, what is trained
// on them, and what comes out. Internal.
#pragma once

#include <attmirror/papers/experiment.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace attmirror {

// One point of the study.
struct AttractorPoint {
  std::string axis;  // what it varies
  std::string params = "prompt";
  std::int64_t samples = 4, tokens = 4, dim = 6;
  double p = 2;
  double start = 1;  // size of a typical logit at the start
  double x = 0;      // its place on the axis

  bool same_settings(const AttractorPoint& other) const {
    return std::tie(params, samples, tokens, dim, p, start) ==
           std::tie(other.params, other.samples, other.tokens, other.dim, other.p, other.start);
  }
};

// What came out for one data set.
struct AttractorOutcome {
  std::int64_t attractors = 0, partial = 0, undecided = 0;
  bool condition = false;  // no two sequences compete
  bool factored = false;   // K, Q
  std::int64_t whole_ends = 0, partial_ends = 0, elsewhere = 0, undecided_ends = 0;
  std::int64_t checks = 0, checks_held = 0;  // of attractors that were confirmed by descent
  std::int64_t flows = 0, same_flows = 0;    // of starts that were repeated by the flow
};

// `sets` data sets, the first whose best tokens can be selected, with `starts` starts each; on the first
// `confirmed` of them each attractor is confirmed by descent, and two starts are repeated by the flow.
std::vector<AttractorOutcome> run_attractor_point(const ExperimentContext& context,
                                                  const AttractorPoint& point, std::uint64_t sets,
                                                  std::uint64_t starts, std::size_t confirmed);

}  // namespace attmirror

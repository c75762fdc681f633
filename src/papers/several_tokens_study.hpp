// Trainings under a ReLU head that keep several tokens, and how far each is from its max-margin problems. Internal to
// p3_several_tokens.cpp, which says what this is about.
#pragma once

#include "papers/workers.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace attmirror::several_tokens {

inline constexpr std::int64_t steps = 2000;  // before the last one, at which probabilities are read

enum Target : std::size_t { equivalent, direction, single_token };
inline constexpr std::array target_names{"W_fin + R W_dir", "W_dir", "the SVM of one token each"};

// A training that passed the rules, and what it is compared with.
struct Accepted {
  std::uint64_t seed = 0;
  double largest_masked = 0, kept_per_sequence = 0;
  double R = 0;
  std::array<std::vector<double>, 3> distances{};  // [target][record]: 1 - correlation
};

struct Study {
  std::int64_t d = 0;
  std::vector<Accepted> accepted{};
  std::uint64_t tried = 0;                     // seeds 0 to tried - 1
  std::ptrdiff_t infeasible = 0, stopped = 0;  // problems of trainings that passed the other rules
};

// The first `wanted` data sets that pass the rules, in the order of seeds. `expected`: how many tries that may take,
// for the progress only.
Study measure(const ExperimentContext& context, std::int64_t d, std::size_t wanted, double expected);

// Of all accepted trainings, beside iteration 0, 100, ..., 2000: 1 - correlation with a target.
std::vector<double> distances_at(const Study& study, Target target, std::int64_t it);

// The first `count` accepted trainings once more, without eps and ten times as long: 1 - correlation with W_fin + R
// W_dir of the tokens kept then.
std::vector<double> without_eps(const ExperimentContext& context, const Study& study, std::size_t count);

}  // namespace attmirror::several_tokens

// Short forms for what most experiments say. Internal.
#pragma once

#include "papers/workers.hpp"
#include <attmirror/base/figure.hpp>
#include <attmirror/base/matrix.hpp>
#include <attmirror/data/selection.hpp>
#include <attmirror/descent/descend.hpp>
#include <attmirror/papers/finding.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// A number that does not depend on chance, published with so many decimals: ours must round to it.
Finding to_decimals(std::string quantity, double published, double ours, int decimals,
                    ReferenceSource source = ReferenceSource::recomputed);

// A sample that cannot tell two shares so far apart does not decide.
inline constexpr double share_resolution = 0.2;

// A mean over runs: within three standard errors. `published_error` is that of the published mean where it is known.
Finding to_errors(std::string quantity, double published, const Mean& ours,
                  ReferenceSource source = ReferenceSource::recomputed, double published_error = 0);

// A bound of a theorem.
Finding at_least(std::string quantity, double bound, double ours);
Finding at_most(std::string quantity, double bound, double ours);

Finding same_text(std::string quantity, std::string published, std::string ours,
                  ReferenceSource source = ReferenceSource::recomputed);

// Something nobody has published.
Finding new_number(std::string quantity, double ours, double standard_error = 0);

Vector vector_of(std::initializer_list<double> values);

// 0, 1, 2, 3, 5, ... up to `last`, about `per_decade` in each decade, and all of `besides`: ascending, each once.
std::vector<std::int64_t> log_steps(std::int64_t last, int per_decade,
                                    std::vector<std::int64_t> besides = {});

// The record after exactly `step` steps. Throws Error (bad input) if the run has none.
const Record& record_at(const DescentRun& run, std::int64_t step);

// The mean attention on one token, the same in each sequence: P2's softmax probability.
double mean_probability(const Attention& model, const Parameters& parameters, std::ptrdiff_t token);

// A prompt's first two coordinates along a run, up to `last` steps.
Series prompt_path(std::string name, const DescentRun& run, std::int64_t last);

// Puts the sentence that says what came out, computed, in front of the figure's caption.
void lead_with(Figure& figure, const std::string& outcome);

// "12 data sets", "1 data set"
std::string counted(std::uint64_t count, std::string_view what);

// "1.75, 2, 3"
std::string list_text(const std::vector<double>& values);

}  // namespace attmirror

// The runs of a sweep in batches: what one thread or process computes at a time, and what is written
// together. Internal.
#pragma once

#include <attmirror/sweep/plan.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

struct Batch {
  std::vector<std::int64_t> runs;
  double work = 0;  // multiplications, roughly
};

// Runs that may share a vector are put side by side (whether they really can, only their data tell). Batches are long
// enough that handing them out costs nothing, and short enough that `workers` end at about the same time; the longest
// come first.
std::vector<Batch> make_batches(const SweepPlan& plan, std::span<const std::int64_t> runs, int workers);

// Multiplications and steps of one run, by its settings.
double work_of(const SweepPlan& plan, std::int64_t run);
double steps_of(const SweepPlan& plan, std::int64_t run);

// The same by the numbers that matter.
struct RunSize {
  double samples = 6, tokens = 8, dim = 10, steps = 1000;
};
double work_of(const RunSize& size, const RecordPlan& record);

// Whether lanes of one vector may differ in a setting.
bool is_free_setting(std::string_view name);

// Equal for runs that differ only in what lanes of one vector may differ in.
std::string shape_text(const SweepPlan& plan, std::int64_t run);

}  // namespace attmirror

// What a sweep file asks for, without its runs: how many there are, what varies, how much work they are. Every
// combination of settings is checked as parse_sweep() checks it, but none is kept, and of seeds, which differ in
// nothing else, only a few are looked at: ten million runs take no more memory than the settings that vary besides.
// Internal.
#pragma once

#include <attmirror/sweep/plan.hpp>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// Runs that differ only in what lanes of one vector may differ in.
struct RunShape {
  std::vector<std::int64_t> some;  // as many as fill a vector, to be tried
  std::int64_t count = 0;
  double work = 0, steps = 0;  // of all
};

struct SweepOutline {
  SweepPlan plan;         // complete but for its runs, which are those that stand for shapes
  std::int64_t runs = 0;  // of the sweep
  std::int64_t missing = 0;
  double steps = 0;              // of the missing runs
  std::vector<RunShape> shapes;  // of the missing runs; a spread of them where there are very many
  double other_work = 0;         // of the shapes that are left out
};

// Throws Error (bad input), see parse_sweep(). With `finished`, the keys of the runs that a database has, sorted, the
// others are missing; without them, all are.
SweepOutline outline_sweep(std::string_view text, const std::string& name,
                           const std::filesystem::path& folder,
                           const std::vector<std::string>* finished = nullptr,
                           const SweepLimits& limits = {});
SweepOutline load_outline(const std::filesystem::path& path,
                          const std::vector<std::string>* finished = nullptr, const SweepLimits& limits = {});

// How long the missing runs will take on one thread, by trying some of them.
double estimate_seconds(const SweepPlan& plan, std::span<const RunShape> shapes, double other_work);

}  // namespace attmirror

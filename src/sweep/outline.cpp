// Seeds are special. A seed goes through resolve() unchanged and no check looks at it, so that runs that differ in a
// seed alone are right or wrong together; and they are different runs if the seed has any effect, equal ones if not. So
// for an axis of seeds, its first points stand for all: as many as fill a vector (the estimate tries them), two at
// least (equal runs show), and those that another setting of seeds names (init_seed = 7 equals init_seed = "seed" where
// the seed is 7). The last of the first points counts for the others.
#include "sweep/outline.hpp"

#include "base/atomic_file.hpp"
#include "base/words.hpp"
#include "sweep/batches.hpp"
#include "sweep/cache.hpp"
#include "sweep/run_checks.hpp"
#include "sweep/run_groups.hpp"
#include "sweep/sweep_file.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/sweep/many.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

// More shapes than this, and half of them are left out.
constexpr std::size_t most_shapes = 64;

// Points of an axis that stand for all of them, each for `counts` many.
struct Representatives {
  std::vector<std::size_t> points;
  std::vector<std::int64_t> counts;
};

class Outliner {
 public:
  Outliner(SweepFile file, std::string name, const std::vector<std::string>* finished)
      : axes_(std::move(file.axes)),
        name_(std::move(name)),
        finished_(finished),
        differs_(settings().size()) {
    outline_.plan = std::move(file.plan);
    outline_.runs = axes_.runs;
  }

  SweepOutline make() {
    RunChecks checks(outline_.plan.folder, outline_.plan.record);
    for (const Axis& axis : axes_.axes) chosen_.push_back(representatives(axis));
    std::vector<std::size_t> at(chosen_.size(), 0), points(chosen_.size());
    for (bool more = true; more; more = next(at)) {
      std::int64_t count = 1;
      for (std::size_t a = 0; a < at.size(); ++a) {
        points[a] = chosen_[a].points[at[a]];
        count *= chosen_[a].counts[at[a]];
      }
      const std::int64_t run = run_at(axes_, points);
      try {
        add(run, count, checks.resolved(values_at(axes_, points)));
      } catch (const Error& error) {
        refuse_twins();  // of the runs before
        throw of_run(error, axes_, run, name_);
      }
    }
    refuse_twins();
    finish();
    return std::move(outline_);
  }

 private:
  Representatives representatives(const Axis& axis) const {
    Representatives result;
    const auto width = static_cast<std::size_t>(std::max(2, static_cast<int>(lane_width())));
    const std::size_t size = axis.size();
    // What is missing in a database depends on each seed.
    if (finished_ != nullptr || !is_seed(axis) || size <= width) {
      for (std::size_t i = 0; i < size; ++i) result.points.push_back(i);
      result.counts.assign(size, 1);
      return result;
    }
    for (std::size_t i = 0; i < width; ++i) result.points.push_back(i);
    const std::set<std::int64_t> named = seeds_beside(axis);
    for (std::size_t i = width; i < size && !named.empty(); ++i)
      if (const auto seed = seed_at(axis, i); seed && named.contains(*seed)) result.points.push_back(i);
    result.counts.assign(result.points.size(), 1);
    result.counts[width - 1] += static_cast<std::int64_t>(size - result.points.size());
    return result;
  }

  // An axis of nothing but seeds that are numbers.
  bool is_seed(const Axis& axis) const {
    const auto setting = axis.only_setting();
    if (!setting || settings()[*setting].field.kind != FieldKind::seed) return false;
    for (std::size_t i = 0; i < axis.size(); ++i)
      if (!seed_at(axis, i)) return false;
    return true;
  }

  std::optional<std::int64_t> seed_at(const Axis& axis, std::size_t i) const {
    Values values(settings().size());
    axis.assign(i, values);
    const auto* seed = std::get_if<std::int64_t>(&values[*axis.only_setting()]);
    return seed == nullptr ? std::nullopt : std::optional(*seed);
  }

  // The numbers that other settings of seeds are given.
  std::set<std::int64_t> seeds_beside(const Axis& seeds) const {
    std::set<std::int64_t> named;
    const auto take = [&](const Values& values) {
      for (std::size_t s = 0; s < values.size(); ++s)
        if (settings()[s].field.kind == FieldKind::seed && s != *seeds.only_setting())
          if (const auto* seed = std::get_if<std::int64_t>(&values[s])) named.insert(*seed);
    };
    take(axes_.fixed);
    for (const Axis& axis : axes_.axes) {
      if (&axis == &seeds) continue;
      if (axis.only_setting() && settings()[*axis.only_setting()].field.kind != FieldKind::seed) continue;
      // Beside another long axis of seeds, both are numbers, and none is "seed": no run equals another.
      if (is_seed(axis)) continue;
      for (std::size_t i = 0; i < axis.size(); ++i) {
        Values values(settings().size());
        axis.assign(i, values);
        take(values);
      }
    }
    return named;
  }

  bool next(std::vector<std::size_t>& at) const {
    for (std::size_t a = at.size(); a-- > 0;) {
      if (++at[a] < chosen_[a].points.size()) return true;
      at[a] = 0;
    }
    return false;
  }

  void add(std::int64_t run, std::int64_t count, const Values& resolved) {
    const std::uint64_t key = run_key(resolved, outline_.plan.record_text);
    keys_.emplace_back(key, run);
    if (first_.empty()) first_ = resolved;
    for (const std::size_t setting : axes_.varied)
      if (!differs_[setting] && resolved[setting] != first_[setting]) differs_[setting] = true;
    for (std::size_t s = 0; s < resolved.size(); ++s)
      if (!std::holds_alternative<std::monostate>(resolved[s])) columns_.insert(s);
    if (finished_ != nullptr && std::ranges::binary_search(*finished_, fmt::format("{:016x}", key))) return;

    const RunSize usual;
    const RunSize size{.samples = number(resolved, samples_, usual.samples),
                       .tokens = number(resolved, tokens_, usual.tokens),
                       .dim = number(resolved, dim_, usual.dim),
                       .steps = number(resolved, steps_, usual.steps)};
    const double work = static_cast<double>(count) * work_of(size, outline_.plan.record);
    outline_.missing += count;
    outline_.steps += static_cast<double>(count) * size.steps;
    const std::uint64_t print = shape_print(resolved);
    if (print % kept_share_ != 0) {
      outline_.other_work += work;
      return;
    }
    KnownShape& known = shapes_[print];
    known.shape.count += count;
    known.shape.work += work;
    known.shape.steps += static_cast<double>(count) * size.steps;
    if (known.some.size() < static_cast<std::size_t>(lane_width())) known.some.emplace_back(key, resolved);
    while (shapes_.size() > most_shapes) leave_out_half();
  }

  static double number(const Values& values, std::size_t setting, double otherwise) {
    if (const auto* count = std::get_if<std::int64_t>(&values[setting])) return static_cast<double>(*count);
    if (const auto* value = std::get_if<double>(&values[setting])) return *value;
    return otherwise;
  }

  static std::uint64_t shape_print(Values values) {
    static const std::vector<std::size_t> free = [] {
      std::vector<std::size_t> result;
      for (std::size_t s = 0; s < settings().size(); ++s)
        if (is_free_setting(settings()[s].info.name)) result.push_back(s);
      return result;
    }();
    for (const std::size_t setting : free) values[setting] = {};
    return fingerprint(values);
  }

  // Chosen by the shapes themselves, not by their order.
  void leave_out_half() {
    kept_share_ *= 2;
    for (auto shape = shapes_.begin(); shape != shapes_.end();) {
      if (shape->first % kept_share_ == 0) {
        ++shape;
        continue;
      }
      outline_.other_work += shape->second.shape.work;
      shape = shapes_.erase(shape);
    }
  }

  void refuse_twins() {
    std::ranges::sort(keys_);
    const std::pair<std::uint64_t, std::int64_t>*first = nullptr, *twin = nullptr;
    for (std::size_t i = 1; i < keys_.size(); ++i)
      if (keys_[i].first == keys_[i - 1].first && (twin == nullptr || keys_[i].second < twin->second)) {
        first = &keys_[i - 1];
        twin = &keys_[i];
      }
    if (twin == nullptr) return;
    throw of_run(same_settings(axes_, first->second), axes_, twin->second, name_);
  }

  void finish() {
    SweepPlan& plan = outline_.plan;
    const std::vector<std::size_t> columns(columns_.begin(), columns_.end());
    for (const std::size_t column : columns)
      plan.columns.push_back({settings()[column].info.name, settings()[column].type});
    for (const std::size_t setting : axes_.varied)
      if (differs_[setting]) plan.axes.push_back(settings()[setting].info.name);
    for (auto& [print, known] : shapes_) {
      for (auto& [key, values] : known.some) {
        known.shape.some.push_back(static_cast<std::int64_t>(plan.runs.size()));
        RunSettings run{.key = fmt::format("{:016x}", key), .cells = {}};
        for (const std::size_t column : columns) run.cells.push_back(std::move(values[column]));
        plan.runs.push_back(std::move(run));
      }
      outline_.shapes.push_back(std::move(known.shape));
    }
    plan.cache = std::make_shared<SweepCache>();
  }

  struct KnownShape {
    RunShape shape;
    std::vector<std::pair<std::uint64_t, Values>> some;  // with their keys
  };

  SweepAxes axes_;
  std::string name_;
  const std::vector<std::string>* finished_;
  SweepOutline outline_;
  std::vector<Representatives> chosen_;  // of each axis
  std::vector<std::pair<std::uint64_t, std::int64_t>> keys_;
  Values first_;  // of the first run, resolved
  std::vector<bool> differs_;
  std::set<std::size_t> columns_;
  std::map<std::uint64_t, KnownShape> shapes_;
  std::uint64_t kept_share_ = 1;
  std::size_t samples_ = *find_setting("samples"), tokens_ = *find_setting("tokens"),
              dim_ = *find_setting("dim"), steps_ = *find_setting("steps");
};

}  // namespace

SweepOutline outline_sweep(std::string_view text, const std::string& name,
                           const std::filesystem::path& folder, const std::vector<std::string>* finished,
                           const SweepLimits& limits) {
  try {
    return Outliner(read_sweep_file(text, name, folder, limits), name, finished).make();
  } catch (const Error& error) {
    throw Error(error.kind(), one_line(error.what()));  // which may quote anything that the file holds
  }
}

SweepOutline load_outline(const std::filesystem::path& path, const std::vector<std::string>* finished,
                          const SweepLimits& limits) {
  return outline_sweep(read_text_file(path), path.filename().string(), path.parent_path(), finished, limits);
}

}  // namespace attmirror

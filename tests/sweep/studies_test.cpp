// Two studies of the papers as sweeps, from the files in examples/sweeps: P1's Setting A and P3's global convergence.
#include "base/atomic_file.hpp"
#include "support/files.hpp"
#include "support/paths.hpp"
#include <attmirror/sweep/sweep.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

// Sanitizers make each step slow.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool slow = true;
#else
constexpr bool slow = false;
#endif

std::string example(const std::string& name) {
  return read_text_file(test::source_folder() / "examples/sweeps" / name);
}

std::string with_seeds(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

struct Mean {
  double value = 0, error = 0;  // and its standard error
  std::size_t count = 0;
};

class Results {
 public:
  Results(const std::string& text, const TemporaryFolder& folder)
      : plan_(parse_sweep(text, "study.toml", ".")) {
    SweepDatabase database(folder / "results.db", SweepDatabase::Mode::create, header_of(plan_));
    const SweepOutcome outcome = run_sweep(plan_, database, {.threads = 2});
    EXPECT_EQ(outcome.computed, static_cast<std::int64_t>(plan_.runs.size()));
    header_ = database.header();
    rows_ = database.rows();
  }

  // Over the rows where a setting has this value.
  Mean mean(const std::string& setting, double value, const std::string& metric) const {
    const std::size_t s = place(header_.settings, setting), m = place(header_.metrics, metric);
    double sum = 0, squares = 0;
    Mean result;
    for (const RunRow& row : rows_) {
      if (number(row.settings[s]) != value || std::isnan(number(row.metrics[m]))) continue;
      sum += number(row.metrics[m]);
      squares += number(row.metrics[m]) * number(row.metrics[m]);
      ++result.count;
    }
    const auto n = static_cast<double>(result.count);
    result.value = sum / n;
    result.error = std::sqrt(std::max(0.0, squares / n - result.value * result.value) / (n - 1));
    return result;
  }

  // The share of rows that are saturated and have a 1 there: what a run selects means something only then.
  double saturated_share(const std::string& setting, double value, const std::string& metric) const {
    const std::size_t s = place(header_.settings, setting), m = place(header_.metrics, metric),
                      softmax = place(header_.metrics, "max_softmax");
    double count = 0, with = 0;
    for (const RunRow& row : rows_) {
      if (number(row.settings[s]) != value) continue;
      ++count;
      with += number(row.metrics[softmax]) > 0.99 && number(row.metrics[m]) == 1 ? 1 : 0;
    }
    return with / count;
  }

  // The share of rows that have a text there.
  double share(const std::string& setting, double value, const std::string& metric,
               const std::string& text) const {
    const std::size_t s = place(header_.settings, setting), m = place(header_.metrics, metric);
    double count = 0, with = 0;
    for (const RunRow& row : rows_) {
      if (number(row.settings[s]) != value) continue;
      ++count;
      const auto* cell = std::get_if<std::string>(&row.metrics[m]);
      with += cell != nullptr && *cell == text ? 1 : 0;
    }
    return with / count;
  }

 private:
  static std::size_t place(const std::vector<RowColumn>& columns, const std::string& name) {
    const auto found = std::ranges::find(columns, name, &RowColumn::name);
    EXPECT_NE(found, columns.end()) << name;
    return static_cast<std::size_t>(found - columns.begin());
  }
  static double number(const Cell& cell) {
    if (const auto* count = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*count);
    if (const auto* real = std::get_if<double>(&cell)) return *real;
    return std::nan("");
  }

  SweepPlan plan_;
  SweepHeader header_;
  std::vector<RunRow> rows_;
};

// Means over 100 seeds of the divergence of each path from the solutions of its own tokens, at the end. The reference
// has other random starts, hence a standard error of its own, about as large as ours.
TEST(Studies, SettingAOfTheFirstPaper) {
  const TemporaryFolder folder;
  std::string text = example("p1_setting_a.toml");
  if (slow) text = with_seeds(text, "1:100", "1:8");
  const Results results(text, folder);
  const struct {
    double p, l175, l2, l3, global, local;
  } reference[] = {{1.75, .0150, .0233, .0834, .43, .95},
                   {2, .0146, .0073, .0424, .51, .98},
                   {3, .0976, .0507, .0053, .57, .96}};
  for (const auto& row : reference) {
    const auto near = [&](const char* metric, double expected) {
      const Mean mean = results.mean("p", row.p, metric);
      EXPECT_NEAR(mean.value, expected, 3 * std::sqrt(2.0) * mean.error)
          << "p = " << row.p << ", " << metric << ", standard error " << mean.error;
    };
    near("l1.75.bregman", row.l175);
    near("l2.bregman", row.l2);
    near("l3.bregman", row.l3);
    const Mean global = results.mean("p", row.p, "global"), local = results.mean("p", row.p, "own.local");
    EXPECT_NEAR(global.value, row.global, 3 * std::sqrt(2 * .25 / static_cast<double>(global.count)))
        << row.p;
    EXPECT_NEAR(local.value, row.local, 3 * std::sqrt(2 * .05 / static_cast<double>(local.count))) << row.p;
  }
}

// Shares over seeds against the dimension; the papers' claim is that a large dimension leads to global optima.
TEST(Studies, GlobalConvergenceAgainstDimension) {
  const TemporaryFolder folder;
  const Results results(with_seeds(example("p3_global_convergence.toml"), "0:199", slow ? "0:3" : "0:39"),
                        folder);
  const struct {
    double d, feasible, global, local;
  } reference[] = {{2, .270, .145, .480}, {3, .885, .460, .960}, {4, 1, .640, .990}, {5, 1, .700, 1},
                   {6, 1, .775, .990},    {8, 1, .870, .990},    {10, 1, .925, 1},   {15, 1, .930, .985},
                   {20, 1, .980, .995},   {30, 1, .985, 1},      {50, 1, .995, .995}};
  const double runs = slow ? 4 : 40;
  const auto tolerance = [&](double share) {  // both are samples: 200 runs there, `runs` here
    const double p = std::clamp(share, .02, .98);
    return 3 * std::sqrt(p * (1 - p) * (1 / 200.0 + 1 / runs));
  };
  for (const auto& row : reference) {
    EXPECT_NEAR(results.share("dim", row.d, "optimal.status", "certified"), row.feasible,
                tolerance(row.feasible))
        << row.d;
    EXPECT_NEAR(results.saturated_share("dim", row.d, "global"), row.global, tolerance(row.global)) << row.d;
    EXPECT_NEAR(results.saturated_share("dim", row.d, "selected.local"), row.local, tolerance(row.local))
        << row.d;
  }
  if (!slow) {
    EXPECT_GT(results.saturated_share("dim", 50, "global"),
              results.saturated_share("dim", 3, "global") + 0.2);
  }
}

}  // namespace
}  // namespace attmirror::test

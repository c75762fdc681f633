// What runs.csv says of a training, held against its curve and against itself.
//
// The files keep so many significant digits, and a number in one agrees with a number in the other if both can have
// been rounded from the same one.
#include "papers/record_rows.hpp"

#include <limits>
#include <span>

namespace attmirror {

namespace {

constexpr int run_digits = 6, accuracy_digits = 5, share_digits = 6;

// Half a unit of the last of so many significant digits: how far a written number may be from what it was.
double rounding_of(double value, int digits) {
  return value == 0 ? 0 : 0.5 * std::pow(10.0, std::floor(std::log10(std::abs(value))) - digits + 1);
}

// A number that follows from the curve, and how far rounding may have moved it.
struct CurveNumber {
  double value = 0, rounding = 0;
};

std::string words_of(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "missing";
}

// A row of runs.csv, for messages.
struct RunRow {
  const TrainingRecord& record;
  std::size_t line;

  Error error(std::string_view column, std::string_view found, std::string_view expected) const {
    return bad_input(fmt::format("runs.csv line {}: {} of {} is {}: expected {}", line, column,
                                 one_line(record.run), found, expected));
  }

  void check(std::string_view column, const std::optional<double>& found,
             const std::optional<CurveNumber>& expected) const {
    if (!found && !expected) return;
    // Binary fractions are not quite what is written.
    constexpr double binary = 1e-12;
    if (found && expected &&
        std::abs(*found - expected->value) <= rounding_of(*found, run_digits) + expected->rounding + binary)
      return;
    throw error(column, words_of(found),
                expected ? fmt::format("{:.6g}, as in curves.csv", expected->value)
                         : "none, because curves.csv has no test accuracy of it");
  }
};

void check_accuracies(const RunRow& row) {
  const TrainingRecord& record = row.record;
  std::vector<std::pair<std::int64_t, double>> tests;  // epochs with their accuracies
  for (const EpochRecord& epoch : record.curve)
    if (epoch.test_accuracy) tests.emplace_back(epoch.epoch, *epoch.test_accuracy);
  std::optional<CurveNumber> best, last, last_ten;
  std::int64_t best_epoch = 0;
  if (!tests.empty()) {
    const auto at = [](double accuracy) {
      return CurveNumber{accuracy, rounding_of(accuracy, accuracy_digits)};
    };
    const auto highest = std::ranges::max_element(tests, {}, &std::pair<std::int64_t, double>::second);
    best_epoch = highest->first;
    best = at(highest->second);
    last = at(tests.back().second);
    last_ten.emplace();
    const auto ten = std::span(tests).last(std::min<std::size_t>(tests.size(), 10));
    for (const auto& [epoch, accuracy] : ten) {
      last_ten->value += accuracy / static_cast<double>(ten.size());
      last_ten->rounding += at(accuracy).rounding / static_cast<double>(ten.size());
    }
  }
  // Where the last epoch has one, it decides whether a training that was stopped counts.
  if (!record.curve.empty())
    if (const std::optional<double> training = record.curve.back().train_accuracy)
      row.check("train_accuracy", record.train_accuracy,
                CurveNumber{*training, rounding_of(*training, accuracy_digits)});
  row.check("best_test", record.best_test, best);
  row.check("last_test", record.last_test, last);
  row.check("last_ten_test", record.last_ten_test, last_ten);
  // Rounding can make two epochs equal, but none of them higher than the best one.
  const bool is_best = std::ranges::any_of(
      tests, [&](const auto& test) { return test.first == record.best_epoch && test.second == best->value; });
  if (best ? !is_best : record.best_epoch.has_value())
    throw row.error("best_epoch", record.best_epoch ? fmt::format("{}", *record.best_epoch) : "missing",
                    best ? fmt::format("{}, as in curves.csv", best_epoch)
                         : "none, because curves.csv has no test accuracy of it");
}

// How many weights a map can have.
struct WeightCounts {
  double low = 1, high = std::numeric_limits<double>::infinity();

  bool is_known() const { return high < std::numeric_limits<double>::infinity(); }
  bool has_any() const { return std::ceil(low) <= std::floor(high); }
  WeightCounts operator&(const WeightCounts& other) const {
    return {std::max(low, other.low), std::min(high, other.high)};
  }
};

// By its own count and share; any number where it has neither, or 0 of both.
WeightCounts weight_counts_of(const MapRecord& map) {
  if (!map.above || !map.share || (*map.above == 0 && *map.share == 0)) return {};
  const double rounding = rounding_of(*map.share, share_digits), above = static_cast<double>(*map.above);
  if (*map.share <= rounding) return {1, 0};
  // As above, binary fractions.
  constexpr double binary = 1e-9;
  return {std::max(1.0, above / (*map.share + rounding) * (1 - binary)),
          above / (*map.share - rounding) * (1 + binary)};
}

// K, Q and V have equally many weights, so the count and the share of one follow from those of the others.
void check_weights(const RunRow& row) {
  const std::array<MapRecord, 3>& maps = row.record.maps;
  for (std::size_t m = 0; m < maps.size(); ++m) {
    const auto named = [&](const char* what) { return fmt::format("{}_{}", map_names[m], what); };
    if (!row.record.curve.empty())
      if (const std::optional<double> share = row.record.curve.back().share[m])
        row.check(named("share"), maps[m].share, CurveNumber{*share, rounding_of(*share, share_digits)});
    if (maps[m].above.value_or(0) > 0 && maps[m].share == 0.0)
      throw row.error(named("above"), fmt::format("{}", *maps[m].above),
                      fmt::format("0, as {}", named("share")));
  }
  const std::array counts{weight_counts_of(maps[0]), weight_counts_of(maps[1]), weight_counts_of(maps[2])};
  if ((counts[0] & counts[1] & counts[2]).has_any()) return;
  // The one that does not fit the two others, where these fit each other; else the first that says something.
  std::size_t odd = maps.size();
  WeightCounts others;
  for (std::size_t m = 0; m < maps.size() && !(others.is_known() && others.has_any()); ++m) {
    if (odd == maps.size() && counts[m].is_known()) odd = m;
    const WeightCounts both = counts[(m + 1) % 3] & counts[(m + 2) % 3];
    if (!both.is_known() || !both.has_any()) continue;
    odd = m;
    others = both;
  }
  const std::string name = map_names[odd];
  const double weights = std::floor(others.high);
  throw row.error(name + "_above", fmt::format("{}", *maps[odd].above),
                  others.is_known()
                      ? fmt::format("{:.0f}, which is {}_share times the {:.0f} weights of the other maps",
                                    *maps[odd].share * weights, name, weights)
                      : fmt::format("a count that is {}_share times the number of weights", name));
}

}  // namespace

void check_run(const TrainingRecord& record, std::size_t line) {
  if (std::ssize(record.curve) != record.epochs)
    throw bad_input(fmt::format("curves.csv has {} epochs of {}: expected {}, as in runs.csv",
                                record.curve.size(), record.run, record.epochs));
  const RunRow row{record, line};
  check_accuracies(row);
  check_weights(row);
}

}  // namespace attmirror

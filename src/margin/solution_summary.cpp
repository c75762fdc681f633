#include "margin/solution_summary.hpp"

#include "data/text_array.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace attmirror {

namespace {

// The arrays of one file; every message begins with its name.
class SummaryReader {
 public:
  SummaryReader(const NamedArrays& arrays, std::string_view name) : arrays_(arrays), name_(name) {}

  bool has(const std::string& array) const { return arrays_.contains(array); }
  std::string called(const std::string& array) const { return fmt::format("{}: {}", name_, array); }
  std::string text(const std::string& array) const { return text_of(get(array), called(array)); }
  std::vector<double> numbers(const std::string& array) const { return get(array).to_doubles(called(array)); }
  double number(const std::string& array) const { return only(array, numbers(array)); }
  std::int64_t whole(const std::string& array) const {
    return only(array, get(array).to_int64(called(array)));
  }
  std::vector<ConstraintOrigin> origins(const std::string& array) const {
    const Array& found = get(array);
    if (found.axes() != 2 || found.shape()[1] != 3)
      throw bad_input(fmt::format("{} is {}: expected rows of sequence, query and token", called(array),
                                  found.describe()));
    const std::vector<std::int64_t> values = found.to_int64(called(array));
    std::vector<ConstraintOrigin> result;
    for (std::size_t k = 0; k + 2 < values.size(); k += 3)
      result.push_back({values[k], values[k + 1], values[k + 2]});
    return result;
  }

 private:
  const Array& get(const std::string& array) const {
    const auto found = arrays_.find(array);
    if (found == arrays_.end()) throw bad_input(fmt::format("{} is missing", called(array)));
    return found->second;
  }
  template <class Value>
  Value only(const std::string& array, const std::vector<Value>& values) const {
    if (values.size() != 1)
      throw bad_input(fmt::format("{} has {} numbers: expected one", called(array), values.size()));
    return values.front();
  }

  const NamedArrays& arrays_;
  std::string_view name_;
};

// Multipliers are matched by their constraints; a file of another program may have none of these.
std::vector<SupportToken> support_of(const SummaryReader& file, const std::string& suffix) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, double> multipliers;
  const std::vector<double> lambda = file.numbers("lambda" + suffix);
  const std::vector<ConstraintOrigin> all = file.origins("constraints" + suffix);
  if (all.size() != lambda.size())
    throw bad_input(fmt::format("{} has {} numbers: expected {}, one per constraint",
                                file.called("lambda" + suffix), lambda.size(), all.size()));
  for (std::size_t k = 0; k < all.size(); ++k)
    multipliers[{all[k].sequence, all[k].query, all[k].token}] = lambda[k];
  std::vector<SupportToken> support;
  for (const ConstraintOrigin& origin : file.origins("support" + suffix)) {
    const auto found = multipliers.find({origin.sequence, origin.query, origin.token});
    support.push_back({origin, found == multipliers.end() ? 0 : found->second});
  }
  std::ranges::stable_sort(support, std::ranges::greater{}, &SupportToken::multiplier);
  return support;
}

SolutionHalf half_of(const SummaryReader& file, const std::string& suffix) {
  SolutionHalf half;
  half.status = file.text("status" + suffix);
  half.method = file.text("method" + suffix);
  half.norm = file.number("norm" + suffix);
  half.dual = file.number("dual" + suffix);
  half.gap = file.number("gap" + suffix);
  half.iterations = file.whole("iterations" + suffix);
  half.support = support_of(file, suffix);
  half.constraints = static_cast<std::int64_t>(file.numbers("lambda" + suffix).size());
  if (file.has("singular_values" + suffix)) half.singular_values = file.numbers("singular_values" + suffix);
  return half;
}

}  // namespace

bool is_solution(const NamedArrays& arrays) {
  constexpr std::array names{"problem", "kind", "status", "norm", "gap", "lambda", "support"};
  return std::ranges::all_of(names, [&](const char* name) { return arrays.contains(name); });
}

SolutionSummary summarize_solution(const NamedArrays& arrays, std::string_view name) {
  const SummaryReader file(arrays, name);
  SolutionSummary summary;
  summary.problem = file.text("problem");
  summary.kind = file.text("kind");
  summary.solution = half_of(file, "");
  if (file.has("status_fin")) summary.finite = half_of(file, "_fin");
  if (file.has("R")) summary.R = file.number("R");
  summary.data_fingerprint = std::bit_cast<std::uint64_t>(file.whole("data_fingerprint"));
  return summary;
}

}  // namespace attmirror

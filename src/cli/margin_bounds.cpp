#include "cli/margin_bounds.hpp"

#include "base/words.hpp"
#include "data/npy.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

std::vector<double> bounds_of_list(const std::string& text) {
  std::vector<double> values;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (word.empty() || word.ends_with(".npy"))
      throw bad_input(
          fmt::format("bounds is \"{}\": expected file:BOUNDS.npy or numbers such as 1,0,1", text));
    values.push_back(parse_number("bounds", word));
    begin = end + 1;
  }
  return values;
}

}  // namespace

std::vector<double> parse_bounds(const std::string& text, const Dataset& data) {
  std::vector<double> values =
      text.starts_with("file:") ? load_npy(text.substr(5)).to_doubles(text.substr(5)) : bounds_of_list(text);
  if (std::ssize(values) != data.total_queries())
    throw bad_input(fmt::format("bounds has {} number{}: expected {}, one per query", values.size(),
                                values.size() == 1 ? "" : "s", data.total_queries()));
  for (std::size_t j = 0; j < values.size(); ++j)
    if (!(values[j] >= 0) || !std::isfinite(values[j]))
      throw bad_input(fmt::format("bounds[{}] is {}: expected a finite number of at least 0", j, values[j]));
  return values;
}

bool relaxes_prompt(const MarginPlan& plan) {
  if (!plan.run) return !(plan.to_check && plan.to_check->p.size() == 0 && plan.to_check->W.size() > 0);
  const RunConfig& config = plan.run->config;
  if (std::ranges::find(config.train, Block::v) == config.train.end())
    throw bad_input(
        "problem is relaxed: the run has a fixed v, and constraints relax only where v is trained, too");
  return config.params == "prompt";
}

Norm decoder_norm(const MarginPlan& plan) {
  const auto geometry = plan.run ? geometry_norm(plan.run->config.optimizer) : std::nullopt;
  return geometry && geometry->is_entrywise() ? *geometry : Norm::frobenius();
}

void check_saved_bounds(const SavedSolution& file, const std::filesystem::path& path,
                        const MarginConstraints& constraints) {
  if (file.bounds.size() == 0 || file.bounds.size() != std::ssize(file.constraints)) return;
  const auto key = [](const ConstraintOrigin& o) { return std::tuple(o.sequence, o.query, o.token); };
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, double> saved;
  for (std::size_t k = 0; k < file.constraints.size(); ++k)
    saved.emplace(key(file.constraints[k]), file.bounds[static_cast<std::ptrdiff_t>(k)]);
  for (std::ptrdiff_t k = 0; k < constraints.count(); ++k) {
    const ConstraintOrigin& origin = constraints.origins()[static_cast<std::size_t>(k)];
    const double expected = constraints.bounds()[static_cast<std::size_t>(k)];
    const auto found = saved.find(key(origin));
    if (found != saved.end() && found->second != expected)
      throw bad_input(fmt::format(
          "{}: the bound of sequence {}, query {}, token {} is {}: expected {}; give the file's with --bounds",
          path.string(), origin.sequence, origin.query, origin.token, found->second, expected));
  }
}

}  // namespace attmirror::cli

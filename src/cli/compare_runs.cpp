#include "cli/compare_runs.hpp"

#include "base/words.hpp"
#include "cli/console.hpp"
#include "descent/run_comparison.hpp"
#include "descent/run_text.hpp"
#include "descent/saved_model.hpp"
#include "descent/selection_differences.hpp"
#include "descent/selection_json.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/margin/max_margin.hpp>
#include <attmirror/margin/problems.hpp>
#include <attmirror/mirror/lp_map.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <vector>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

// A run, and the support tokens of the max-margin problem that it goes to: that of the tokens it selects, in its norm.
struct RunSide {
  std::filesystem::path path;
  SavedRun saved;
  Norm norm = Norm::frobenius();  // that margins are measured in
  MarginStatus support_status = MarginStatus::stopped;
  std::vector<ConstraintOrigin> support{};

  std::string name() const { return one_line(path.string()); }
};

RunSide load_side(const std::filesystem::path& path, const CompareRunsOptions& options) {
  RunSide side{.path = path, .saved = load_trained_run(path)};
  side.norm = options.p ? Norm::l(*options.p) : measuring_norm(side.saved.config.optimizer);
  return side;
}

void check_same_data(const RunSide& first, const RunSide& second) {
  const RunConfig &a = first.saved.config, &b = second.saved.config;
  if (a.data_fingerprint != b.data_fingerprint)
    throw bad_input(
        fmt::format("{} and {} are runs on different data ({}, fingerprint {:016x}, and {}, fingerprint "
                    "{:016x}): expected the same",
                    first.name(), second.name(), a.data_path.string(), a.data_fingerprint,
                    b.data_path.string(), b.data_fingerprint));
  if ((a.params == "prompt") != (b.params == "prompt"))
    throw bad_input(fmt::format("{} trains {} and {} trains {}: expected weights of the same shape",
                                first.name(), weights_text(a), second.name(), weights_text(b)));
}

void find_support(RunSide& side, const Attention& model, const Selection& selected, int threads) {
  MarginProblem problem = AttentionSvm{selected};
  if (const auto* prompt = std::get_if<Prompt>(&model.parameterization()))
    problem = PromptSvm{selected, prompt->key_weights};
  const MarginConstraints rows = constraints(model.data(), problem);
  const MarginSolution solution =
      max_margin(model.data(), problem, side.norm, {.max_seconds = 60, .threads = threads});
  side.support_status = solution.status;
  if (solution.status != MarginStatus::certified) return;
  for (const std::ptrdiff_t k : solution.support)
    side.support.push_back(rows.origins()[static_cast<std::size_t>(k)]);
}

std::size_t shared_support(const RunSide& first, const RunSide& second) {
  const auto key = [](const ConstraintOrigin& o) { return std::tuple(o.sequence, o.query, o.token); };
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> there;
  for (const ConstraintOrigin& o : first.support) there.insert(key(o));
  return static_cast<std::size_t>(std::ranges::count_if(
      second.support, [&](const ConstraintOrigin& o) { return there.contains(key(o)); }));
}

std::string number(double value, const char* format = "{:.6g}") {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : std::string("-");
}

std::string support_text(const RunSide& side) {
  return side.support_status == MarginStatus::certified
             ? fmt::format("{} (norm {})", side.support.size(), to_string(side.norm))
             : fmt::format("{} (norm {})", to_string(side.support_status), to_string(side.norm));
}

std::string optimal_text(const ComparedRun& run) {
  if (!run.optimal) return "unknown: v is 0";
  return fmt::format("{} of {}",
                     run.selected.tokens.size() - selection_differences(run.selected, *run.optimal).size(),
                     run.selected.tokens.size());
}

std::string text_of(const std::array<RunSide, 2>& sides, const RunComparison& comparison,
                    const Dataset& data) {
  const auto& runs = comparison.runs;
  const RunConfig& config = sides[0].saved.config;
  Table table;
  table.columns = {{"", Align::left}, {sides[0].name()}, {sides[1].name()}};
  const auto add = [&](std::string name, auto cell) {
    table.rows.push_back({std::move(name), cell(std::size_t{0}), cell(std::size_t{1})});
  };
  add("weights", [&](std::size_t r) { return weights_text(sides[r].saved.config); });
  add("step", [&](std::size_t r) { return fmt::format("{}", sides[r].saved.step); });
  for (std::size_t k = 0; k < comparison.norms.size(); ++k)
    add(fmt::format("margin, norm {}", to_string(comparison.norms[k])),
        [&](std::size_t r) { return number(runs[r].margins[k]); });
  add("globally optimal tokens", [&](std::size_t r) { return optimal_text(runs[r]); });
  add("smallest score", [&](std::size_t r) { return number(runs[r].smallest_score()); });
  add("mean score", [&](std::size_t r) { return number(runs[r].mean_score()); });
  add("support tokens", [&](std::size_t r) { return support_text(sides[r]); });
  std::string text = fmt::format("{} against {}: {}\n", sides[0].name(), sides[1].name(), to_string(data));
  for (const RunSide& side : sides)
    text += fmt::format("{}: {}\n", side.name(), to_string(side.saved.config.optimizer));
  text += "\n" + to_text(table) + "\n";
  text += fmt::format("cosine of the weights    {}\n", number(comparison.correlation, "{:.9f}"));
  if (sides[0].support_status == MarginStatus::certified &&
      sides[1].support_status == MarginStatus::certified)
    text += fmt::format("shared support tokens    {}\n", shared_support(sides[0], sides[1]));
  const std::size_t n = runs[0].selected.tokens.size();
  if (comparison.differences.empty())
    return text + fmt::format("selected tokens          the same, all {}\n", n);
  text += fmt::format("selected tokens          {} of {} differ\n", comparison.differences.size(), n);
  return text + difference_lines(comparison.differences, [&](const SelectionDifference& one) {
           const auto score = [&](std::size_t r) { return number(runs[r].scores[one.position], "{:.3g}"); };
           return fmt::format("{}: token {} (score {}) in {}, token {} (score {}) in {}",
                              place_text(one.position, config.queries_each), one.first, score(0),
                              sides[0].name(), one.second, score(1), sides[1].name());
         });
}

Json side_json(const RunSide& side, const ComparedRun& run, const std::vector<Norm>& norms) {
  Json margins = Json::object(), scores = Json::array(), support = Json::array();
  for (std::size_t k = 0; k < norms.size(); ++k)
    margins[to_string(norms[k])] = finite_or_null(run.margins[k]);
  for (const double score : run.scores) scores.push_back(finite_or_null(score));
  for (const ConstraintOrigin& o : side.support) support.push_back({o.sequence, o.query, o.token});
  const std::int64_t each = side.saved.config.queries_each;
  return {{"path", side.path.string()},
          {"optimizer", method_name(side.saved.config.optimizer)},
          {"params", side.saved.config.params},
          {"step", side.saved.step},
          {"run_status", side.saved.result ? to_string(side.saved.result->status) : "unfinished"},
          {"norm", to_string(side.norm)},
          {"margins", margins},
          {"selected", selection_json(run.selected, each)},
          {"optimal", run.optimal ? selection_json(*run.optimal, each) : Json()},
          {"scores", scores},
          {"smallest_score", finite_or_null(run.smallest_score())},
          {"mean_score", finite_or_null(run.mean_score())},
          {"support_status", to_string(side.support_status)},
          {"support", support}};
}

Json runs_json(const std::array<RunSide, 2>& sides, const RunComparison& comparison) {
  Json differences = Json::array();
  for (const SelectionDifference& one : comparison.differences) {
    Json entry = place_json(one.position, sides[0].saved.config.queries_each);
    entry["selected"] = {one.first, one.second};
    entry["scores"] = {finite_or_null(comparison.runs[0].scores[one.position]),
                       finite_or_null(comparison.runs[1].scores[one.position])};
    differences.push_back(std::move(entry));
  }
  const bool both = sides[0].support_status == MarginStatus::certified &&
                    sides[1].support_status == MarginStatus::certified;
  return {{"status", "done"},
          {"kind", "runs"},
          {"correlation", finite_or_null(comparison.correlation)},
          {"same_tokens", comparison.differences.empty()},
          {"agreeing_tokens", comparison.runs[0].selected.tokens.size() - comparison.differences.size()},
          {"differences", differences},
          {"shared_support", both ? Json(shared_support(sides[0], sides[1])) : Json()},
          {"runs",
           {side_json(sides[0], comparison.runs[0], comparison.norms),
            side_json(sides[1], comparison.runs[1], comparison.norms)}}};
}

}  // namespace

Dataset load_compared_data(const SavedRun& run, const std::filesystem::path& given) {
  if (!given.empty()) return load_run_data(run.config, given);
  try {
    return load_run_data(run.config, run.config.data_path);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}; give the run's data with --data FILE", error.what()));
  }
}

int compare_runs(const CompareRunsOptions& options) {
  if (options.p) validate_p(*options.p);
  std::array<RunSide, 2> sides{load_side(options.runs[0], options), load_side(options.runs[1], options)};
  check_same_data(sides[0], sides[1]);
  const Dataset data = load_compared_data(sides[0].saved, options.data);
  const Attention first = model_of(sides[0].saved, data), second = model_of(sides[1].saved, data);
  const RunComparison comparison =
      attmirror::compare_runs({&first, sides[0].saved.parameters, sides[0].norm},
                              {&second, sides[1].saved.parameters, sides[1].norm});
  for (std::size_t r = 0; r < 2; ++r) {
    if (!sides[r].saved.result && !options.common.quiet)
      note(fmt::format("the run in {} has not ended: compared at its checkpoint, step {}", sides[r].name(),
                       sides[r].saved.step));
    find_support(sides[r], r == 0 ? first : second, comparison.runs[r].selected,
                 static_cast<int>(options.common.threads));
  }
  if (options.common.json)
    print_json(runs_json(sides, comparison));
  else
    print(text_of(sides, comparison, data));
  return done;
}

}  // namespace attmirror::cli

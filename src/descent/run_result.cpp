#include "base/json_numbers.hpp"
#include "descent/attention_objective.hpp"
#include "descent/optimizer_fields.hpp"
#include "descent/selection_differences.hpp"
#include "descent/selection_json.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/descent/run_folder.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace attmirror {

namespace {

double number_or_nan(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

RunStatus parse_status(const std::string& name) {
  for (const RunStatus status : {RunStatus::completed, RunStatus::saturated, RunStatus::out_of_time,
                                 RunStatus::interrupted, RunStatus::diverged})
    if (name == to_string(status)) return status;
  throw bad_input(fmt::format("status is \"{}\", which is not a status of a run", name));
}

// What `read` throws begins with the name of the member.
template <class Read>
auto of_member(const char* name, const Json& json, Read read) {
  try {
    return read(json.at(name));
  } catch (const Error& error) {
    throw error.in(name);
  }
}

Selection parse_tokens(const Json& json) {
  Selection selection;
  for (const Json& entry : json) {
    if (!entry.is_array())
      selection.tokens.push_back(whole_number<std::int64_t>(entry));
    else
      for (const Json& token : entry) selection.tokens.push_back(whole_number<std::int64_t>(token));
  }
  return selection;
}

RunResult result_from(const Json& json) {
  RunResult result;
  result.status = parse_status(json.at("status"));
  result.steps = of_member("steps", json, [](const Json& one) { return whole_number<std::int64_t>(one); });
  result.loss = number_or_nan(json.at("loss"));
  result.max_softmax = number_or_nan(json.at("max_softmax"));
  result.norm = number_or_nan(json.at("norm"));
  result.seconds = number_or_nan(json.at("seconds"));
  result.selected = of_member("selected", json, parse_tokens);
  if (!json.at("optimal").is_null()) result.optimal = of_member("optimal", json, parse_tokens);
  if (json.contains("unsaturated") && !json.at("unsaturated").is_null())
    result.saturation =
        Saturation{.queries = static_cast<std::int64_t>(result.selected.tokens.size()),
                   .unsaturated = of_member("unsaturated", json,
                                            [](const Json& one) { return whole_number<std::int64_t>(one); }),
                   .smallest = number_or_nan(json.at("min_max_softmax"))};
  return result;
}

}  // namespace

RunResult parse_result(std::string_view text) {
  try {
    return result_from(Json::parse(text));
  } catch (const Json::exception&) {
    throw bad_input("it is damaged: it is not what attmirror writes there");
  }
}

RunResult result_of(const Attention& model, const DescentRun& run) {
  return result_of(AttentionObjective(model), run);
}

RunResult result_of(const Objective& objective, const DescentRun& run) {
  RunResult result;
  result.status = run.status;
  result.steps = run.steps;
  result.loss = run.loss;
  result.max_softmax = run.max_softmax;
  result.norm = run.norm;
  result.seconds = run.seconds;
  result.selected = run.selected;
  if (!run.selected.tokens.empty()) result.optimal = objective.optimal(run.final_parameters);
  return result;
}

std::optional<Saturation> saturation_of(const Attention& model, const DescentRun& run) {
  return saturation_of(AttentionObjective(model), run);
}

std::optional<Saturation> saturation_of(const Objective& objective, const DescentRun& run) {
  if (run.status == RunStatus::diverged) return std::nullopt;
  const std::vector<double> largest = objective.largest_probabilities(run.final_parameters);
  if (largest.empty()) return std::nullopt;
  Saturation result{.queries = static_cast<std::int64_t>(largest.size()), .smallest = 1};
  for (const double probability : largest) {
    result.smallest = std::min(result.smallest, probability);
    result.unsaturated += probability < Saturation::threshold ? 1 : 0;
  }
  return result;
}

std::string to_json(const RunResult& result, const RunConfig& config, const std::filesystem::path& output) {
  const Json optimizer = optimizer_json(config.optimizer);
  Json json = {
      {"status", to_string(result.status)},
      {"steps", result.steps},
      {"loss", finite_or_null(result.loss)},
      {"max_softmax", finite_or_null(result.max_softmax)},
      {"norm", finite_or_null(result.norm)},
      {"seconds", finite_or_null(result.seconds)},
      {"selected", selection_json(result.selected, config.queries_each)},
      {"optimal", result.optimal ? selection_json(*result.optimal, config.queries_each) : Json()},
      {"globally_optimal", result.optimal ? Json(result.globally_optimal()) : Json()},
      {"differences", result.optimal
                          ? differences_json(selection_differences(result.selected, *result.optimal),
                                             config.queries_each, "selected", "optimal")
                          : Json()},
      {"unsaturated", result.saturation ? Json(result.saturation->unsaturated) : Json()},
      {"min_max_softmax", result.saturation ? finite_or_null(result.saturation->smallest) : Json()},
      {"optimizer", method_name(config.optimizer)},
      {"geometry", to_string(measuring_norm(config.optimizer))},
      {"p", geometry_p(config.optimizer)},
      {"lr", optimizer.at("lr")},
      {"normalized", optimizer.contains("normalized") ? optimizer.at("normalized") : Json()},
      {"params", is_own_run(config) ? config.kind : config.params},
      {"isa", config.isa},
      {"version", config.version},
      {"output", output.empty() ? Json() : Json(output.string())},
  };
  return dump(json) + "\n";
}

}  // namespace attmirror

#include "deep/trainer/train_json.hpp"

#include <algorithm>
#include <array>

namespace attmirror::deep {

namespace {

constexpr std::array trial_states{TrialStatus::running, TrialStatus::completed, TrialStatus::reached_accuracy,
                                  TrialStatus::diverged};

Json number_or_null(const std::optional<double>& value) { return value ? finite_or_null(*value) : Json(); }

std::optional<double> optional_number(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

// Not finite in files is null; NaN here, and an infinite loss with it.
double number_or_nan(const Json& json) { return json.is_null() ? NAN : json.get<double>(); }

}  // namespace

std::string_view to_string(TrialStatus status) {
  switch (status) {
    case TrialStatus::running:
      return "running";
    case TrialStatus::completed:
      return "completed";
    case TrialStatus::reached_accuracy:
      return "reached accuracy";
    case TrialStatus::diverged:
      return "diverged";
  }
  return "unknown";
}

std::string_view to_string(TrainStatus status) {
  switch (status) {
    case TrainStatus::completed:
      return "completed";
    case TrainStatus::stopped:
      return "stopped";
    case TrainStatus::time_limit:
      return "time limit";
  }
  return "unknown";
}

bool TrainResult::all_diverged() const {
  return !trials.empty() && std::ranges::all_of(trials, [](const TrialResult& trial) {
    return trial.status == TrialStatus::diverged;
  });
}

Json trial_json(const TrialResult& trial) {
  Json json = {{"trial", trial.trial},
               {"status", to_string(trial.status)},
               {"epochs", trial.epochs},
               {"steps", trial.steps},
               {"train_loss", finite_or_null(trial.train_loss)},
               {"train_accuracy", finite_or_null(trial.train_accuracy)},
               {"test_loss", number_or_null(trial.test_loss)},
               {"test_accuracy", number_or_null(trial.test_accuracy)},
               {"best_test_accuracy", number_or_null(trial.best_test_accuracy)},
               {"best_epoch", trial.best_epoch},
               {"seconds", trial.seconds},
               {"init_seed", trial.init_seed},
               {"order_seed", trial.order_seed},
               {"dropout_seed", trial.dropout_seed}};
  if (trial.validation_accuracy) {  // only where rows are held out
    json["validation_loss"] = number_or_null(trial.validation_loss);
    json["validation_accuracy"] = number_or_null(trial.validation_accuracy);
    json["best_validation_accuracy"] = number_or_null(trial.best_validation_accuracy);
    json["best_validation_epoch"] = trial.best_validation_epoch;
  }
  return json;
}

TrialResult trial_from_json(const Json& json) {
  TrialResult trial;
  trial.trial = json.at("trial").get<std::int64_t>();
  const auto status = json.at("status").get<std::string>();
  const auto* known =
      std::ranges::find_if(trial_states, [&](TrialStatus state) { return to_string(state) == status; });
  if (known == trial_states.end()) throw Json::other_error::create(501, "no such status", nullptr);
  trial.status = *known;
  trial.epochs = json.at("epochs").get<std::int64_t>();
  trial.steps = json.at("steps").get<std::int64_t>();
  trial.train_loss = number_or_nan(json.at("train_loss"));
  trial.train_accuracy = number_or_nan(json.at("train_accuracy"));
  trial.test_loss = optional_number(json.at("test_loss"));
  trial.test_accuracy = optional_number(json.at("test_accuracy"));
  trial.best_test_accuracy = optional_number(json.at("best_test_accuracy"));
  trial.best_epoch = json.at("best_epoch").get<std::int64_t>();
  if (json.contains("validation_accuracy")) {
    trial.validation_loss = optional_number(json.at("validation_loss"));
    trial.validation_accuracy = optional_number(json.at("validation_accuracy"));
    trial.best_validation_accuracy = optional_number(json.at("best_validation_accuracy"));
    trial.best_validation_epoch = json.at("best_validation_epoch").get<std::int64_t>();
  }
  trial.seconds = json.at("seconds").get<double>();
  trial.init_seed = json.at("init_seed").get<std::uint64_t>();
  trial.order_seed = json.at("order_seed").get<std::uint64_t>();
  trial.dropout_seed = json.at("dropout_seed").get<std::uint64_t>();
  return trial;
}

Json spread_json(const AttentionSpread& spread) {
  return {{"entropy", finite_or_null(spread.entropy)},
          {"top_share", finite_or_null(spread.top_share)},
          {"tokens_90", finite_or_null(spread.tokens_90)}};
}

Json row_json(const EpochRow& row) {
  Json json = {{"trial", row.trial},
               {"epoch", row.epoch},
               {"step", row.step},
               {"train_loss", finite_or_null(row.train_loss)},
               {"train_accuracy", finite_or_null(row.train_accuracy)},
               {"test_loss", number_or_null(row.test_loss)},
               {"test_accuracy", number_or_null(row.test_accuracy)},
               {"seconds", row.seconds},
               {"epoch_seconds", row.epoch_seconds},
               {"tokens_per_second", finite_or_null(row.tokens_per_second)},
               {"lr", row.lr},
               {"weight_norm", finite_or_null(row.weight_norm)}};
  for (const EpochRow::MapMeasures& map : row.maps)
    json[std::string(1, map.map)] = {{"norm", finite_or_null(map.norm)},
                                     {"largest", finite_or_null(map.largest)},
                                     {"above_0.06", finite_or_null(map.above)},
                                     {"sparsity", finite_or_null(map.sparsity)}};
  if (row.validation_accuracy) {
    json["validation_loss"] = number_or_null(row.validation_loss);
    json["validation_accuracy"] = number_or_null(row.validation_accuracy);
  }
  for (const AttentionMeasures& block : row.attention)
    json["attention"].push_back({{"all", spread_json(block.all)},
                                 {"first", spread_json(block.first)},
                                 {"K_norm", finite_or_null(block.key_norm)},
                                 {"Q_norm", finite_or_null(block.query_norm)},
                                 {"KQ_norm", finite_or_null(block.product_norm)}});
  return json;
}

std::string to_json(const EpochRow& row) { return dump(row_json(row)); }

std::string to_json(const TrainResult& result, const std::filesystem::path& folder) {
  Json trials = Json::array();
  for (const TrialResult& trial : result.trials) trials.push_back(trial_json(trial));
  return dump({{"status", result.all_diverged() ? "diverged" : to_string(result.status)},
               {"trials", trials},
               {"seconds", result.seconds},
               {"device", result.device},
               {"parameters", result.parameters},
               {"run", folder.empty() ? Json() : Json(folder.string())}},
              2) +
         "\n";
}

}  // namespace attmirror::deep

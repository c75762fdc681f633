#include "pages/training_folder.hpp"

#include "base/atomic_file.hpp"
#include "base/json.hpp"
#include "base/result_folder.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace attmirror {

namespace {

namespace fs = std::filesystem;

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

double number_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : nothing;
}

Json parsed(const std::string& text, const std::string& name) {
  try {
    return Json::parse(text);
  } catch (const Json::exception&) {
    throw bad_input(fmt::format("{} is no JSON", name));
  }
}

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : dump(value);
}

TrainingEpoch epoch_of(const Json& line, const std::string& name) {
  const auto whole = [&](const char* key, std::int64_t least) {
    const auto found = line.find(key);
    if (found == line.end() || !found->is_number_integer() || found->get<std::int64_t>() < least)
      throw bad_input(fmt::format("{}: {} is {}: expected a whole number from {}", name, key,
                                  found == line.end() ? "missing" : dump(*found), least));
    return found->get<std::int64_t>();
  };
  if (!line.is_object()) throw bad_input(fmt::format("{} is no object", name));
  TrainingEpoch epoch;
  epoch.trial = whole("trial", 0);
  epoch.epoch = whole("epoch", 0);
  epoch.step = whole("step", 0);
  epoch.train_loss = number_of(line, "train_loss");
  epoch.train_accuracy = number_of(line, "train_accuracy");
  epoch.test_loss = number_of(line, "test_loss");
  epoch.test_accuracy = number_of(line, "test_accuracy");
  epoch.seconds = number_of(line, "seconds");
  epoch.weights["weight_norm"] = number_of(line, "weight_norm");
  for (const char* map : {"K", "Q", "V"})
    if (const auto found = line.find(map); found != line.end() && found->is_object())
      for (const auto& [measure, value] : found->items())
        epoch.weights[fmt::format("{}.{}", map, measure)] = value.is_number() ? value.get<double>() : nothing;
  return epoch;
}

std::map<std::int64_t, TrainingTrial> trials_of(const fs::path& path) {
  std::map<std::int64_t, TrainingTrial> trials;
  if (!is_file(path)) return trials;
  const std::string text = read_text_file(path);
  std::size_t number = 1;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1, ++number) {
    const std::string name = fmt::format("{}, line {}", path.string(), number);
    const TrainingEpoch epoch = epoch_of(parsed(text.substr(begin, end - begin), name), name);
    TrainingTrial& trial = trials[epoch.trial];
    trial.trial = epoch.trial;
    trial.status = "running";
    std::erase_if(trial.epochs, [&](const TrainingEpoch& one) { return one.epoch >= epoch.epoch; });
    trial.epochs.push_back(epoch);
  }
  return trials;
}

}  // namespace

std::pair<double, std::int64_t> TrainingTrial::best_test_accuracy() const {
  std::pair<double, std::int64_t> best{nothing, 0};
  for (const TrainingEpoch& epoch : epochs)
    if (std::isfinite(epoch.test_accuracy) && !(epoch.test_accuracy <= best.first))
      best = {epoch.test_accuracy, epoch.epoch};
  return best;
}

double TrainingTrial::last_test_accuracy() const {
  double last = nothing;
  for (const TrainingEpoch& epoch : epochs)
    if (std::isfinite(epoch.test_accuracy)) last = epoch.test_accuracy;
  return last;
}

std::string TrainingFolder::value(const std::string& key) const {
  for (const auto& [name, text] : configuration)
    if (name == key) return text;
  return "";
}

std::string TrainingFolder::optimizer_text() const {
  const std::string name = value("optimizer.name");
  return fmt::format("{}{}, lr = {}", name, name == "md" ? " p = " + value("optimizer.p") : "",
                     value("optimizer.lr"));
}

std::string TrainingFolder::model_text() const {
  return fmt::format("{}, {} blocks, {} heads, width {}", value("model.kind"), value("model.blocks"),
                     value("model.heads"), value("model.width"));
}

TrainingFolder load_training(const fs::path& path) {
  if (folder_kind(path) != ResultKind::training)
    throw bad_input(fmt::format(
        "{} is not a folder of attmirror deep train: its config.json is missing or of another kind",
        path.string()));
  TrainingFolder folder;
  folder.path = path;
  const Json config = parsed(read_text_file(path / "config.json"), (path / "config.json").string());
  for (const auto& [table, keys] : config.items())
    if (keys.is_object())
      for (const auto& [key, value] : keys.items())
        folder.configuration.emplace_back(fmt::format("{}.{}", table, key), value_text(value));
  std::map<std::int64_t, TrainingTrial> trials = trials_of(path / "metrics.jsonl");
  folder.status = "unfinished";
  if (const fs::path file = path / "results.json"; is_file(file)) {
    const Json results = parsed(read_text_file(file), file.string());
    if (!results.is_object() || !results.value("status", Json()).is_string())
      throw bad_input(fmt::format("{} has no status", file.string()));
    folder.status = results["status"].get<std::string>();
    const Json ended = results.value("trials", Json::array());
    for (const Json& one : ended)
      if (one.is_object() && one.value("trial", Json()).is_number_integer() &&
          one.value("status", Json()).is_string())
        if (const auto found = trials.find(one["trial"].get<std::int64_t>()); found != trials.end())
          found->second.status = one["status"].get<std::string>();
  }
  for (auto& [number, trial] : trials) folder.trials.push_back(std::move(trial));
  return folder;
}

}  // namespace attmirror

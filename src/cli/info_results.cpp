#include "cli/info_results.hpp"

#include "base/atomic_file.hpp"
#include "base/fields.hpp"
#include "base/words.hpp"
#include "cli/console.hpp"
#include "descent/run_text.hpp"
#include "descent/saved_path.hpp"
#include "next_token/run_folders.hpp"
#include "pages/training_folder.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/table.hpp>
#include <attmirror/descent/run_folder.hpp>
#include <attmirror/papers/reproduce.hpp>
#include <attmirror/sweep/database.hpp>

#include <array>
#include <cmath>
#include <map>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::cli {

namespace fs = std::filesystem;

// Files come from anywhere: what they hold is shown through one_line(), so that it stays in its line.

namespace {

std::string made_by(const std::string& version, const std::string& commit, const std::string& isa) {
  return one_line(fmt::format("attmirror {} (commit {}), {}", version, commit, isa));
}

}  // namespace

InfoAnswer describe_run_folder(const fs::path& path) {
  const SavedRun run = load_run(path);
  const RunConfig& config = run.config;
  const std::string status = run.result ? std::string(to_string(run.result->status)) : "unfinished";
  InfoAnswer answer;
  answer.json = {{"kind", "run"},
                 {"path", path.string()},
                 {"status", status},
                 {"step", run.step},
                 {"steps", config.steps},
                 {"records", run.records.size()},
                 {"result", run.result ? Json::parse(to_json(*run.result, config, path)) : Json()},
                 {"config", Json::parse(to_json(config))}};
  answer.text =
      fmt::format("{}: {} at step {} of {}\n\n", one_line(path.string()), status, run.step, config.steps);
  answer.text +=
      is_own_run(config)
          ? fmt::format("data        {}\n", one_line(data_text(config)))
          : fmt::format("data        {} ({} sequences, at most {} tokens, dimension {})\n",
                        one_line(config.data_path.string()), config.samples, config.max_tokens, config.dim);
  answer.text += fmt::format("model       {}\n", one_line(model_text(config)));
  answer.text += fmt::format("optimizer   {}\n", one_line(to_string(config.optimizer)));
  answer.text += fmt::format("start       {}\n", one_line(start_text(config)));
  answer.text += fmt::format("records     {} ({}, keeps {})\n", run.records.size(), one_line(config.record),
                             to_string(config.keep));
  answer.text += fmt::format("made by     {}\n", made_by(config.version, config.commit, config.isa));
  if (run.result && !run.result->selected.tokens.empty())
    answer.text += fmt::format("selected    {}\n", short_list(run.result->selected.tokens));
  if (!run.result && is_own_run(config))
    answer.text += "\nThe run was stopped before it finished: the program that trains it can continue it.\n";
  else if (!run.result)
    answer.text +=
        "\nThe run was stopped before it finished: attmirror train with the same options and --resume continues it.\n";
  if (run.records.empty()) return answer;

  Table table;
  table.columns = {{"step"}, {"loss"}, {"max softmax"}, {norm_text(config)}};
  constexpr std::size_t most = 12;
  const std::size_t count = run.records.size();
  for (std::size_t r = 0; r < count; ++r) {
    if (count > most && r >= most / 2 && r < count - most / 2) {
      if (r == most / 2) table.rows.push_back({"...", "", "", ""});
      continue;
    }
    const Record& record = run.records[r];
    table.rows.push_back({fmt::format("{}", record.step), fmt::format("{:.9g}", record.loss),
                          fmt::format("{:.6f}", record.max_softmax), fmt::format("{:.6g}", record.norm)});
  }
  answer.text += "\n" + to_text(table);
  return answer;
}

// What attmirror path left.
InfoAnswer describe_path_folder(const fs::path& path) {
  const SavedPath saved = load_saved_path(path);
  InfoAnswer answer;
  answer.json = {{"kind", "path"},       {"path", path.string()},  {"path_kind", saved.kind},
                 {"norm", saved.norm},   {"params", saved.params}, {"data", saved.data_path.string()},
                 {"radii", saved.radii}, {"points", Json::array()}};
  answer.text = fmt::format("{}: regularization path, {} of {} radii\n\n", one_line(path.string()),
                            saved.points.size(), saved.radii.size());
  answer.text += fmt::format("data        {}\n", one_line(saved.data_path.string()));
  answer.text +=
      fmt::format("model       {}, {} loss, trains {}\n", one_line(saved.params), one_line(saved.loss),
                  one_line(fmt::format("{}", fmt::join(saved.trained, ", "))));
  answer.text +=
      fmt::format("path        {}, in balls of norm {}{}\n", one_line(saved.kind), one_line(saved.norm),
                  saved.start.empty() ? "" : ", from " + one_line(saved.start));
  answer.text += fmt::format("made by     {}\n", made_by(saved.version, saved.commit, saved.isa));
  Table table;
  table.columns = {{"R"},
                   {saved.is_joint() ? "log loss" : "loss"},
                   {"max softmax"},
                   {"stationarity"},
                   {"status", Align::left},
                   {"selected tokens", Align::left}};
  for (const PathPoint& point : saved.points) {
    table.rows.push_back({fmt::format("{:.6g}", point.radius),
                          fmt::format("{:.9g}", saved.is_joint() ? point.log_loss : point.loss),
                          fmt::format("{:.6f}", point.max_softmax), fmt::format("{:.1e}", point.gap),
                          std::string(to_string(point.status)), short_list(point.selected.tokens)});
    answer.json["points"].push_back({{"radius", point.radius},
                                     {"status", to_string(point.status)},
                                     {"loss", finite_or_null(point.loss)},
                                     {"log_loss", finite_or_null(point.log_loss)},
                                     {"max_softmax", finite_or_null(point.max_softmax)},
                                     {"gap", finite_or_null(point.gap)},
                                     {"selected", point.selected.tokens}});
  }
  if (!saved.points.empty()) answer.text += "\n" + to_text(table);
  return answer;
}

InfoAnswer describe_sweep(const fs::path& path) {
  const SweepDatabase database(path);
  const SweepHeader& header = database.header();
  std::map<std::string, std::int64_t> by_status;
  const std::array<std::string, 1> status{"status"};
  database.for_each_run(status, [&](std::span<const Cell> cells) {
    if (const auto* word = std::get_if<std::string>(&cells[0])) ++by_status[*word];
  });
  const auto names = [](const std::vector<RowColumn>& columns) {
    std::vector<std::string> result;
    for (const RowColumn& column : columns) result.push_back(column.name);
    return result;
  };
  std::vector<std::string> arrays;
  for (const auto& [name, shapes] : database.array_shapes()) arrays.push_back(name);
  InfoAnswer answer;
  answer.json = {{"kind", "sweep"},
                 {"path", path.string()},
                 {"name", header.name},
                 {"description", header.description},
                 {"rows", database.count()},
                 {"by_status", by_status},
                 {"axes", header.axes},
                 {"settings", names(header.settings)},
                 {"metrics", names(header.metrics)},
                 {"arrays", arrays},
                 {"file", header.file_text}};
  answer.text = fmt::format("{}: {} rows{}\n", one_line(path.string()), database.count(),
                            header.name.empty() ? "" : " of " + one_line(header.name));
  if (!header.description.empty()) answer.text += header.description + "\n";
  answer.text += "\n";
  for (const auto& [word, count] : by_status) answer.text += fmt::format("{:<12}{}\n", one_line(word), count);
  answer.text += fmt::format("\naxes        {}\n", one_line(fmt::format("{}", fmt::join(header.axes, ", "))));
  answer.text +=
      fmt::format("metrics     {}\n", one_line(fmt::format("{}", fmt::join(names(header.metrics), ", "))));
  if (!arrays.empty())
    answer.text += fmt::format("arrays      {}\n", one_line(fmt::format("{}", fmt::join(arrays, ", "))));
  answer.text += fmt::format("\nattmirror sweep {} --summary shows the numbers.\n", shell_path(path));
  return answer;
}

// What attmirror next-token left: its answer, and where its stages are.
InfoAnswer describe_next_token(const fs::path& path) try {
  const auto read = [&](const char* name) {
    std::error_code error;
    if (!fs::exists(path / name, error)) return Json();
    try {
      return Json::parse(read_text_file(path / name));
    } catch (const Json::exception&) {
      throw bad_input(
          fmt::format("{} is damaged: it is not what attmirror writes there", (path / name).string()));
    }
  };
  InfoAnswer answer;
  Json stages = Json::array();
  for (const fs::path& stage : next_token_stages(path)) stages.push_back(stage.string());
  const Json config = read("config.json"), result = read("result.json");
  answer.json = {{"kind", "next-token"},
                 {"path", path.string()},
                 {"config", config},
                 {"result", result},
                 {"stages", stages}};
  answer.text = fmt::format("{}: next-token prediction, {}\n\n", one_line(path.string()),
                            result.is_object() ? one_line(result.value("status", "unknown")) : "unfinished");
  answer.text += fmt::format("sentences   {} ({}), {} words\n", config.value("sentences", 0),
                             one_line(config.value("source", "")), config.value("vocabulary", 0));
  const auto number = [](const Json& stage, const std::string& name) {
    const Json value = stage.value(name, Json());
    return value.is_number() ? fmt::format("{:.6g}", value.get<double>()) : std::string("-");
  };
  for (const Json& stage : result.is_object() ? result.value("stages", Json::array()) : Json::array())
    answer.text +=
        fmt::format("{:<12}{} steps, loss {}, accuracy {}, 1 - cos {}\n", one_line(stage.value("stage", "")),
                    stage.value("steps", 0), number(stage, "loss"), number(stage, "accuracy"),
                    number(stage, stage.value("stage", "") == "W_ov" ? "direction_W_ov" : "direction_W_kq"));
  for (const Json& stage : stages)
    answer.text +=
        fmt::format("\nattmirror info {} shows its records.", shell_path(stage.get<std::string>()));
  answer.text += "\n";
  return answer;
} catch (const Json::exception&) {
  throw bad_input(fmt::format(
      "config.json or result.json in {} is damaged: it is not what attmirror writes there", path.string()));
}

// What attmirror deep train left, or is about to.
InfoAnswer describe_training(const fs::path& path) {
  const TrainingFolder folder = load_training(path);
  InfoAnswer answer;
  answer.json = {{"kind", "training"},
                 {"path", path.string()},
                 {"status", folder.status},
                 {"config", Json::object()},
                 {"trials", Json::array()}};
  for (const auto& [key, value] : folder.configuration) answer.json["config"][key] = value;
  answer.text =
      fmt::format("{}: training of a transformer, {}\n\n", one_line(path.string()), one_line(folder.status));
  answer.text += fmt::format("network     {}\n", one_line(folder.model_text()));
  answer.text += fmt::format("optimizer   {}\n", one_line(folder.optimizer_text()));
  answer.text += fmt::format("data        {}\n", one_line(folder.value("data.train")));
  if (folder.trials.empty()) answer.text += "\nNo epoch has ended yet.\n";
  Table table;
  table.columns = {{"trial"},         {"status", Align::left}, {"epochs"},
                   {"training loss"}, {"test accuracy"},       {"best"}};
  const auto number = [](double value) { return std::isfinite(value) ? fmt::format("{:.4f}", value) : "-"; };
  for (const TrainingTrial& trial : folder.trials) {
    const TrainingEpoch& last = trial.epochs.back();
    const auto [best, epoch] = trial.best_test_accuracy();
    table.rows.push_back({fmt::format("{}", trial.trial), trial.status, fmt::format("{}", last.epoch),
                          number(last.train_loss), number(trial.last_test_accuracy()), number(best)});
    answer.json["trials"].push_back({{"trial", trial.trial},
                                     {"status", trial.status},
                                     {"epochs", last.epoch},
                                     {"train_loss", finite_or_null(last.train_loss)},
                                     {"train_accuracy", finite_or_null(last.train_accuracy)},
                                     {"test_accuracy", finite_or_null(trial.last_test_accuracy())},
                                     {"best_test_accuracy", finite_or_null(best)},
                                     {"best_epoch", epoch}});
  }
  if (!folder.trials.empty()) answer.text += "\n" + to_text(table);
  answer.text += fmt::format("\nattmirror report {} -o report.html draws the curves.\n", shell_path(path));
  return answer;
}

// What attmirror reproduce left.
InfoAnswer describe_reproduction(const fs::path& path) {
  const std::vector<ExperimentReport> reports = load_reports(path);
  InfoAnswer answer;
  answer.json = {{"kind", "reproduction"}, {"path", path.string()}, {"experiments", Json::array()}};
  for (const ExperimentReport& report : reports)
    answer.json["experiments"].push_back({{"id", report.info.id},
                                          {"paper", report.info.paper},
                                          {"title", report.info.title},
                                          {"extent", to_string(report.extent)},
                                          {"outcome", to_string(report.outcome)},
                                          {"reproduced", report.count(Verdict::reproduced)},
                                          {"artefact", report.count(Verdict::artefact)},
                                          {"differs", report.count(Verdict::differs)},
                                          {"new", report.count(Verdict::unpublished)},
                                          {"seconds", report.seconds},
                                          {"version", report.version},
                                          {"commit", report.commit}});
  answer.text = fmt::format("{}: results of {} experiment{}\n\n", one_line(path.string()), reports.size(),
                            reports.size() == 1 ? "" : "s");
  answer.text += to_text(overview_table(reports)) + "\n" + verdict_summary(reports) + "\n";
  return answer;
}

}  // namespace attmirror::cli

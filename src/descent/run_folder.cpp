#include "base/atomic_file.hpp"
#include "base/json.hpp"
#include "base/result_folder.hpp"
#include "data/npy.hpp"
#include "descent/attention_objective.hpp"
#include "descent/block_arrays.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/descent/run_folder.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t folder_format_version = 1;

// In the order in which they are removed: a run without result.json has not ended, one without checkpoint
// starts over, and config.json says what it is until the end.
constexpr std::array<std::string_view, 6> run_file_names{"result.json", "checkpoint.npz", "final.npz",
                                                         "trace.npz",   "metrics.jsonl",  "config.json"};

std::string metrics_line(const Record& record) {
  Json json = {{"step", record.step},
               {"loss", finite_or_null(record.loss)},
               {"max_softmax", finite_or_null(record.max_softmax)},
               {"norm", finite_or_null(record.norm)}};
  for (const Metric& metric : record.metrics) json[metric.name] = finite_or_null(metric.value);
  return dump(json) + "\n";
}

// Whether an array of trace.npz is one that every run has, or a block; what else is there are metrics.
bool is_common(const std::string& name, std::span<const Block> trained) {
  constexpr std::array common{"format_version", "step", "loss", "max_softmax", "norm"};
  const auto is_name = [&](const auto& other) { return name == other; };
  return std::ranges::any_of(common, is_name) || std::ranges::any_of(trained, is_name, &Block::name);
}

void write_metrics(const fs::path& path, const std::vector<Record>& records) {
  std::string text;
  for (const Record& record : records) text += metrics_line(record);
  write_file_atomically(path, text);
}

RunConfig read_config(const fs::path& path) { return parse_run_config(read_text_file(path), path.string()); }

// Whatever is wrong inside a file of the run, the message begins with the file.
template <class Read>
auto naming(const fs::path& path, Read read) {
  try {
    return read();
  } catch (const Json::exception&) {
    throw bad_input(fmt::format("{} is damaged: it is not what attmirror writes there", path.string()));
  } catch (const Error& error) {
    if (std::string_view(error.what()).find(path.string()) != std::string_view::npos) throw;
    throw error.in(path.string());
  }
}

void check_version(const NamedArrays& arrays) {
  if (const std::int64_t version = get_int64(arrays, "format_version", 1)[0];
      version != folder_format_version)
    throw bad_input(fmt::format("format_version is {}: this version of attmirror reads {}", version,
                                folder_format_version));
}

std::optional<RunResult> read_result(const fs::path& path) {
  if (!is_there(path)) return std::nullopt;
  return naming(path, [&] { return parse_result(read_text_file(path)); });
}

NamedArrays trace_arrays(const Objective& objective, const DescentRun& run) {
  NamedArrays arrays;
  arrays.emplace("format_version", Array::scalar(folder_format_version));
  std::vector<std::int64_t> step;
  std::vector<double> loss, max_softmax, norm;
  std::vector<const Record*> with_weights;
  for (const Record& record : run.records) {
    step.push_back(record.step);
    loss.push_back(record.loss);
    max_softmax.push_back(record.max_softmax);
    norm.push_back(record.norm);
    if (has_weights(record.parameters)) with_weights.push_back(&record);
  }
  arrays.emplace("step", Array(std::span<const std::int64_t>(step)));
  arrays.emplace("loss", Array(std::span<const double>(loss)));
  arrays.emplace("max_softmax", Array(std::span<const double>(max_softmax)));
  arrays.emplace("norm", Array(std::span<const double>(norm)));
  put_metrics(arrays, "", run.records);
  if (with_weights.size() == run.records.size())
    put_stacked(arrays, "", with_weights, run.final_parameters, objective.trained());
  return arrays;
}

NamedArrays final_arrays(const Objective& objective, const DescentRun& run) {
  NamedArrays arrays = objective.final_arrays(run.selected);
  arrays.emplace("format_version", Array::scalar(folder_format_version));
  arrays.emplace("step", Array::scalar(run.steps));
  for (const Block& block : block_names(run.final_parameters))
    put_blocks(arrays, objective.is_trained(block) ? "" : "fixed_", run.final_parameters, std::array{block});
  return arrays;
}

// Blocks that `parameters` lacks are taken from `fixed`.
void fill_in(Parameters& parameters, const Parameters& fixed) {
  visit_blocks(parameters, fixed, [](const Block&, auto& into, const auto& from) {
    if (into.size() == 0) into = from;
  });
}

void read_final(const fs::path& path, SavedRun& run) {
  const NamedArrays arrays = load_npz(path);
  check_version(arrays);
  run.step = get_int64(arrays, "step", 1)[0];
  run.parameters = get_blocks(arrays, "", run.config.train);
  const Parameters fixed = get_blocks(arrays, "fixed_", blocks_under(arrays, "fixed_"));
  fill_in(run.parameters, fixed);
  if (arrays.contains("key_weights")) run.key_weights = to_matrix(arrays.at("key_weights"), "key_weights");
}

void read_trace(const fs::path& path, SavedRun& run) {
  const NamedArrays arrays = load_npz(path);
  check_version(arrays);
  const std::size_t count = get_array(arrays, "step").size();
  const auto step = get_int64(arrays, "step", count);
  const auto loss = get_doubles(arrays, "loss", count);
  const auto max_softmax = get_doubles(arrays, "max_softmax", count);
  const auto norm = get_doubles(arrays, "norm", count);
  std::vector<Parameters> blocks = get_stacked(arrays, "", count, run.config.train);
  Parameters fixed = run.parameters;  // what is not in the trace did not change
  std::vector<std::vector<Metric>> metrics = get_metrics(
      arrays, "", count, [&](const std::string& name) { return is_common(name, run.config.train); });
  run.records.resize(count);
  for (std::size_t r = 0; r < count; ++r) {
    run.records[r] = {step[r], loss[r], max_softmax[r], norm[r], true, {}, std::move(metrics[r])};
    if (run.config.keep == Keep::metrics) continue;
    fill_in(blocks[r], fixed);
    run.records[r].parameters = std::move(blocks[r]);
  }
}

// final.npz holds the key weights; before it is there, they are where the run took them from.
void read_key_weights(SavedRun& run) {
  if (run.config.key_weights_fingerprint == 0 || run.key_weights.size() > 0) return;
  Parameters key_weights;
  key_weights.W = to_matrix(load_npy(run.config.key_weights_path), run.config.key_weights_path.string());
  if (fingerprint(key_weights) != run.config.key_weights_fingerprint)
    throw bad_input(
        fmt::format("{} is not the file that the run started with", run.config.key_weights_path.string()));
  run.key_weights = std::move(key_weights.W);
}

}  // namespace

RunFolder::RunFolder(fs::path path)
    : files_(std::make_unique<ResultFolder>(std::move(path), ResultKind::run, run_file_names)),
      path_(files_->path()) {}

RunFolder::~RunFolder() = default;

bool RunFolder::holds_run() const { return files_->holds_result(); }

void RunFolder::start_files(const RunConfig& config, const std::vector<Record>& records) {
  files_->remove_leftovers();
  write_file_atomically(path_ / "config.json", to_json(config));
  const fs::path metrics = path_ / "metrics.jsonl";
  write_metrics(metrics, records);
  metrics_ = std::ofstream(metrics, std::ios::binary | std::ios::app);
}

void RunFolder::begin(const RunConfig& config) {
  if (is_there(path_ / "config.json")) read_config(path_ / "config.json");  // throws for a stranger's
  for (const fs::path& file : files_->files()) remove_file(file);
  start_files(config, {});
}

void RunFolder::check_same_run(const RunConfig& config) const {
  const auto difference = first_difference(read_config(path_ / "config.json"), config);
  if (difference)
    throw bad_input(fmt::format("cannot resume the run in {}: {}", path_.string(), *difference));
}

std::optional<Checkpoint> RunFolder::checkpoint(const RunConfig& config) const {
  if (!is_there(path_ / "config.json")) {
    if (holds_run())
      throw bad_input(fmt::format("cannot resume the run in {}: config.json is missing", path_.string()));
    return std::nullopt;
  }
  check_same_run(config);
  if (!is_there(path_ / "checkpoint.npz")) return std::nullopt;
  Checkpoint checkpoint = load_checkpoint(path_ / "checkpoint.npz");
  // What Descent takes over: records of the schedule before the step at which it goes on.
  std::erase_if(checkpoint.records,
                [&](const Record& record) { return !record.scheduled || record.step >= checkpoint.step; });
  return checkpoint;
}

void RunFolder::resume(const RunConfig& config, const std::optional<Checkpoint>& checkpoint) {
  if (!checkpoint) return begin(config);
  files_->remove("result.json");
  start_files(config, checkpoint->records);
}

std::optional<RunResult> RunFolder::finished(const RunConfig& config) const {
  if (!is_there(path_ / "config.json")) return std::nullopt;
  const auto result = read_result(path_ / "result.json");
  if (!result) return std::nullopt;
  check_same_run(config);
  const bool took_all = result->status == RunStatus::completed && result->steps >= config.steps;
  const bool diverged = result->status == RunStatus::diverged && result->steps <= config.steps;
  return took_all || diverged ? result : std::nullopt;
}

void RunFolder::append(const Record& record) {
  metrics_ << metrics_line(record) << std::flush;
  if (!metrics_)
    throw environment_error(
        fmt::format("cannot write {}: the disk is full or has failed", (path_ / "metrics.jsonl").string()));
}

void RunFolder::save(const Checkpoint& checkpoint) {
  if (is_finite(checkpoint)) save_checkpoint(path_ / "checkpoint.npz", checkpoint);
}

void RunFolder::finish(const Attention& model, const DescentRun& run, const Checkpoint& last,
                       const RunConfig& config) {
  finish(AttentionObjective(model), run, last, config);
}

void RunFolder::finish(const Objective& objective, const DescentRun& run, const Checkpoint& last,
                       const RunConfig& config) {
  save(last);
  save_npz(path_ / "trace.npz", trace_arrays(objective, run));
  save_npz(path_ / "final.npz", final_arrays(objective, run));
  metrics_.close();
  write_metrics(path_ / "metrics.jsonl", run.records);
  RunResult result = result_of(objective, run);
  result.saturation = saturation_of(objective, run);
  write_file_atomically(path_ / "result.json", to_json(result, config, path_));
}

bool is_run_folder(const fs::path& path) { return folder_kind(path) == ResultKind::run; }

SavedRun load_run(const fs::path& path) {
  if (!is_there(path / "config.json"))
    throw bad_input(fmt::format("{} is not a run folder: it has no config.json", path.string()));
  SavedRun run;
  run.config = read_config(path / "config.json");
  run.result = read_result(path / "result.json");
  if (run.result) {
    naming(path / "final.npz", [&] { read_final(path / "final.npz", run); });
    naming(path / "trace.npz", [&] { read_trace(path / "trace.npz", run); });
  } else if (is_there(path / "checkpoint.npz")) {
    Checkpoint checkpoint = load_checkpoint(path / "checkpoint.npz");
    run.step = checkpoint.step;
    run.parameters = std::move(checkpoint.weights);
    run.records = std::move(checkpoint.records);
  }
  read_key_weights(run);
  return run;
}

}  // namespace attmirror

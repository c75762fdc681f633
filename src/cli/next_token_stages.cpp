#include "cli/next_token_stages.hpp"

#include "base/folders.hpp"
#include "cli/console.hpp"
#include "cli/training.hpp"
#include "descent/run_text.hpp"
#include <attmirror/base/atomic_file.hpp>
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/base/fingerprint.hpp>
#include <attmirror/data/npy.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/next_token/run_folders.hpp>

#include <array>
#include <span>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t format_version = 1;
constexpr std::array all_stages{Stage::collocation, Stage::attention, Stage::joint};

Array array_of(const Matrix& matrix) {
  return {{matrix.rows(), matrix.cols()}, std::span(matrix.data(), static_cast<std::size_t>(matrix.size()))};
}

Array array_of(const Vector& vector) {
  return Array(std::span(vector.data(), static_cast<std::size_t>(vector.size())));
}

void put(NamedArrays& arrays, const char* name, const std::optional<MarginSolution>& solution) {
  if (!solution) return;
  if (solution->W.allFinite()) arrays.emplace(name, array_of(solution->W));
  arrays.emplace(fmt::format("lambda_{}", name), array_of(solution->lambda));
  arrays.emplace(fmt::format("gap_{}", name), Array::scalar(solution->gap));
}

// (query, better, worse) of each comparison, in the order of lambda_W_kq.
Array comparisons(const PartialOrders& orders) {
  std::vector<std::int64_t> rows;
  for (const Token q : orders.queries())
    for (const Preference& preference : orders.preferences(q))
      rows.insert(rows.end(), {q, preference.better, preference.worse});
  return {{static_cast<std::int64_t>(rows.size() / 3), 3}, std::span<const std::int64_t>(rows)};
}

// What the folder holds besides config.json and the stages.
constexpr std::array file_names{"sentences.txt", "vocabulary.txt", "embedding.npy",
                                "targets.npz",   "final.npz",      "result.json"};

// Fields in which a run may differ from the one that it resumes. Each stage checks its own steps.
bool may_differ(const std::string& field) {
  return field == "steps" || field == "max_seconds" || field == "version" || field == "commit" ||
         field == "source" || field == "unseen" || field == "test";
}

double lr_of(const Optimizer& optimizer) {
  return std::visit([](const auto& options) { return options.lr; }, optimizer);
}

// "generator.seed is 1 there and 2 here", or nothing.
std::optional<std::string> find_difference(const std::string& name, const Json& there, const Json& here) {
  if (there == here) return std::nullopt;
  if (there.is_object() && here.is_object())
    for (const auto& [key, value] : here.items())
      if (auto found = find_difference(fmt::format("{}.{}", name, key), there.value(key, Json()), value))
        return found;
  return fmt::format("{} is {} there and {} here", name, dump(there), dump(here));
}

// Whether every step has length lr in the norm that is reported.
bool has_unit_steps(const Optimizer& optimizer) {
  if (const auto* gd = std::get_if<GradientDescent>(&optimizer))
    return gd->normalized && gd->schedule.kind == ScheduleKind::constant &&
           gd->momentum.kind == MomentumKind::none;
  if (const auto* sd = std::get_if<SteepestDescent>(&optimizer))
    return sd->normalized && sd->schedule.kind == ScheduleKind::constant &&
           sd->momentum.kind == MomentumKind::none;
  return false;
}

}  // namespace

Json next_token_config(const NextTokenOptions& options, const NextTokenPlan& plan, const Corpus& corpus,
                       const Embedding& embedding, const std::vector<StageOptions>& stages) {
  Fingerprint data;
  data.add(embedding.fingerprint());
  data.add(corpus.collocations.fingerprint());
  data.add(corpus.sentences.fingerprint());
  for (const std::string& word : corpus.vocabulary.words()) data.add(std::string_view(word));
  Json generator;
  if (options.file.empty()) {
    const RealizableOptions made = plan.realizable.resolved();
    generator = {{"vocab", made.vocabulary},
                 {"sentences", made.sentences},
                 {"min_length", made.min_length},
                 {"max_length", made.max_length},
                 {"order", to_string(made.order)},
                 {"optimal", made.optimal},
                 {"non_optimal", made.non_optimal},
                 {"successor", to_string(made.successor)},
                 {"repetition", to_string(made.repetition)},
                 {"seed", made.seed}};
  }
  const bool random =
      embedding.kind == EmbeddingKind::gaussian || embedding.kind == EmbeddingKind::orthonormal;
  const bool two = plan.stages.front() == Stage::collocation;
  return {{"format", next_token_format},
          {"format_version", format_version},
          {"source", corpus.source},
          {"vocabulary", corpus.vocabulary.size()},
          {"sentences", corpus.sentences.count()},
          {"generator", std::move(generator)},
          {"collocations", corpus.collocation_source},
          {"embedding",
           {{"kind", options.embedding},
            {"dim", embedding.dim()},
            {"seed", random ? Json(options.embedding_seed) : Json()}}},
          {"data_fingerprint", fmt::format("{:016x}", data.value())},
          {"stages", options.stages},
          {"readout", options.readout},
          {"cyclic", options.cyclic},
          {"targets", options.targets},
          {"init", options.init},
          {"init_seed", options.init_seed},
          {"optimizer_W_ov", two ? Json(to_string(stages.front().optimizer)) : Json()},
          {"optimizer", to_string(stages.back().optimizer)},
          {"ov_steps", two ? Json(plan.ov_steps) : Json()},
          {"steps", plan.steps},
          {"max_seconds", options.max_seconds},
          {"record", options.record},
          {"unseen", options.unseen},
          {"test", options.test.string()},
          {"version", version()},
          {"commit", commit()}};
}

NextTokenFolder::NextTokenFolder(const NextTokenOptions& options, Json config)
    : path_(options.output), config_(std::move(config)) {
  if (!writes()) return;
  const std::string name = path_.string();
  if (!is_there(path_ / "config.json")) {
    // Somebody's own files, perhaps the very sentences, must not be replaced.
    for (const char* file : file_names)
      if (is_there(path_ / file))
        throw bad_input(
            fmt::format("{} holds {} already, which is of no run: give another folder", name, file));
    for (const Stage stage : all_stages)
      if (is_there(stage_path(stage)))
        throw bad_input(fmt::format("{} holds {} already, which is of no run: give another folder", name,
                                    to_string(stage)));
    return;
  }
  if (!is_next_token_folder(path_))
    throw bad_input(
        fmt::format("{} holds something else: its config.json is not of attmirror next-token", name));
  if (options.overwrite) return;
  if (!options.resume)
    throw bad_input(
        fmt::format("{} holds a run already: give --resume to go on with it, --overwrite to replace it, "
                    "or another folder",
                    name));
  const Json there = Json::parse(read_text_file(path_ / "config.json"));
  const bool frozen =
      is_run_folder(stage_path(Stage::attention));  // W_ov's steps are then part of what W_kq is
  for (const auto& [field, here] : config_.items()) {
    if (may_differ(field) || (field == "ov_steps" && !frozen)) continue;
    if (const auto difference = find_difference(field, there.value(field, Json()), here))
      throw bad_input(fmt::format("cannot resume the run in {}: {}{}", name, *difference,
                                  field == "ov_steps" ? "; W_kq was trained with that W_ov" : ""));
  }
  resumes_ = true;
}

fs::path NextTokenFolder::stage_path(Stage stage) const { return path_ / std::string(to_string(stage)); }

void NextTokenFolder::begin(const Corpus& corpus, const Embedding& embedding) {
  if (!writes() || resumes_) return;
  std::error_code error;
  fs::create_directories(path_, error);
  if (error)
    throw environment_error(fmt::format("cannot make the folder {}: {}", path_.string(), error.message()));
  check_writable(path_ / "config.json");
  for (const char* file : file_names) fs::remove(path_ / file);
  for (const Stage stage : all_stages)
    if (is_run_folder(stage_path(stage))) fs::remove_all(stage_path(stage));
  write_file_atomically(path_ / "config.json", dump(config_, 2) + "\n");
  write_file_atomically(path_ / "sentences.txt",
                        to_text(corpus.vocabulary, corpus.collocations, corpus.sentences));
  write_file_atomically(path_ / "vocabulary.txt",
                        fmt::format("{}\n", fmt::join(corpus.vocabulary.words(), "\n")));
  if (!embedding.is_one_hot())
    save_npy(path_ / "embedding.npy", array_of(Matrix(embedding.vectors.view().eigen())));
}

void NextTokenFolder::go_on() {
  if (!writes() || went_on_) return;
  went_on_ = true;
  for (const char* file : {"result.json", "final.npz"}) fs::remove(path_ / file);
  if (resumes_) write_file_atomically(path_ / "config.json", dump(config_, 2) + "\n");
}

void NextTokenFolder::save(const Targets& targets, const PartialOrders& orders) const {
  if (!writes() || (!targets.W_ov && !targets.W_kq)) return;
  if (resumes_ && is_there(path_ / "targets.npz")) return;  // of the same data
  NamedArrays arrays;
  arrays.emplace("format_version", Array::scalar(format_version));
  put(arrays, "W_ov", targets.W_ov);
  put(arrays, "W_kq", targets.W_kq);
  if (targets.W_kq) arrays.emplace("comparisons", comparisons(orders));
  if (targets.finite) arrays.emplace("W_kq_finite", array_of(targets.finite->W));
  save_npz(path_ / "targets.npz", arrays);
}

void NextTokenFolder::finish(const Parameters& last, const Json& result) const {
  if (!writes()) return;
  NamedArrays arrays;
  arrays.emplace("format_version", Array::scalar(format_version));
  if (last.W_ov.size() > 0) arrays.emplace("W_ov", array_of(last.W_ov));
  if (last.W_kq.size() > 0) arrays.emplace("W_kq", array_of(last.W_kq));
  save_npz(path_ / "final.npz", arrays);
  write_file_atomically(path_ / "result.json", dump(result) + "\n");
}

RunFolder& NextTokenFolder::open(Stage stage) {
  stages_.push_back(std::make_unique<RunFolder>(stage_path(stage)));
  return *stages_.back();
}

StageOutcome run_stage(const NextTokenModel& model, const NextTokenMeasures& measures,
                       const StageOptions& stage, const Parameters& given, const NextTokenOptions& options,
                       NextTokenFolder& folder) {
  const NextTokenObjective objective(model, measures);
  DescentOptions descent = stage.descent;
  descent.init.given = given;
  RunSources sources;
  sources.data = options.file.empty() ? folder.path() / "sentences.txt" : options.file;
  sources.init = folder.stage_path(Stage::collocation) / "final.npz";
  const RunConfig config = describe_run(objective, stage.optimizer, descent, sources);
  StageOutcome outcome;
  outcome.stage = model.stage();
  outcome.lr = lr_of(stage.optimizer);
  outcome.norm_name = norm_text(config);
  outcome.norm_grows_by_lr = has_unit_steps(stage.optimizer);

  RunFolder* run_folder = folder.writes() ? &folder.open(model.stage()) : nullptr;
  std::optional<Checkpoint> checkpoint;
  if (run_folder && options.resume) {
    if (const auto result = run_folder->finished(config)) {
      SavedRun saved = load_run(run_folder->path());
      outcome.result = *result;
      outcome.parameters = std::move(saved.parameters);
      if (!saved.records.empty()) outcome.metrics = saved.records.back().metrics;
      return outcome;
    }
    checkpoint = run_folder->checkpoint(config);
  }
  Descent run = checkpoint ? Descent(objective, stage.optimizer, descent, *checkpoint)
                           : Descent(objective, stage.optimizer, descent);
  folder.go_on();
  if (run_folder) run_folder->resume(config, checkpoint);
  if (checkpoint && !options.common.quiet)
    note(fmt::format("resuming {} at step {} of {}", to_string(model.stage()), checkpoint->step,
                     descent.steps));
  const Training training = run_descent(run,
                                        {.label = std::string(to_string(model.stage())),
                                         .steps = descent.steps,
                                         .checkpoint_every = options.checkpoint_every,
                                         .quiet = options.common.quiet},
                                        run_folder);
  if (run_folder) run_folder->finish(objective, training.run, training.last, config);
  outcome.result = result_of(objective, training.run);
  outcome.parameters = training.run.final_parameters;
  if (!training.run.records.empty()) outcome.metrics = training.run.records.back().metrics;
  return outcome;
}

}  // namespace attmirror::cli

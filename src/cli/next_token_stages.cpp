#include "cli/next_token_stages.hpp"

#include "cli/console.hpp"
#include "cli/training.hpp"
#include "descent/run_text.hpp"
#include <attmirror/base/atomic_file.hpp>
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>
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

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

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

Json config_of(const NextTokenOptions& options, const Corpus& corpus, const Embedding& embedding) {
  return {{"format", next_token_format},
          {"format_version", format_version},
          {"source", corpus.source},
          {"vocabulary", corpus.vocabulary.size()},
          {"sentences", corpus.sentences.count()},
          {"collocations", corpus.collocation_source},
          {"embedding",
           {{"kind", to_string(embedding.kind)},
            {"dim", embedding.dim()},
            {"seed", embedding.kind == EmbeddingKind::gaussian || embedding.kind == EmbeddingKind::orthonormal
                         ? Json(options.embedding_seed)
                         : Json()}}},
          {"stages", options.stages},
          {"readout", options.readout},
          {"cyclic", options.cyclic},
          {"steps", options.steps},
          {"seed", options.file.empty() ? Json(options.seed) : Json()},
          {"version", version()},
          {"commit", commit()}};
}

double lr_of(const Optimizer& optimizer) {
  return std::visit([](const auto& options) { return options.lr; }, optimizer);
}

}  // namespace

NextTokenFolder::NextTokenFolder(const NextTokenOptions& options) : path_(options.output) {
  if (!writes()) return;
  const fs::path config = path_ / "config.json";
  const bool holds_run = is_there(config);
  if (holds_run && !is_next_token_folder(path_))
    throw bad_input(fmt::format("{} holds something else: its config.json is not of attmirror next-token",
                                path_.string()));
  if (holds_run && !options.resume && !options.overwrite)
    throw bad_input(
        fmt::format("{} holds a run already: give --resume to go on with it, --overwrite to replace it, "
                    "or another folder",
                    path_.string()));
}

fs::path NextTokenFolder::stage_path(Stage stage) const { return path_ / std::string(to_string(stage)); }

void NextTokenFolder::begin(const NextTokenOptions& options, const Corpus& corpus,
                            const Embedding& embedding) {
  if (!writes()) return;
  std::error_code error;
  fs::create_directories(path_, error);
  if (error)
    throw environment_error(fmt::format("cannot make the folder {}: {}", path_.string(), error.message()));
  check_writable(path_ / "config.json");
  const std::string config = dump(config_of(options, corpus, embedding), 2) + "\n";
  if (options.overwrite)
    for (const Stage stage : all_stages)
      if (is_run_folder(stage_path(stage))) fs::remove_all(stage_path(stage));
  for (const char* name : {"result.json", "final.npz"}) fs::remove(path_ / name);
  if (options.resume && is_there(path_ / "config.json")) return;  // each stage checks that it is the same
  write_file_atomically(path_ / "sentences.txt",
                        to_text(corpus.vocabulary, corpus.collocations, corpus.sentences));
  write_file_atomically(path_ / "vocabulary.txt",
                        fmt::format("{}\n", fmt::join(corpus.vocabulary.words(), "\n")));
  if (!embedding.is_one_hot())
    save_npy(path_ / "embedding.npy", array_of(Matrix(embedding.vectors.view().eigen())));
  write_file_atomically(path_ / "config.json", config);
}

void NextTokenFolder::save(const Targets& targets) const {
  if (!writes() || (!targets.W_ov && !targets.W_kq)) return;
  NamedArrays arrays;
  arrays.emplace("format_version", Array::scalar(format_version));
  put(arrays, "W_ov", targets.W_ov);
  put(arrays, "W_kq", targets.W_kq);
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

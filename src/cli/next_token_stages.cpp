#include "cli/next_token_stages.hpp"

#include "cli/console.hpp"
#include "cli/training.hpp"
#include "descent/run_text.hpp"

#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

double lr_of(const Optimizer& optimizer) {
  return std::visit([](const auto& options) { return options.lr; }, optimizer);
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

NextTokenConfig next_token_config(const NextTokenOptions& options, const NextTokenPlan& plan,
                                  const Corpus& corpus, const Embedding& embedding,
                                  const std::vector<StageOptions>& stages) {
  NextTokenConfig config;
  config.source = corpus.source;
  config.vocabulary = corpus.vocabulary.size();
  config.sentences = corpus.sentences.count();
  if (options.file.empty()) config.generator = plan.realizable.resolved();
  config.collocations = corpus.collocation_source;
  config.embedding = options.embedding;
  config.dim = embedding.dim();
  if (embedding.kind == EmbeddingKind::gaussian || embedding.kind == EmbeddingKind::orthonormal)
    config.embedding_seed = options.embedding_seed;
  config.data_fingerprint = corpus.input(embedding).fingerprint();
  config.stages = options.stages;
  config.readout = options.readout;
  config.cyclic = options.cyclic;
  config.targets = options.targets;
  config.init = options.init;
  config.init_seed = options.init_seed;
  if (plan.stages.front() == Stage::collocation) {
    config.optimizer_W_ov = to_string(stages.front().optimizer);
    config.ov_steps = plan.ov_steps;
  }
  config.optimizer = to_string(stages.back().optimizer);
  config.steps = plan.steps;
  config.max_seconds = options.max_seconds;
  config.record = options.record;
  config.unseen = options.unseen;
  config.test = options.test.string();
  return config;
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

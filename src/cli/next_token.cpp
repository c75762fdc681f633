// attmirror next-token: P4's two-stage training on sentences, its max-margin targets, and what it knows of sentences
// that it has not seen.
#include "base/signals.hpp"
#include "cli/console.hpp"
#include "cli/next_token_report.hpp"
#include "cli/options.hpp"
#include <attmirror/base/error.hpp>

#include <memory>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

int refuse(const Contradiction& contradiction, const NextTokenOptions& options) {
  note(contradiction.text);
  if (options.common.json) {
    Json json = {{"status", "contradictory"}, {"realizable", false}, {"error", contradiction.text}};
    json.update(contradiction.json);
    print_json(json);
  }
  return negative;
}

// The weights that a target is a direction for; empty where it was not found.
Matrix direction_of(const std::optional<MarginSolution>& target) {
  return target && target->status == MarginStatus::certified ? target->W : Matrix();
}

// What the trained model knows, beyond what its records say.
void evaluate(NextTokenReport& report, const Parameters& last, int threads) {
  if (!last.has("W_kq")) return;
  if (report.realizable && report.embedding->vocabulary_size() <= 5000)
    report.order = extended_order(attention_scores(*report.embedding, last.matrix("W_kq")), *report.orders);
  if (!last.has("W_ov")) return;
  report.accuracy = accuracy(report.corpus->sentences, *report.embedding, last, threads);
  for (const UnseenSentences& unseen : report.corpus->unseen)
    report.unseen_accuracy.emplace_back(unseen.name,
                                        accuracy(unseen.sentences, *report.embedding, last, threads));
}

int exit_code(const NextTokenReport& report, const NextTokenOptions& options, int signal) {
  const RunResult& last = report.stages.back().result;
  const std::string_view stage = to_string(report.stages.back().stage);
  if (last.status == RunStatus::diverged) {
    note(fmt::format("{} diverged at step {}: loss or weights are no longer finite; try a smaller {}", stage,
                     last.steps, report.stages.back().stage == Stage::collocation ? "--ov-lr" : "--lr"));
    return negative;
  }
  for (const auto* target : {&report.targets->W_ov, &report.targets->W_kq})
    if (*target && (*target)->status != MarginStatus::certified) {
      note(fmt::format("a max-margin problem was not solved: {}", (*target)->brief()));
      if (last.status != RunStatus::interrupted) return negative;
    }
  if (last.status != RunStatus::interrupted) return done;
  note(
      options.output.empty()
          ? fmt::format("interrupted in {} at step {}; without -o FOLDER nothing is kept", stage, last.steps)
          : fmt::format("interrupted in {} at step {}; the same command with --resume{} continues from there",
                        stage, last.steps, options.overwrite ? " instead of --overwrite" : ""));
  return signalled + signal;
}

int run_next_token(const CLI::App& app, const NextTokenOptions& options) {
  const NextTokenPlan plan = make_next_token_plan(app, options);
  const Corpus corpus = make_corpus(plan, options);
  if (corpus.sentences.empty()) return refuse(nothing_left(corpus), options);
  const PartialOrders orders(corpus.sentences, corpus.collocations);
  const auto contradiction = find_contradiction(corpus, orders);
  const bool only_cyclic = contradiction && orders.unexplained().empty();
  if (contradiction && !(options.cyclic && only_cyclic)) return refuse(*contradiction, options);
  const Embedding embedding = make_embedding(corpus.vocabulary.size(), plan.embedding);
  const NextTokenData data{&embedding, &corpus.collocations, &corpus.sentences};
  std::vector<NextTokenModel> models;
  std::vector<StageOptions> stages;
  for (const Stage stage : plan.stages) {
    models.emplace_back(data, stage, plan.readout);
    stages.push_back(stage_options(plan, models.back()));
  }

  NextTokenFolder folder(options.output, next_token_config(options, plan, corpus, embedding, stages),
                         options.overwrite ? ExistingResult::replace
                         : options.resume  ? ExistingResult::resume
                                           : ExistingResult::refuse);
  folder.begin(corpus.input(embedding));
  const Targets targets = solve_targets(plan, options, corpus, embedding, orders);
  folder.save(targets, orders);
  const SignalGuard guard;  // from here on a signal is a request: files are left in order
  NextTokenReport report{.options = &options,
                         .corpus = &corpus,
                         .embedding = &embedding,
                         .orders = &orders,
                         .targets = &targets,
                         .realizable = !contradiction,
                         .stages = {},
                         .accuracy = {},
                         .order = {}};
  NextTokenMeasures measures{.W_ov = direction_of(targets.W_ov), .W_kq = direction_of(targets.W_kq)};
  if (!corpus.unseen.empty()) measures.unseen = &corpus.unseen.front().sentences;
  Parameters last, frozen;
  for (std::size_t s = 0; s < models.size(); ++s) {
    report.stages.push_back(run_stage(models[s], measures, stages[s], frozen, options, folder));
    const StageOutcome& outcome = report.stages.back();
    visit_blocks(last, outcome.parameters, [](const Block&, auto& into, const auto& from) {
      if (from.size() > 0) into = from;
    });
    if (outcome.result.status == RunStatus::interrupted || outcome.result.status == RunStatus::diverged)
      break;
    if (last.has("W_ov")) frozen.matrices["W_ov"] = last.matrix("W_ov");
  }
  if (report.status() != RunStatus::diverged && report.status() != RunStatus::interrupted)
    evaluate(report, last, static_cast<int>(options.common.threads));
  const Json json = to_json(report);
  if (report.status() != RunStatus::interrupted) folder.finish(last, json);
  if (options.common.json)
    print_json(json);
  else if (!options.common.quiet)
    print(to_text(report));
  return exit_code(report, options, SignalGuard::interrupted());
}

}  // namespace

Subcommand add_next_token(CLI::App& parent) {
  auto options = std::make_shared<NextTokenOptions>();
  CLI::App& app =
      *parent.add_subcommand("next-token", "train next-token prediction on sentences, in two stages");
  add_next_token_options(app, *options);
  add_common_options(app, options->common);
  app.footer(
      "A FILE has one sentence per line: its last word is the one to predict, and the word before that is the query. Lines\nof two words \"x y\" say that y is the successor of x. Sentences that the model cannot explain end with exit code 1 and\nthe reason; --skip-unexplained leaves them out, and of sentences that contradict each other the first stay.\nmd and gd take normalized steps here unless --unnormalized is given.\n\n"
      "Examples:\n"
      "  attmirror next-token --vocab 20 --sentences 100 --seed 1 -o run/\n"
      "  attmirror next-token --embedding gaussian --order linear --steps 10000 --ov-steps 3000\n"
      "  attmirror next-token text.txt --skip-unexplained\n"
      "  attmirror next-token sentences.txt --optimizer md --p 1.5 --test unseen.txt -o run/\n"
      "  attmirror next-token --stages joint --steps 5000 --json");
  return {&app, &options->common, [options, &app] { return run_next_token(app, *options); }};
}

}  // namespace attmirror::cli

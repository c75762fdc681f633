// attmirror train: one run of descent, kept in a folder that survives Ctrl-C, kill -9 and a full disk.
#include "base/signals.hpp"
#include "cli/console.hpp"
#include "cli/masked_data.hpp"
#include "cli/options.hpp"
#include "cli/train_plan.hpp"
#include "cli/training.hpp"
#include "descent/optimizer_fields.hpp"
#include "descent/run_text.hpp"
#include "descent/selection_differences.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/descent/run_folder.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

std::string optimality(const RunResult& result) {
  const std::size_t n = result.selected.tokens.size();
  if (!result.optimal) return "unknown: v is 0";
  if (result.globally_optimal()) return n == 1 ? "yes" : fmt::format("yes, all {}", n);
  std::size_t equal = 0;
  for (std::size_t i = 0; i < n; ++i) equal += result.selected.tokens[i] == result.optimal->tokens[i] ? 1 : 0;
  return fmt::format("{} of {}", equal, n);
}

// Where the selected tokens are not the best, sequence by sequence.
std::string differences_text(const RunResult& result, const RunConfig& config) {
  if (!result.optimal) return "";
  return difference_lines(
      selection_differences(result.selected, *result.optimal), [&](const SelectionDifference& one) {
        return fmt::format("{} selects token {}; the best is {}",
                           place_text(one.position, config.queries_each), one.first, one.second);
      });
}

// An end at which attention has not made up its mind, and what to try.
std::string unsaturated_text(const RunResult& result, const RunConfig& config) {
  const auto& saturation = result.saturation;
  if (!saturation || saturation->unsaturated == 0 || result.status == RunStatus::interrupted ||
      result.status == RunStatus::saturated)
    return "";
  const std::string who = saturation->queries == 1
                              ? std::string("the query gives")
                              : fmt::format("{} of {} {} give", saturation->unsaturated, saturation->queries,
                                            config.queries_each == 1 ? "sequences" : "queries");
  std::string text = fmt::format(
      "not saturated     {} no token a probability of {:g} (the smallest maximum is {:.3g}): the selection may still "
      "change\n",
      who, Saturation::threshold, saturation->smallest);
  if (config.penalty != 0)
    return text +
           "                  the penalty keeps the weights finite; with a smaller --penalty they grow further\n";
  const Json optimizer = optimizer_json(config.optimizer);
  const bool plain = optimizer.contains("normalized") && optimizer.at("normalized") == false;
  return text + fmt::format("                  try more --steps{}{}or a larger --lr\n",
                            result.status == RunStatus::out_of_time ? ", more --max-seconds" : "",
                            plain ? ", --normalized " : " ");
}

// A trained v has a start of its own, unless a file gives it.
std::string decoder_start(const RunConfig& config, const Dataset& data) {
  if (config.init_fingerprint != 0 || std::ranges::count(config.train, Block::v) == 0) return "";
  return data.has_decoder() ? " (v from the data's)" : " (v from 0)";
}

std::string summary(const RunResult& result, const RunConfig& config, const TrainOptions& options,
                    const Dataset& data) {
  std::string text = fmt::format("{}: {}\n{}; trains {} from {}; {} loss{}; {}\n\n", options.data.string(),
                                 to_string(data), to_string(config.optimizer), trained_text(config),
                                 start_text(config) + decoder_start(config, data), config.loss,
                                 extras_text(config), config.isa);
  const std::string norm = norm_text(config);
  Table table;
  table.columns = {{"status", Align::left}, {"steps"}, {"loss"}, {"max softmax"}, {norm}, {"seconds"}};
  const auto number = [](const char* format, double value) {
    return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : std::string("-");
  };
  table.rows = {{std::string(to_string(result.status)), fmt::format("{}", result.steps),
                 number("{:.9g}", result.loss), number("{:.6f}", result.max_softmax),
                 number("{:.6g}", result.norm), number("{:.3g}", result.seconds)}};
  text += to_text(table) + "\n";
  if (!result.selected.tokens.empty()) {
    text += fmt::format("selected tokens   {}\n", short_list(result.selected.tokens));
    text += fmt::format("globally optimal  {}\n", optimality(result));
    text += differences_text(result, config);
  }
  text += unsaturated_text(result, config);
  if (!options.output.empty())
    text += fmt::format(
        "files             {} (config.json, metrics.jsonl, trace.npz, final.npz, checkpoint.npz, "
        "result.json)\n",
        options.output.string());
  return text;
}

void report(const RunResult& result, const RunConfig& config, const TrainOptions& options,
            const Dataset& data) {
  if (options.common.json)
    print_json(Json::parse(to_json(result, config, options.output)));
  else if (!options.common.quiet)
    print(summary(result, config, options, data));
}

int exit_code(const RunResult& result, const TrainOptions& options, std::int64_t steps, int signal) {
  if (result.status == RunStatus::diverged) {
    note(fmt::format(
        "the run diverged at step {}: loss or weights are no longer finite; {}", result.steps,
        options.given.word("schedule").starts_with("polyak")
            ? "the loss may not reach the lower bound of Polyak's step: try polyak:LOWER with a larger one"
            : "try a smaller --lr"));
    return negative;
  }
  if (result.status != RunStatus::interrupted) return done;
  const std::string where = fmt::format("interrupted at step {} of {}", result.steps, steps);
  if (options.output.empty())
    note(where + "; without -o FOLDER nothing is kept");
  else
    note(fmt::format("{}; the same command with --resume{} continues from there", where,
                     options.overwrite ? " instead of --overwrite" : ""));
  return signalled + signal;
}

// The start is checked before a folder is made, and a start from a file by the name of that file.
void check_start(const Attention& model, const TrainPlan& plan) {
  try {
    initial_parameters(model, plan.descent.init);
  } catch (const Error& error) {
    if (plan.sources.init.empty()) throw;
    throw error.in(plan.sources.init.string());
  }
}

int run_train(const CLI::App& app, const TrainOptions& options) {
  const TrainPlan plan = make_plan(app, options);
  const Dataset data = load_masked_dataset(options.data, plan.model.mask);
  const Attention model = make_attention(data, plan.model);
  check_record_memory(model.blocks(), plan.descent);
  check_start(model, plan);
  const RunConfig config = describe_run(model, plan.optimizer, plan.descent, plan.sources);

  const SignalGuard guard;  // from here on a signal is a request: files are left in order
  std::optional<RunFolder> folder;
  std::optional<Checkpoint> checkpoint;
  if (!options.output.empty()) {
    folder.emplace(options.output);
    if (options.resume) {
      if (const auto result = folder->finished(config)) {
        if (!options.common.quiet)
          note(fmt::format("the run in {} is already finished", options.output.string()));
        report(*result, config, options, data);
        return exit_code(*result, options, plan.descent.steps, 0);
      }
      checkpoint = folder->checkpoint(config);
    } else if (folder->holds_run() && !options.overwrite) {
      throw bad_input(fmt::format(
          "{} already holds a run: give --resume to continue it, --overwrite to replace it, or another folder",
          options.output.string()));
    }
  }
  // All that can be wrong is told before a file is touched: the start and the checkpoint are checked here.
  Descent descent = checkpoint ? Descent(model, plan.optimizer, plan.descent, *checkpoint)
                               : Descent(model, plan.optimizer, plan.descent);
  if (folder) folder->resume(config, checkpoint);
  if (checkpoint && !options.common.quiet)
    note(fmt::format("resuming at step {} of {}", checkpoint->step, plan.descent.steps));
  const Training training = run_descent(descent,
                                        {.label = "train",
                                         .steps = plan.descent.steps,
                                         .checkpoint_every = options.checkpoint_every,
                                         .quiet = options.common.quiet},
                                        folder ? &*folder : nullptr);
  if (folder) folder->finish(model, training.run, training.last, config);
  RunResult result = result_of(model, training.run);
  result.saturation = saturation_of(model, training.run);
  report(result, config, options, data);
  return exit_code(result, options, plan.descent.steps, SignalGuard::interrupted());
}

}  // namespace

Subcommand add_train(CLI::App& parent) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App& app = *parent.add_subcommand("train", "train attention on a dataset");
  add_train_options(app, *options);
  add_common_options(app, options->common);
  app.footer(
      "Examples:\n"
      "  attmirror train data.npz --p 3 --lr 0.1 --normalized --steps 20000 -o run/\n"
      "  attmirror train data.npz --p 3 --lr 0.1 --normalized --steps 50000 --resume -o run/\n"
      "  attmirror train data.npz --params KQ --rank 4 --init normal:0.1 --init-seed 7 --json");
  return {&app, &options->common, [options, &app] { return run_train(app, *options); }};
}

}  // namespace attmirror::cli

#include "cli/train_plan.hpp"

#include <attmirror/base/error.hpp>

#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

// The value of an option, if it was given.
template <class T>
std::optional<T> if_given(const CLI::App& app, const char* option, const T& value) {
  return app.count(option) > 0 ? std::optional(value) : std::nullopt;
}

ModelWords model_words(const CLI::App& app, const TrainOptions& options) {
  ModelWords words;
  words.params = options.params;
  words.rank = options.rank;
  words.key_weights = if_given(app, "--key-weights", options.key_weights);
  words.loss = options.loss;
  words.head = options.head;
  words.mask = options.mask;
  words.scaled = options.scaled;
  words.penalty = options.penalty;
  words.train = if_given(app, "--train", options.train);
  words.init = if_given(app, "--init", options.init);
  words.init_seed = if_given(app, "--init-seed", options.init_seed);
  return words;
}

}  // namespace

void check_run_options(const CLI::App& app, const RunOptions& options) {
  if (options.resume && options.overwrite)
    throw bad_input("both --resume and --overwrite are given: expected one of them");
  if (!(options.max_seconds >= 0) || std::isinf(options.max_seconds))
    throw bad_input(
        fmt::format("max-seconds is {}: expected a finite number, 0 for no limit", options.max_seconds));
  if (!(options.checkpoint_every >= 0))
    throw bad_input(
        fmt::format("checkpoint-every is {}: expected 0 or more seconds", options.checkpoint_every));
  if (!options.output.empty()) return;
  for (const char* name : {"--resume", "--overwrite", "--checkpoint-every"})
    if (app.count(name) > 0)
      throw bad_input(fmt::format("{} is given without a run folder: give -o FOLDER", name));
}

void add_train_options(CLI::App& app, TrainOptions& o) {
  add_path(app, "data", o.data, "FILE", "the dataset: .npz with X, Y, Z and v (see attmirror info)")
      ->required();
  add_path(app, "-o,--output", o.output, "FOLDER",
           "where the run is kept; without it the run is only printed");

  add_optimizer_options(app, o.optimizer);
  const char* group = "Descent";
  add_count(app, "--steps", o.steps, "stop after this many")->group(group);
  add_number(app, "--saturation", o.saturation,
             "stop once the mean largest softmax probability reaches this; 0: never")
      ->group(group);
  add_number(app, "--max-seconds", o.max_seconds,
             "stop after this time, earlier parts of a resumed run included; 0: never")
      ->group(group);

  group = "Model";
  add_text(app, "--params", o.params, "W|KQ|prompt", "logits X W z, X K Q^T z or X A^T p")->group(group);
  add_count(app, "--rank", o.rank, "columns of K and Q; 0: the dimension of the tokens")->group(group);
  add_path(app, "--key-weights", o.key_weights, "FILE",
           "A of the prompt, .npy (d, d); without it the identity")
      ->group(group);
  add_text(app, "--loss", o.loss, "logistic|exponential|linear", "loss of the margin")->group(group);
  add_text(
      app, "--head", o.head, "linear|relu|quadratic:LAMBDA",
      "prediction from the attended token u: v^T u; 1^T ReLU(V^T u) with the data's V; v^T u - LAMBDA |u|^2")
      ->group(group);
  add_text(app, "--mask", o.mask, "none|causal",
           "causal: the query at token k attends to the tokens up to k (the data need query_index)")
      ->group(group);
  add_flag(app, "--scaled", o.scaled, "divide the logits by sqrt(d), by sqrt(rank) for KQ")->group(group);
  add_number(app, "--penalty", o.penalty,
             "LAMBDA of the penalty LAMBDA |W|^2, LAMBDA (|K|^2 + |Q|^2) or LAMBDA |p|^2")
      ->group(group);
  add_text(app, "--train", o.train, "BLOCKS",
           "blocks to train, as in W or W,v or K,Q or p,v; by default all but v")
      ->group(group);
  add_text(app, "--init", o.init, "zero|uniform|normal:STD|file:PATH",
           "the start: file:W0.npy, file:BLOCKS.npz; by default zero, and uniform for KQ")
      ->group(group);
  add_seed(app, "--init-seed", o.init_seed, "seed of normal and uniform")->group(group);

  group = "Large data";
  add_text(
      app, "--data-path", o.data_path, "auto|block|stream",
      "how gradients go through the data, by blocks of sequences or one after the other; by size if auto")
      ->group(group);
  add_text(app, "--storage", o.storage, "float64|float32",
           "float32: a copy of the tokens in half the bytes; exact for tokens that are floats")
      ->group(group);

  group = "Run folder";
  add_text(app, "--record", o.record, "log|log:PER_DECADE|every:K|none|STEPS",
           "the steps to record, e.g. 0,10,100; and the last one of a run that ends by itself")
      ->group(group);
  add_text(app, "--keep", o.keep, "parameters|metrics", "what to keep of a record")->group(group);
  add_number(app, "--checkpoint-every", o.checkpoint_every,
             "seconds between checkpoints (longer where writing one takes more than a tenth of that)")
      ->group(group);
  add_flag(app, "--resume", o.resume,
           "go on with the run in the folder; same bits as one that was never stopped")
      ->group(group);
  add_flag(app, "--overwrite", o.overwrite, "replace the run in the folder")->group(group);
}

TrainPlan make_plan(const CLI::App& app, const TrainOptions& options) {
  check_run_options(app, {.output = options.output,
                          .resume = options.resume,
                          .overwrite = options.overwrite,
                          .max_seconds = options.max_seconds,
                          .checkpoint_every = options.checkpoint_every});
  TrainPlan plan;
  plan.sources.data = options.data;
  plan.optimizer = make_optimizer(app, options.optimizer);
  plan.model = plan_model(model_words(app, options));
  DescentOptions& descent = plan.descent;
  descent.steps = options.steps;
  descent.saturation = options.saturation;
  descent.seconds = options.max_seconds;
  descent.record = RecordSchedule::parse(options.record);
  descent.keep = parse_keep(options.keep);
  descent.threads = static_cast<int>(options.common.threads);
  descent.path = parse_data_path(options.data_path);
  descent.storage = parse_token_storage(options.storage);
  descent.validate();
  plan.model = load_files(std::move(plan.model));
  descent.init = plan.model.init;
  plan.sources.key_weights = plan.model.key_weights_path;
  plan.sources.init = plan.model.init_path;
  return plan;
}

void check_record_memory(const std::vector<BlockShape>& blocks, const DescentOptions& options) {
  constexpr double limit = 2e9;
  double bytes = sizeof(Record);
  if (options.keep == Keep::parameters)
    for (const BlockShape& shape : blocks)
      bytes += 8.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.cols);
  const std::int64_t count = options.record.count(options.steps) + 1;
  const double total = bytes * static_cast<double>(count);
  if (total <= limit) return;
  throw bad_input(
      fmt::format("record {} would keep {} records, {:.3g} GB in all: expected at most 2 GB; record fewer "
                  "steps{}",
                  options.record.to_string(), count, total / 1e9,
                  options.keep == Keep::parameters ? " or use --keep metrics" : ""));
}

}  // namespace attmirror::cli

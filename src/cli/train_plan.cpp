#include "cli/train_plan.hpp"

#include <attmirror/base/error.hpp>
#include <attmirror/data/npy.hpp>
#include <attmirror/data/npz.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <type_traits>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

void set_block(Parameters& parameters, Block block, const Array& array, const std::string& name) {
  visit_block(parameters, block, [&](auto& values) {
    if constexpr (std::is_same_v<decltype(values), Vector&>)
      values = to_vector(array, name);
    else
      values = to_matrix(array, name);
  });
}

// A .npy file is the attention's one block; an .npz file holds blocks by name, as final.npz of a run does.
Parameters load_initial_blocks(const std::filesystem::path& path, const Parameterization& parameterization) {
  Parameters given;
  if (path.extension() == ".npy") {
    if (std::holds_alternative<KQ>(parameterization))
      throw bad_input(
          fmt::format("init is file:{}: parameterization KQ needs an .npz file with K and Q", path.string()));
    const bool prompt = std::holds_alternative<Prompt>(parameterization);
    set_block(given, prompt ? Block::p : Block::W, load_npy(path), path.string());
    return given;
  }
  const NamedArrays arrays = load_npz(path);
  bool found = false;
  for (const Block block : all_blocks) {
    const auto array = arrays.find(std::string(to_string(block)));
    if (array == arrays.end()) continue;
    set_block(given, block, array->second, fmt::format("{}: {}", path.string(), array->first));
    found = true;
  }
  if (!found) throw bad_input(fmt::format("{} holds none of the blocks W, K, Q, p, v", path.string()));
  return given;
}

// A file that lacks what is to be trained (a dataset has a v, too) is a mistake; v may be left to the data.
void require_attention_blocks(const Parameters& given, const TrainPlan& plan) {
  std::vector<Block> needed = plan.attention.train;
  if (needed.empty())
    needed = std::holds_alternative<W>(plan.parameterization)    ? std::vector{Block::W}
             : std::holds_alternative<KQ>(plan.parameterization) ? std::vector{Block::K, Block::Q}
                                                                 : std::vector{Block::p};
  for (const Block block : needed)
    if (block != Block::v && visit_block(given, block, [](const auto& values) { return values.size() == 0; }))
      throw bad_input(fmt::format("init is file:{}: the file has no {}, which is to be trained",
                                  plan.sources.init.string(), to_string(block)));
}

Initialization make_init(const CLI::App& app, const TrainOptions& options, TrainPlan& plan) {
  Initialization init;
  init.seed = options.init_seed;
  const bool kq = std::holds_alternative<KQ>(plan.parameterization);
  const std::string word = options.init.empty() ? (kq ? "uniform" : "zero") : options.init;
  if (app.count("--init-seed") > 0 && (word == "zero" || word.starts_with("file:")))
    throw bad_input(
        fmt::format("init-seed is given, but init is {}: only uniform and normal are random", word));
  if (word == "zero") return init;
  if (word == "uniform") {
    init.kind = InitKind::uniform;
  } else if (word == "normal" || word.starts_with("normal:")) {
    init.kind = InitKind::normal;
    if (word.size() > 7) init.std = parse_number("std of init", word.substr(7));
    if (word == "normal:") throw bad_input("init is \"normal:\": expected a number after the colon");
  } else if (word.starts_with("file:")) {
    plan.sources.init = word.substr(5);
    init.given = load_initial_blocks(plan.sources.init, plan.parameterization);
    require_attention_blocks(init.given, plan);
  } else {
    throw bad_input(fmt::format(
        "init is \"{}\": expected zero, normal, normal:STD, uniform, file:W0.npy or file:BLOCKS.npz", word));
  }
  return init;
}

std::vector<Block> parse_blocks(const std::string& text) {
  std::vector<Block> blocks;
  if (text.empty()) return blocks;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    blocks.push_back(parse_block(rest.substr(0, comma)));
    if (comma == std::string_view::npos) return blocks;
    rest.remove_prefix(comma + 1);
  }
}

Parameterization make_parameterization(const TrainOptions& options, TrainPlan& plan) {
  if (options.params != "KQ" && options.rank != 0)
    throw bad_input(
        fmt::format("rank is {}, but params is {}: only KQ has a rank", options.rank, options.params));
  if (options.params != "prompt" && !options.key_weights.empty())
    throw bad_input(
        fmt::format("key-weights is given, but params is {}: only a prompt has them", options.params));
  if (options.params == "W") return W{};
  if (options.params == "KQ") return KQ{options.rank};
  if (options.params != "prompt")
    throw bad_input(fmt::format("params is \"{}\": expected W, KQ or prompt", options.params));
  Prompt prompt;
  if (!options.key_weights.empty()) {
    plan.sources.key_weights = options.key_weights;
    prompt.key_weights = to_matrix(load_npy(options.key_weights), options.key_weights.string());
  }
  return prompt;
}

void check_files(const CLI::App& app, const TrainOptions& options) {
  if (options.resume && options.overwrite)
    throw bad_input("both --resume and --overwrite are given: expected one of them");
  if (!options.output.empty()) return;
  for (const char* name : {"--resume", "--overwrite", "--checkpoint-every"})
    if (app.count(name) > 0)
      throw bad_input(fmt::format("{} is given without a run folder: give -o FOLDER", name));
}

}  // namespace

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
  check_files(app, options);
  TrainPlan plan;
  plan.sources.data = options.data;
  plan.optimizer = make_optimizer(app, options.optimizer);
  plan.loss = parse_loss(options.loss);
  plan.attention.train = parse_blocks(options.train);
  plan.attention.head = parse_head(options.head);
  plan.attention.scaled = options.scaled;
  plan.attention.penalty = options.penalty;
  if (options.mask != "none" && options.mask != "causal")
    throw bad_input(fmt::format(
        "mask is \"{}\": expected none or causal (a mask of your own is the array mask of the data)",
        options.mask));
  if (options.mask == "causal") plan.mask = Mask::causal;
  DescentOptions& descent = plan.descent;
  descent.steps = options.steps;
  descent.saturation = options.saturation;
  descent.seconds = options.max_seconds;
  descent.record = RecordSchedule::parse(options.record);
  descent.keep = parse_keep(options.keep);
  descent.threads = static_cast<int>(options.common.threads);
  descent.path = parse_data_path(options.data_path);
  descent.storage = parse_token_storage(options.storage);
  if (!(options.max_seconds >= 0) || std::isinf(options.max_seconds))
    throw bad_input(
        fmt::format("max-seconds is {}: expected a finite number, 0 for no limit", options.max_seconds));
  if (!(options.checkpoint_every >= 0))
    throw bad_input(
        fmt::format("checkpoint-every is {}: expected 0 or more seconds", options.checkpoint_every));
  descent.validate();
  plan.parameterization = make_parameterization(options, plan);
  descent.init = make_init(app, options, plan);
  descent.init.validate();
  return plan;
}

void check_record_memory(const Attention& model, const DescentOptions& options) {
  constexpr double limit = 2e9;
  double bytes = sizeof(Record);
  if (options.keep == Keep::parameters)
    for (const BlockShape& shape : model.blocks())
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

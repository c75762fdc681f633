#include "cli/next_token_options.hpp"

#include "base/words.hpp"
#include "cli/train_plan.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/descent/run_config.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

// Options that belong to one source of sentences.
constexpr std::array generator_options{"--vocab",      "--sentences",   "--lengths", "--order",
                                       "--optimal",    "--non-optimal", "--seed",    "--successor",
                                       "--repetition", "--unseen"};
constexpr std::array text_options{"--collocations", "--vocabulary", "--skip-unexplained"};
constexpr std::string_view default_method = "gd";

void refuse(const CLI::App& app, std::span<const char* const> names, std::string_view why) {
  for (const char* name : names)
    if (app.count(name) > 0) throw bad_input(fmt::format("{} is given, but {}", name, why));
}

std::pair<std::ptrdiff_t, std::ptrdiff_t> parse_lengths(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::int64_t low = parse_count("lengths", text.substr(0, colon));
  return {low, colon == std::string::npos ? low : parse_count("lengths", text.substr(colon + 1))};
}

template <class Value>
Value one_of(const char* name, const std::string& word,
             std::initializer_list<std::pair<std::string_view, Value>> choices) {
  std::vector<std::string_view> words;
  for (const auto& choice : choices) {
    if (word == choice.first) return choice.second;
    words.push_back(choice.first);
  }
  throw bad_input(fmt::format("{} is \"{}\": expected {}", name, word, expected_choice(word, words)));
}

// P4 normalises; who wants plain steps says so.
Optimizer plan_optimizer(const Given& given) {
  const OptimizerMethod& method = method_given(given, default_method);
  Optimizer start = *method.preset;
  const bool polyak = given.word("schedule").starts_with("polyak");
  std::visit(
      [&](auto& preset) {
        if constexpr (requires { preset.normalized; })
          if (!polyak) preset.normalized = true;
        preset.jacobian = Jacobian::safe;
      },
      start);
  if (given.has("jacobian"))
    throw bad_input(
        "--jacobian is given, but the gradients of next-token prediction are always the safe ones");
  return make_optimizer(given, method, start);
}

RealizableOptions plan_generator(const NextTokenOptions& options) {
  const auto [shortest, longest] = parse_lengths(options.lengths);
  RealizableOptions plan{.vocabulary = options.vocab,
                         .sentences = options.sentences,
                         .min_length = shortest,
                         .max_length = longest,
                         .order = parse_order_kind(options.order),
                         .optimal = options.optimal,
                         .non_optimal = options.non_optimal,
                         .successor = parse_successor_kind(options.successor),
                         .repetition = parse_repetition(options.repetition),
                         .seed = options.seed};
  plan.validate();
  return plan;
}

std::vector<Stage> plan_stages(const CLI::App& app, const NextTokenOptions& options) {
  const bool joint = one_of<bool>("stages", options.stages, {{"two", false}, {"joint", true}});
  const bool attention = options.readout == "attention";
  if (joint && attention)
    throw bad_input("stages is joint with readout attention, which has no W_ov: expected stages two");
  if (joint) {
    refuse(app, std::array{"--ov-steps", "--ov-lr"}, "stages is joint: there is no stage of W_ov alone");
    return {Stage::joint};
  }
  if (attention) {
    refuse(app, std::array{"--ov-steps", "--ov-lr", "--test", "--unseen"},
           "readout is attention: there is no W_ov, and no word is predicted but those of the sentence");
    return {Stage::attention};
  }
  return {Stage::collocation, Stage::attention};
}

}  // namespace

void add_next_token_options(CLI::App& app, NextTokenOptions& o) {
  add_path(
      app, "sentences", o.file, "FILE",
      "one sentence per line, whose last word is the one to predict; lines of two words are collocations");
  add_run_output(app, o.output);

  const char* group = "Generated sentences (without FILE)";
  add_count(app, "--vocab", o.vocab, "number of words")->group(group);
  add_count(app, "--sentences", o.sentences, "sentences, dealt to the queries in turn")->group(group);
  add_text(app, "--lengths", o.lengths, "MIN:MAX", "length of a sentence in words, including the query")
      ->group(group);
  add_text(app, "--order", o.order, "three-class|linear", "how a query ranks the words")->group(group);
  add_count(app, "--optimal", o.optimal,
            "three-class: number of optimal words of a query; 0: a quarter of all")
      ->group(group);
  add_count(app, "--non-optimal", o.non_optimal, "three-class: number of non-optimal words; 0: half of all")
      ->group(group);
  add_text(app, "--successor", o.successor, "permutation|map", "whether words share successors")
      ->group(group);
  add_text(app, "--repetition", o.repetition, "allowed|avoided", "whether words may repeat within a sentence")
      ->group(group);
  add_seed(app, "--seed", o.seed, "seed of the sentences")->group(group);
  add_count(app, "--unseen", o.unseen, "number of unseen sentences of each kind to test on; 0: none")
      ->group(group);

  group = "Sentences from FILE";
  add_text(app, "--collocations", o.collocations, "auto|lines|copy|bigrams",
           "each word's successor: two-word lines, the word itself, or what follows it most often")
      ->group(group);
  add_path(app, "--vocabulary", o.vocabulary, "FILE",
           "one word per line, in the order of an embedding's rows; other words are then unknown")
      ->group(group);
  add_flag(app, "--skip-unexplained", o.skip_unexplained,
           "keep the sentences that the model can explain, in their order, and count the others by reason")
      ->group(group);
  add_path(app, "--test", o.test, "FILE", "more sentences to test on, made of the same words")->group(group);

  group = "Model";
  add_text(app, "--embedding", o.embedding, "one-hot|orthonormal|gaussian|file:PATH",
           "the words' vectors; file:E.npy of shape (words, dimension)")
      ->group(group);
  add_count(app, "--dim", o.dim, "dimension of gaussian and orthonormal vectors; 0: as many as words")
      ->group(group);
  add_seed(app, "--embedding-seed", o.embedding_seed, "seed of gaussian and orthonormal vectors")
      ->group(group);
  add_text(app, "--stages", o.stages, "two|joint", "W_ov on collocations, then W_kq; or both at once")
      ->group(group);
  add_text(app, "--readout", o.readout, "softmax|attention",
           "softmax(W_ov X s), or the attention on words that the label follows (no W_ov)")
      ->group(group);
  add_flag(app, "--cyclic", o.cyclic,
           "also train on sentences that contradict each other; Graph-SVM then replaces W_kq*")
      ->group(group);
  add_text(app, "--targets", o.targets, "auto|on|off",
           "solve the max-margin problems that training converges to; auto: where they are not too large")
      ->group(group);
  add_text(app, "--init", o.init, "zero|uniform|normal:STD", "the initial weights")->group(group);
  add_seed(app, "--init-seed", o.init_seed, training_field("init_seed").help)->group(group);

  add_optimizer_options(app, o.optimizer);
  group = "Descent";
  app.get_option("--lr")->default_str("0.05/sqrt(dim)");
  app.get_option("--optimizer")->default_str(std::string(default_method));
  add_number(app, "--ov-lr", o.ov_lr, "step size of W_ov in two stages")
      ->default_str("0.2/sqrt(dim), or --lr where given")
      ->group(group);
  add_count(app, "--steps", o.steps, "steps of each stage")->group(group);
  add_count(app, "--ov-steps", o.ov_steps, "of W_ov in two stages")->default_str("as --steps")->group(group);
  add_number(app, "--max-seconds", o.max_seconds, "stop a stage after so many seconds; 0: never")
      ->group(group);

  group = "Run folder";
  add_text(app, "--record", o.record, "log|log:PER_DECADE|every:K|none|STEPS", "the steps to record")
      ->group(group);
  add_text(app, "--keep", o.keep, "auto|parameters|metrics",
           "what to keep of a record; auto: weights where they take at most 256 MB")
      ->group(group);
  add_checkpoint_interval(app, o.checkpoint_every, group);
  add_existing_run_flags(app, o.resume, o.overwrite, group);
}

NextTokenPlan make_next_token_plan(const CLI::App& app, const NextTokenOptions& options) {
  check_run_options(app, {.output = options.output,
                          .resume = options.resume,
                          .overwrite = options.overwrite,
                          .max_seconds = options.max_seconds,
                          .checkpoint_every = options.checkpoint_every});
  NextTokenPlan plan;
  const bool generated = options.file.empty();
  if (generated)
    refuse(app, text_options, "sentences are generated: expected a FILE of sentences");
  else
    refuse(app, generator_options, fmt::format("sentences come from {}", options.file.string()));
  plan.realizable = plan_generator(options);
  plan.text.collocations = parse_collocation_source(options.collocations);
  plan.text.vocabulary = options.vocabulary;
  plan.text.skip_unexplained = options.skip_unexplained;
  plan.embedding = EmbeddingOptions::parse(options.embedding);
  plan.embedding.dim = options.dim;
  plan.embedding.seed = options.embedding_seed;
  const bool random =
      plan.embedding.kind == EmbeddingKind::gaussian || plan.embedding.kind == EmbeddingKind::orthonormal;
  if (!random)
    refuse(app, std::array{"--dim", "--embedding-seed"},
           fmt::format("embedding is {}: only gaussian and orthonormal take it", options.embedding));
  if (options.unseen < 0) throw bad_input(fmt::format("unseen is {}: expected 0 or more", options.unseen));
  plan.readout = one_of<Readout>("readout", options.readout,
                                 {{"softmax", Readout::softmax}, {"attention", Readout::attention}});
  plan.stages = plan_stages(app, options);
  plan.targets = one_of<TargetPolicy>(
      "targets", options.targets,
      {{"auto", TargetPolicy::automatic}, {"on", TargetPolicy::on}, {"off", TargetPolicy::off}});
  plan.optimizer = plan_optimizer(options.optimizer);
  if (plan.targets == TargetPolicy::on && !geometry_norm(plan.optimizer))
    throw bad_input(fmt::format("targets is on, but theory names no norm whose margin {} maximizes",
                                method_name(plan.optimizer)));
  plan.lr_is_given = app.count("--lr") > 0;
  plan.ov_lr_is_given = app.count("--ov-lr") > 0;
  plan.ov_lr = options.ov_lr;
  if (plan.ov_lr_is_given && !(options.ov_lr > 0 && std::isfinite(options.ov_lr)))
    throw bad_input(fmt::format("ov-lr is {}: expected a finite number greater than 0", options.ov_lr));
  if (options.steps < 0) throw bad_input(fmt::format("steps is {}: expected 0 or more", options.steps));
  plan.steps = options.steps;
  plan.ov_steps = app.count("--ov-steps") > 0 ? options.ov_steps : options.steps;
  if (plan.ov_steps < 0) throw bad_input(fmt::format("ov-steps is {}: expected 0 or more", plan.ov_steps));
  DescentOptions& descent = plan.descent;
  descent.steps = options.steps;
  descent.max_seconds = options.max_seconds;
  descent.record = RecordSchedule::parse(options.record);
  plan.keep_is_given = options.keep != "auto";
  if (plan.keep_is_given && options.keep != "parameters" && options.keep != "metrics")
    throw bad_input(fmt::format("keep is \"{}\": expected {}", options.keep,
                                expected_choice(options.keep, {"auto", "parameters", "metrics"})));
  if (plan.keep_is_given) descent.keep = parse_keep(options.keep);
  descent.threads = static_cast<int>(options.common.threads);
  descent.init = parse_initialization(
      options.init, app.count("--init-seed") > 0 ? std::optional(options.init_seed) : std::nullopt);
  descent.validate();
  if (plan.stages.front() == Stage::collocation && plan.ov_steps == 0 && options.init == "zero")
    throw bad_input(
        "ov-steps is 0 and init is zero: W_ov would be frozen at 0, where no attention changes the "
        "prediction");
  return plan;
}

StageOptions stage_options(const NextTokenPlan& plan, const NextTokenModel& model) {
  StageOptions stage;
  const bool first = model.stage() == Stage::collocation;
  stage.descent = plan.descent;
  stage.descent.steps = first ? plan.ov_steps : plan.steps;
  stage.optimizer = plan.optimizer;
  const double root = std::sqrt(static_cast<double>(model.dim()));
  std::visit(
      [&](auto& options) {
        if (!plan.lr_is_given) options.lr = (first ? 0.2 : 0.05) / root;
        if (first && plan.ov_lr_is_given) options.lr = plan.ov_lr;
      },
      stage.optimizer);
  if (!plan.keep_is_given) {
    double bytes = 0;
    for (const BlockShape& shape : model.blocks())
      bytes += 8.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.cols);
    const auto records = static_cast<double>(stage.descent.record.count(stage.descent.steps) + 1);
    stage.descent.keep = bytes * records <= 256e6 ? Keep::parameters : Keep::metrics;
  }
  check_record_memory(model.blocks(), stage.descent);
  return stage;
}

}  // namespace attmirror::cli

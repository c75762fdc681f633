// P4's next-token prediction: sentences, the two stages or both at once, the max-margin targets, predictions.
#include "bridge.hpp"
#include "descent/block_arrays.hpp"
#include "descent/model_fields.hpp"
#include "next_token/explained_sentences.hpp"
#include <attmirror/next_token/embedding.hpp>
#include <attmirror/next_token/partial_order.hpp>
#include <attmirror/next_token/realizable.hpp>
#include <attmirror/next_token/sentence_text.hpp>
#include <attmirror/next_token/targets.hpp>
#include <attmirror/next_token/two_stage.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::python {

namespace {

// Sentences with everything that a training needs of them; shared by the runs on them.
struct SentencesHandle {
  Vocabulary vocabulary;
  Collocations collocations;
  Sentences sentences;
  std::string source;  // where successors come from
  std::vector<std::int64_t> lines;
  std::optional<RealizableData> generated{};
  std::vector<std::pair<std::string, std::int64_t>> skipped{};  // lines by reason
};

// Leaves out what the model cannot explain, and returns how many lines that were, by reason.
std::vector<std::pair<std::string, std::int64_t>> skip_sentences(SentenceText& text) {
  std::vector<std::pair<std::string, std::int64_t>> counts{{"too short", text.short_lines}};
  if (!text.collocations.is_hard()) {
    std::vector<Token> most_often;
    for (Token x = 0; x < text.vocabulary.size(); ++x) most_often.push_back(text.collocations.successor(x));
    text.collocations = Collocations::hard(most_often);
  }
  ExplainedSentences explained = explained_sentences(text.sentences, text.collocations);
  if (explained.sentences.empty())
    throw bad_input(fmt::format("no sentence is left that attention can explain: expected 1 or more of {}",
                                text.sentences.count()));
  for (const SkipReason reason : skip_reasons) {
    double lines = 0;
    for (const SkippedSentence& one : explained.skipped)
      if (one.reason == reason) lines += text.sentences.weight(one.sentence);
    counts.emplace_back(to_string(reason), static_cast<std::int64_t>(lines));
  }
  std::vector<std::int64_t> lines;
  for (const std::int64_t i : explained.kept) lines.push_back(text.lines[static_cast<std::size_t>(i)]);
  text.sentences = std::move(explained.sentences);
  text.lines = std::move(lines);
  return counts;
}

std::shared_ptr<SentencesHandle> read_text(const std::string& text, const std::string& name,
                                           const std::string& collocations, bool skip_unexplained) {
  SentenceText read = parse_sentences(
      text, name,
      {.collocations = parse_collocation_source(collocations), .skip_unexplained = skip_unexplained});
  auto handle = std::make_shared<SentencesHandle>();
  if (skip_unexplained) handle->skipped = skip_sentences(read);
  handle->source = std::string(to_string(read.source));
  handle->vocabulary = std::move(read.vocabulary);
  handle->collocations = std::move(read.collocations);
  handle->sentences = std::move(read.sentences);
  handle->lines = std::move(read.lines);
  return handle;
}

std::shared_ptr<SentencesHandle> generate_sentences(std::ptrdiff_t vocab, std::ptrdiff_t sentences,
                                                    std::ptrdiff_t min_length, std::ptrdiff_t max_length,
                                                    const std::string& order, std::ptrdiff_t optimal,
                                                    std::ptrdiff_t non_optimal, const std::string& successor,
                                                    const std::string& repetition, std::uint64_t seed) {
  auto handle = std::make_shared<SentencesHandle>();
  handle->generated = make_realizable({.vocabulary = vocab,
                                       .sentences = sentences,
                                       .min_length = min_length,
                                       .max_length = max_length,
                                       .order = parse_order_kind(order),
                                       .optimal = optimal,
                                       .non_optimal = non_optimal,
                                       .successor = parse_successor_kind(successor),
                                       .repetition = parse_repetition(repetition),
                                       .seed = seed});
  handle->source = "generated";
  handle->vocabulary = handle->generated->vocabulary;
  handle->collocations = handle->generated->collocations;
  handle->sentences = handle->generated->sentences;
  return handle;
}

std::string text_of_sentences(const SentencesHandle& self) {
  return to_text(self.vocabulary, self.collocations, self.sentences);
}

// One sentence that says why no attention can learn these, or nothing.
std::string contradiction_of(const SentencesHandle& self, const PartialOrders& orders) {
  if (!orders.unexplained().empty()) {
    const std::int64_t sentence = orders.unexplained().front().sentence;
    std::vector<std::string> words;
    for (const Token x : self.sentences.tokens(sentence)) words.push_back(self.vocabulary.word(x));
    return fmt::format("no word of \"{}\" has the successor \"{}\": no attention predicts it",
                       fmt::join(words, " "), self.vocabulary.word(self.sentences.label(sentence)));
  }
  if (const auto cycle = orders.find_cycle())
    return fmt::format("the sentences contradict each other: {}",
                       to_string(*cycle, self.vocabulary, self.lines));
  return {};
}

nb::dict target_to_python(const MarginSolution& target) {
  nb::dict result;
  result["status"] = std::string(to_string(target.status));
  result["kind"] = to_python(target.kind);
  result["W"] = to_numpy(target.W);
  result["lambda_"] = to_numpy(target.lambda);
  result["norm"] = target.norm;
  result["dual"] = target.dual;
  result["gap"] = target.gap;
  result["method"] = target.method;
  return result;
}

nb::dict run_to_python(const DescentRun& run) {
  nb::dict result, trace;
  std::vector<std::int64_t> steps;
  std::vector<double> loss, norm;
  for (const Record& record : run.records) {
    steps.push_back(record.step);
    loss.push_back(record.loss);
    norm.push_back(record.norm);
  }
  NamedArrays metrics;
  put_metrics(metrics, "", run.records);
  trace["step"] = to_numpy(std::move(steps));
  trace["loss"] = to_numpy(std::move(loss));
  trace["norm"] = to_numpy(std::move(norm));
  for (const auto& [name, array] : metrics) trace[name.c_str()] = to_numpy(array);
  result["status"] = std::string(to_string(run.status));
  result["steps"] = run.steps;
  result["loss"] = run.loss;
  result["norm"] = run.norm;
  result["seconds"] = run.seconds;
  result["trace"] = trace;
  return result;
}

Embedding read_embedding(const nb::object& embedding, std::ptrdiff_t vocabulary, std::ptrdiff_t dim,
                         std::uint64_t seed) {
  if (!PyUnicode_Check(embedding.ptr()))
    return given_embedding(matrix_of(nb::cast<Doubles>(embedding), "embedding"));
  EmbeddingOptions options = EmbeddingOptions::parse(nb::cast<std::string>(embedding));
  options.dim = dim;
  options.seed = seed;
  return make_embedding(vocabulary, options);
}

// optimizers: (for W_ov, for W_kq), each None for the paper's; joint training takes the second.
nb::dict train_next_token(const std::shared_ptr<SentencesHandle>& corpus, const nb::object& embedding_words,
                          std::ptrdiff_t dim, std::uint64_t embedding_seed, const std::string& stages,
                          const OptimizerHandle* first, const OptimizerHandle* second,
                          const nb::dict& settings, std::int64_t ov_steps, const std::string& targets,
                          int threads, nb::object on_pulse) {
  if (stages != "two" && stages != "joint") throw bad_value("stages", stages, "two or joint");
  if (targets != "auto" && targets != "off") throw bad_value("targets", targets, "auto or off");
  const Embedding embedding = read_embedding(embedding_words, corpus->vocabulary.size(), dim, embedding_seed);
  const PartialOrders orders(corpus->sentences, corpus->collocations);
  if (const std::string why = contradiction_of(*corpus, orders); !why.empty()) throw bad_input(why);
  const NextTokenData data{&embedding, &corpus->collocations, &corpus->sentences};
  DescentOptions descent;
  apply(descent_fields(), to_given(settings, infos(descent_fields()), "next_token()"), descent);
  descent.keep = Keep::metrics;
  descent.threads = threads;
  descent.validate();
  StopOnInterrupt interrupt;
  UserFunction pulse(std::move(on_pulse), interrupt.stop());
  const auto stage_of = [&](Stage stage, const OptimizerHandle* optimizer, std::int64_t steps) {
    StageOptions options = paper_stage(stage, embedding.dim(), steps);
    if (optimizer != nullptr) options.optimizer = optimizer->optimizer;
    const Initialization init = options.descent.init;
    options.descent = descent;
    options.descent.init = init;
    options.descent.steps = steps;
    options.callbacks.stop = interrupt.stop();
    if (pulse)
      options.callbacks.on_pulse = [&pulse, stage](const Descent& now) {
        pulse.call([&] { return nb::make_tuple(std::string(to_string(stage)), now.step(), now.loss()); });
      };
    return options;
  };
  std::optional<MarginSolution> W_ov, W_kq;
  Parameters last;
  DescentRun collocation, attention;
  double training_accuracy = nan_value;
  {
    const nb::gil_scoped_release release;
    const StageOptions second_stage =
        stage_of(stages == "two" ? Stage::attention : Stage::joint, second, descent.steps);
    const std::optional<Norm> norm = geometry_norm(second_stage.optimizer);
    if (targets == "auto" && norm && norm->is_entrywise()) {
      TargetOptions solving;
      solving.margin.threads = threads;
      solving.margin.stop = interrupt.stop();
      W_kq = attention_target(embedding, orders, *norm, solving);
      if (embedding.vocabulary_size() <= 200)
        W_ov = collocation_target(embedding, corpus->collocations, *norm, solving);
    }
    NextTokenMeasures measures;
    if (W_ov && W_ov->status == MarginStatus::certified) measures.W_ov = W_ov->W;
    if (W_kq && W_kq->status == MarginStatus::certified) measures.W_kq = W_kq->W;
    if (stages == "two") {
      TwoStageRun run =
          train_two_stage(data, stage_of(Stage::collocation, first, ov_steps), second_stage, measures);
      last = run.last();
      collocation = std::move(run.collocation);
      attention = std::move(run.attention);
    } else {
      attention = train_joint(data, second_stage, measures);
      last = attention.last();
    }
    if (last.has("W_ov") && last.has("W_kq"))
      training_accuracy = accuracy(corpus->sentences, embedding, last, threads);
  }
  pulse.finish();
  StopOnInterrupt::run_handlers();
  nb::dict result, runs, targets_found;
  if (stages == "two") runs["W_ov"] = run_to_python(collocation);
  runs[stages == "two" ? "W_kq" : "joint"] = run_to_python(attention);
  if (W_ov) targets_found["W_ov"] = target_to_python(*W_ov);
  if (W_kq) targets_found["W_kq"] = target_to_python(*W_kq);
  result["runs"] = runs;
  result["targets"] = targets_found;
  result["blocks"] = to_dict(last);
  result["accuracy"] = training_accuracy;
  result["embedding"] = to_numpy(Matrix(embedding.vectors.view().eigen()));
  return result;
}

Sentences more_sentences(const SentencesHandle& self, const std::string& text) {
  return parse_more_sentences(text, "sentences", self.vocabulary).sentences;
}

// (predicted words, their share that is right) of lines "a b q y".
nb::tuple predict_words(const SentencesHandle& self, const Doubles& embedding, const nb::dict& blocks,
                        const std::string& text) {
  const Embedding vectors = given_embedding(matrix_of(embedding, "embedding"));
  const Parameters parameters = to_parameters(blocks);
  const Sentences sentences = more_sentences(self, text);
  nb::list words;
  for (const Token token : predict(sentences, vectors, parameters)) words.append(self.vocabulary.word(token));
  return nb::make_tuple(words, accuracy(sentences, vectors, parameters));
}

nb::object unseen_accuracy(const SentencesHandle& self, const Doubles& embedding, const nb::dict& blocks,
                           const std::string& kind, std::ptrdiff_t count) {
  if (!self.generated)
    throw bad_input("only generated sentences have unseen ones of their kind: give a text instead");
  const Sentences sentences =
      unseen_sentences(*self.generated, parse_unseen_kind(kind), count, self.generated->options.seed);
  return nb::cast(
      accuracy(sentences, given_embedding(matrix_of(embedding, "embedding")), to_parameters(blocks)));
}

}  // namespace

void bind_next_token(nb::module_& module) {
  nb::class_<SentencesHandle>(module, "Sentences")
      .def_prop_ro("words", [](const SentencesHandle& self) { return self.vocabulary.words(); })
      .def_prop_ro("count", [](const SentencesHandle& self) { return self.sentences.count(); })
      .def_prop_ro("source", [](const SentencesHandle& self) { return self.source; })
      .def_prop_ro("skipped",
                   [](const SentencesHandle& self) {
                     nb::dict counts;
                     for (const auto& [reason, lines] : self.skipped) counts[reason.c_str()] = lines;
                     return counts;
                   })
      .def("text", &text_of_sentences)
      .def("contradiction",
           [](const SentencesHandle& self) {
             return contradiction_of(self, PartialOrders(self.sentences, self.collocations));
           })
      .def("predict", &predict_words)
      .def("unseen_accuracy", &unseen_accuracy);
  module.def("parse_sentences", &read_text);
  module.def("generate_sentences", &generate_sentences, nb::arg("vocab"), nb::arg("sentences"),
             nb::arg("min_length"), nb::arg("max_length"), nb::arg("order"), nb::arg("optimal"),
             nb::arg("non_optimal"), nb::arg("successor"), nb::arg("repetition"), nb::arg("seed"));
  module.def("next_token", &train_next_token, nb::arg("corpus"), nb::arg("embedding"), nb::arg("dim"),
             nb::arg("embedding_seed"), nb::arg("stages"), nb::arg("first").none(), nb::arg("second").none(),
             nb::arg("settings"), nb::arg("ov_steps"), nb::arg("targets"), nb::arg("threads"),
             nb::arg("on_pulse").none());
}

}  // namespace attmirror::python

#include "cli/next_token_data.hpp"

#include "next_token/explained_sentences.hpp"
#include <attmirror/base/error.hpp>

#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::cli {

namespace {

std::string collocation_text(CollocationSource source) {
  switch (source) {
    case CollocationSource::copy:
      return "each word is its own successor";
    case CollocationSource::bigrams:
      return "a word's successor is what follows it most often";
    case CollocationSource::lines:
    case CollocationSource::automatic:
      break;
  }
  return "successors from the two-word lines";
}

Corpus generate(const NextTokenPlan& plan, const NextTokenOptions& options) {
  RealizableData data = make_realizable(plan.realizable);
  Corpus corpus;
  corpus.source =
      fmt::format("generated, {} orders, seed {}", to_string(data.options.order), data.options.seed);
  corpus.collocation_source = fmt::format("successors from a random {}", to_string(data.options.successor));
  for (const UnseenKind kind : {UnseenKind::same_order, UnseenKind::non_comparable, UnseenKind::longer}) {
    if (options.unseen == 0) break;
    if (kind == UnseenKind::non_comparable && data.options.order == OrderKind::linear) continue;
    try {
      corpus.unseen.push_back(
          {std::string(to_string(kind)), unseen_sentences(data, kind, options.unseen, data.options.seed)});
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::environment) throw;
      corpus.missing_unseen.emplace_back(error.what());  // small vocabularies have been seen whole
    }
  }
  corpus.vocabulary = std::move(data.vocabulary);
  corpus.collocations = std::move(data.collocations);
  corpus.sentences = std::move(data.sentences);
  return corpus;
}

// One successor for each word.
Collocations hardened(const Collocations& soft) {
  std::vector<Token> successors;
  for (Token x = 0; x < soft.vocabulary_size(); ++x) successors.push_back(soft.successor(x));
  return Collocations::hard(successors);
}

const char* reason_text(SkipReason reason) {
  switch (reason) {
    case SkipReason::no_successor:
      return "with a word that no two-word line gives a successor (--collocations bigrams takes successors from the text)";
    case SkipReason::unexplained_label:
      return "whose last word is the successor of no other";
    case SkipReason::contradiction:
      return "that contradict sentences kept before them";
  }
  return "";
}

// Leaves out what the model cannot explain, by the rule of explained_sentences().
SkippedLines skip_unexplained(SentenceText& text, bool cyclic) {
  SkippedLines skipped;
  if (!cyclic)
    for (Token x = 0; x < text.vocabulary.size(); ++x)
      skipped.ambiguous += text.collocations.successors(x).size() > 1 ? 1 : 0;
  if (skipped.ambiguous > 0) text.collocations = hardened(text.collocations);
  ExplainedSentences explained = explained_sentences(text.sentences, text.collocations,
                                                     cyclic ? Contradictions::keep : Contradictions::skip);
  const auto times = [&](std::int64_t i) { return static_cast<std::int64_t>(text.sentences.weight(i)); };
  skipped.sentences = static_cast<std::int64_t>(text.sentences.total_weight());
  skipped.kept = static_cast<std::int64_t>(explained.sentences.total_weight());
  for (const SkipReason reason : skip_reasons) {
    SkippedLines::Reason entry{std::string(to_string(reason)), reason_text(reason)};
    for (const SkippedSentence& one : explained.skipped) {
      if (one.reason != reason) continue;
      if (entry.lines == 0) entry.first = text.lines[static_cast<std::size_t>(one.sentence)];
      entry.lines += times(one.sentence);
    }
    if (entry.lines > 0) skipped.reasons.push_back(std::move(entry));
  }
  std::vector<std::int64_t> lines;
  for (const std::int64_t i : explained.kept) lines.push_back(text.lines[static_cast<std::size_t>(i)]);
  text.sentences = std::move(explained.sentences);
  text.lines = std::move(lines);
  return skipped;
}

Corpus load(const NextTokenPlan& plan, const NextTokenOptions& options) {
  SentenceText text = load_sentences(options.file, plan.text);
  Corpus corpus;
  if (options.skip_unexplained) {
    corpus.skipped = skip_unexplained(text, options.cyclic);
    if (text.short_lines > 0)
      corpus.skipped->reasons.insert(corpus.skipped->reasons.begin(),
                                     {"too short", "of fewer than two words", text.short_lines, 0});
  }
  corpus.source = options.file.string();
  corpus.collocation_source = collocation_text(text.source);
  corpus.vocabulary = std::move(text.vocabulary);
  corpus.collocations = std::move(text.collocations);
  corpus.sentences = std::move(text.sentences);
  corpus.lines = std::move(text.lines);
  return corpus;
}

std::string sentence_name(const Corpus& corpus, std::int64_t sentence) {
  return corpus.lines.empty() ? fmt::format("sentence {}", sentence + 1)
                              : fmt::format("line {}", corpus.lines[static_cast<std::size_t>(sentence)]);
}

// "214 of 320 sentences are like that; --skip-unexplained leaves them out": weighted, as lines count.
std::string unexplained_count(const Corpus& corpus, const PartialOrders& orders) {
  double count = 0;
  for (const UnexplainedLabel& one : orders.unexplained()) count += corpus.sentences.weight(one.sentence);
  const double all = corpus.sentences.total_weight();
  return fmt::format("{:.0f} of {:.0f} sentences {} like that", count, all, count == 1 ? "is" : "are");
}

// The first word with several successors.
std::optional<Contradiction> find_soft_collocation(const Corpus& corpus) {
  for (Token x = 0; x < corpus.vocabulary.size(); ++x) {
    const auto successors = corpus.collocations.successors(x);
    if (successors.size() < 2) continue;
    const std::string &word = corpus.vocabulary.word(x), &one = corpus.vocabulary.word(successors[0].token),
                      &other = corpus.vocabulary.word(successors[1].token);
    return Contradiction{
        fmt::format(
            "\"{}\" has {} successors, \"{}\" and \"{}\"{}: expected one; --skip-unexplained takes the most "
            "frequent, --cyclic trains on all",
            word, successors.size(), one, other, successors.size() > 2 ? " among them" : ""),
        Json{{"kind", "several successors"}, {"word", word}, {"successors", {one, other}}}};
  }
  return std::nullopt;
}

Json cycle_json(const PreferenceCycle& cycle, const Corpus& corpus) {
  Json words = Json::array(), where = Json::array();
  for (const Preference& step : cycle.steps) {
    words.push_back(corpus.vocabulary.word(step.better));
    where.push_back(corpus.lines.empty() ? step.sentence + 1
                                         : corpus.lines[static_cast<std::size_t>(step.sentence)]);
  }
  return {{"kind", "cycle"},
          {"query", corpus.vocabulary.word(cycle.query)},
          {"cycle", std::move(words)},
          {corpus.lines.empty() ? "sentences" : "lines", std::move(where)}};
}

}  // namespace

std::string SkippedLines::text() const {
  std::string result = fmt::format("kept        {} of {} sentences\n", kept, sentences);
  const char* head = "skipped";
  for (const Reason& reason : reasons) {
    result += fmt::format("{:<11} {} {}{}\n", head, reason.lines, reason.text,
                          reason.first > 0 ? fmt::format(" (first in line {})", reason.first) : "");
    head = "";
  }
  if (ambiguous > 0)
    result += fmt::format("successors  {} {} several: the most frequent was taken\n", ambiguous,
                          ambiguous == 1 ? "word has" : "words have");
  return result;
}

Json SkippedLines::json() const {
  Json by_reason = Json::object(), first = Json::object();
  for (const Reason& reason : reasons) {
    by_reason[reason.name] = reason.lines;
    if (reason.first > 0) first[reason.name] = reason.first;
  }
  return {{"sentences", sentences},
          {"kept", kept},
          {"skipped", by_reason},
          {"first_lines", first},
          {"ambiguous_words", ambiguous}};
}

Contradiction nothing_left(const Corpus& corpus) {
  std::string why;
  for (const SkippedLines::Reason& reason : corpus.skipped->reasons)
    why += fmt::format("{}{} {}", why.empty() ? "" : ", ", reason.lines, reason.text);
  return {fmt::format("{}: none of {} sentences is left: {}", corpus.source, corpus.skipped->sentences, why),
          Json{{"kind", "nothing left"}, {"skipped", corpus.skipped->json()}}};
}

Corpus make_corpus(const NextTokenPlan& plan, const NextTokenOptions& options) {
  Corpus corpus = options.file.empty() ? generate(plan, options) : load(plan, options);
  if (!options.test.empty())
    corpus.unseen.push_back(
        {options.test.string(), load_more_sentences(options.test, corpus.vocabulary).sentences});
  return corpus;
}

std::optional<Contradiction> find_contradiction(const Corpus& corpus, const PartialOrders& orders) {
  if (!orders.unexplained().empty()) {
    const std::int64_t sentence = orders.unexplained().front().sentence;
    std::vector<std::string> words;
    for (const Token x : corpus.sentences.tokens(sentence)) words.push_back(corpus.vocabulary.word(x));
    const std::string label = corpus.vocabulary.word(corpus.sentences.label(sentence));
    return Contradiction{
        fmt::format(
            "{}: no word of \"{}\" has the successor \"{}\" ({}), so that no attention predicts it; {}; "
            "--skip-unexplained leaves out what the model cannot explain, --collocations says where successors "
            "come from",
            sentence_name(corpus, sentence), fmt::join(words, " "), label, corpus.collocation_source,
            unexplained_count(corpus, orders)),
        Json{{"kind", "unexplained label"},
             {"sentence", fmt::format("{}", fmt::join(words, " "))},
             {"label", label},
             {"where", sentence_name(corpus, sentence)},
             {"unexplained", orders.unexplained().size()}}};
  }
  if (const auto cycle = orders.find_cycle())
    return Contradiction{
        fmt::format("the sentences contradict each other: {}; --skip-unexplained leaves out those that "
                    "contradict earlier ones, --cyclic trains on all",
                    to_string(*cycle, corpus.vocabulary, corpus.lines)),
        cycle_json(*cycle, corpus)};
  return find_soft_collocation(corpus);
}

Targets solve_targets(const NextTokenPlan& plan, const NextTokenOptions& options, const Corpus& corpus,
                      const Embedding& embedding, const PartialOrders& orders) {
  Targets targets;
  if (plan.targets == TargetPolicy::off) return targets;
  const std::optional<Norm> geometry = geometry_norm(plan.optimizer);
  if (!geometry) {
    targets.left_out.push_back(
        fmt::format("theory names no norm whose margin {} maximizes", method_name(plan.optimizer)));
    return targets;
  }
  const Norm& norm = *geometry;
  TargetOptions solving;
  solving.margin.threads = static_cast<int>(options.common.threads);
  // Problems that decouple take any size. Others are dense: their time grows like the cube of the constraints
  // that hold.
  const bool decouples = embedding.kind == EmbeddingKind::one_hot
                             ? norm.is_entrywise()
                             : embedding.kind == EmbeddingKind::orthonormal && norm == Norm::frobenius();
  constexpr std::ptrdiff_t most_constraints = 20'000;
  const auto solves = [&](const char* name, std::ptrdiff_t constraints) {
    if (plan.targets == TargetPolicy::on || decouples || constraints <= most_constraints) return true;
    targets.left_out.push_back(
        fmt::format("{} has {} constraints that do not decouple: --targets on solves it", name, constraints));
    return false;
  };
  const bool trains_ov = plan.readout == Readout::softmax;
  if (trains_ov && solves("W_ov*", corpus.collocations.count() * (corpus.vocabulary.size() - 1)))
    targets.W_ov = collocation_target(embedding, corpus.collocations, norm, solving);
  if (!solves("W_kq*", orders.total_preferences())) return targets;
  if (!options.cyclic) {
    targets.W_kq = attention_target(embedding, orders, norm, solving);
    return targets;
  }
  const PriorityGraph graph(orders);
  targets.W_kq = graph_direction(embedding, orders, graph, norm, solving);
  if (plan.readout == Readout::attention)
    targets.finite = graph_finite_part(embedding, corpus.sentences, corpus.collocations, graph);
  return targets;
}

}  // namespace attmirror::cli

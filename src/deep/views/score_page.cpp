// The token-selection score as tables and a page.
#include "deep/views/page_parts.hpp"
#include "deep/views/view_pages.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror::deep {

namespace {

std::string optional_text(const std::optional<double>& number) {
  return number ? fmt::format("{:.3f}", *number) : "–";
}

// The network with the highest number for sentence i; "tie" where several have it, "–" where one has none.
std::string winner_of(std::span<const ModelScore> scores, std::size_t i,
                      std::optional<double> SentenceScore::*number) {
  const std::vector<std::size_t> highest = highest_networks(scores, i, number);
  if (highest.empty()) return "–";
  return highest.size() > 1 ? "tie" : scores[highest.front()].model;
}

Table sentences_table(std::span<const ModelScore> scores, std::span<const PivotalSentence> sentences) {
  Table table;
  table.title = "Sentence by sentence";
  table.columns = {{"sentence", Align::left}, {"label", Align::left}, {"pivotal word", Align::left}};
  for (const ModelScore& score : scores) {
    table.columns.push_back({score.model + ": P1's score"});
    table.columns.push_back({score.model + ": score over words"});
    table.columns.push_back({score.model + ": rank"});
    table.columns.push_back({score.model + ": answer", Align::left});
  }
  if (scores.size() > 1) {
    table.columns.push_back({"highest P1's score", Align::left});
    table.columns.push_back({"highest score over words", Align::left});
  }
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    auto& row = table.rows.emplace_back();
    row = {sentences[i].sentence, std::string(label_name(sentences[i].label)), sentences[i].pivotal};
    for (const ModelScore& score : scores) {
      const SentenceScore& one = score.sentences[i];
      row.push_back(optional_text(one.published));
      row.push_back(optional_text(one.sum));
      row.push_back(one.rank ? fmt::format("{}", *one.rank) : "–");
      row.push_back(fmt::format("{} {:.3f}", one.correct ? "right" : "wrong", one.probability));
    }
    if (scores.size() > 1)
      for (const auto number : {&SentenceScore::published, &SentenceScore::sum})
        row.push_back(winner_of(scores, i, number));
  }
  return table;
}

// Sentences sorted by their score: a curve above another is a network that selects better, sentence by sentence.
Figure score_figure(std::span<const ModelScore> scores) {
  Figure figure;
  figure.id = "scores";
  figure.title = "How much attention the pivotal word gets, sentence by sentence";
  figure.x = {.label = "sentence, sorted by score", .whole = true};
  figure.y.label = "P1's score of the pivotal word (0 to 1)";
  figure.y.range = {0, 1};
  for (const ModelScore& score : scores) {
    Series series;
    series.name = score.model;
    series.mark = Series::Mark::both;
    for (const SentenceScore& one : score.sentences)
      if (one.published) series.y.push_back(*one.published);
    std::ranges::sort(series.y, std::greater<>());
    for (std::size_t i = 0; i < series.y.size(); ++i) series.x.push_back(static_cast<double>(i + 1));
    figure.description +=
        fmt::format("{}{}: mean {} over {} sentences", figure.description.empty() ? "" : "; ", score.model,
                    mean_text(score.published), score.published.count);
    figure.series.push_back(std::move(series));
  }
  figure.caption = fmt::format(
      "{}. A score of 1 means that the pivotal word gets the most attention of all tokens, 0 the least.",
      figure.description);
  figure.description = "P1's score of each sentence that it keeps, sorted. " + figure.description + ".";
  return figure;
}

}  // namespace

namespace {

// "mirror gives the pivotal word the higher mean score, 0.62 ± 0.03; the lowest is that of adam, 0.51 ± 0.04."
std::string score_conclusion(std::span<const ModelScore> scores) {
  const ModelScore *best = nullptr, *worst = nullptr;
  for (const ModelScore& score : scores) {
    if (score.published.count == 0) continue;
    if (!best || score.published.mean > best->published.mean) best = &score;
    if (!worst || score.published.mean < worst->published.mean) worst = &score;
  }
  if (!best) return "No sentence has a pivotal word of a single token, so P1's score cannot be computed.";
  if (best == worst)
    return fmt::format(
        "{} gives the pivotal word a mean score of {} over {} sentences, where 1 means the most attention of "
        "all tokens.",
        best->model, mean_text(best->published), best->published.count);
  return fmt::format(
      "{} attends most to the pivotal word, with a mean score of {} (1 is the most attention of all tokens); "
      "the lowest score is that of {}, {}.",
      best->model, mean_text(best->published), worst->model, mean_text(worst->published));
}

}  // namespace

Table score_table(std::span<const ModelScore> scores) {
  Table table;
  table.title = "Attention to the pivotal word";
  table.columns = {{"network", Align::left}, {"accuracy"}, {"P1's score"},    {"kept"},  {"words, sum"},
                   {"words, largest"},       {"kept"},     {"word is first"}, {"share"}, {"tokens attended"}};
  for (const ModelScore& score : scores) {
    const auto count = static_cast<std::int64_t>(score.sentences.size());
    const auto of = [](std::int64_t part, std::int64_t all) { return fmt::format("{} of {}", part, all); };
    table.rows.push_back(
        {score.model, of(score.correct, count), mean_text(score.published), of(score.published.count, count),
         mean_text(score.sum), mean_text(score.largest), of(score.sum.count, count),
         of(score.first, score.share.count), mean_text(score.share),
         score.tokens_attended.count > 0 ? fmt::format("{:.2f}", score.tokens_attended.mean) : "–"});
  }
  // P1's tables print 40 of its 50 sentences.
  for (const auto& [name, value] :
       {std::pair{"P1: ℓ1.1", published_score_md}, std::pair{"P1: GD", published_score_gd}})
    table.rows.push_back({name, "–", fmt::format("{:.4f}", value), "40 of 50", "–", "–", "–", "–", "–", "–"});
  return table;
}

Table pairs_table(std::span<const ScorePair> pairs, std::span<const std::string> networks,
                  std::string_view cases, std::string_view words_way) {
  Table table;
  table.title = fmt::format("Who wins, in numbers of {}", cases);
  table.columns = {{"networks", Align::left},         {"by P1's score"}, {"ties"}, {"p"},
                   {fmt::format("by {}", words_way)}, {"ties"},          {"p"}};
  for (const ScorePair& pair : pairs) {
    auto& row = table.rows.emplace_back();
    row.push_back(fmt::format("{} : {}", networks[pair.first], networks[pair.second]));
    for (const SignTest& test : {pair.published, pair.words}) {
      row.push_back(fmt::format("{} : {}", test.first, test.second));
      row.push_back(fmt::format("{}", test.ties));
      row.push_back(fmt::format("{:.2g}", test.p));
    }
  }
  return table;
}

Table dropped_table(const ModelScore& score, std::span<const PivotalSentence> sentences) {
  Table table;
  table.title = "Sentences that P1's score drops";
  table.columns = {{"sentence", Align::left}, {"why", Align::left}, {"in the score over words", Align::left}};
  for (std::size_t i = 0; i < sentences.size(); ++i)
    if (const SentenceScore& one = score.sentences[i]; !one.dropped.empty())
      table.rows.push_back({sentences[i].sentence, one.dropped, one.sum ? "kept" : "no score either"});
  return table;
}

Page score_page(std::span<const ModelScore> scores, std::span<const PivotalSentence> sentences,
                const AttentionView& view) {
  if (scores.empty()) throw bad_input("there are no scores to show");
  Page page;
  page.title = "Token selection";
  page.subtitle = fmt::format("{} network{}, {} sentences", scores.size(), scores.size() == 1 ? "" : "s",
                              sentences.size());
  page.conclusion = score_conclusion(scores);
  page.footer = version_line();
  Section section{.id = "score", .title = "Does attention select the word that decides?", .blocks = {}};
  section.blocks.push_back(Paragraph{
      "All numbers are about the attention of `[CLS]` in the last block, averaged over heads. P1's score scales it "
      "to 0 … 1 over all tokens, including `[CLS]` and `[SEP]`, and takes the value of the pivotal word; sentences "
      "in which that word is not a single token are dropped. The score over words gives a word the attention of "
      "all its pieces (their sum, or the largest) and leaves out special tokens. ± is a standard error over "
      "sentences, share is the part of the attention to words that the pivotal word gets, and tokens attended "
      "is 1 / Σ s², the number of tokens over which attention is spread."});
  section.blocks.push_back(TableBlock{.id = "scores", .table = score_table(scores)});
  section.blocks.push_back(score_figure(scores));
  if (scores.size() > 1) {
    std::vector<std::string> networks;
    for (const ModelScore& score : scores) networks.push_back(score.model);
    section.blocks.push_back(Paragraph{
        "Sentences differ more than networks do, so the networks are also compared sentence by sentence: the one that "
        "gives the pivotal word the higher score wins. p is that of the two-sided sign test, the probability of so "
        "uneven a count if both were equally good; ties are left out."});
    section.blocks.push_back(TableBlock{
        .id = "pairs", .table = pairs_table(score_pairs(scores), networks, "sentences", "words, sum")});
  }
  const Table dropped = dropped_table(scores.front(), sentences);
  if (!dropped.rows.empty()) section.blocks.push_back(TableBlock{.id = "dropped", .table = dropped});
  section.blocks.push_back(Folded{
      "Sentence by sentence", {TableBlock{.id = "sentences", .table = sentences_table(scores, sentences)}}});
  page.sections.push_back(std::move(section));
  page.sections.push_back(attention_section(view));
  return page;
}

}  // namespace attmirror::deep

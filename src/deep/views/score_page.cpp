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

std::string score_text(const ScoreMean& mean) {
  if (mean.count == 0) return "–";
  if (mean.count == 1) return fmt::format("{:.4f}", mean.mean);
  return fmt::format("{:.4f} ± {:.4f}", mean.mean, mean.standard_error);
}

std::string optional_text(const std::optional<double>& number) {
  return number ? fmt::format("{:.3f}", *number) : "–";
}

Table sentences_table(std::span<const ModelScore> scores, std::span<const PivotalSentence> sentences) {
  Table table;
  table.title = "Sentence by sentence";
  table.columns = {{"sentence", Align::left}, {"label", Align::left}, {"pivotal word", Align::left}};
  for (const ModelScore& score : scores) {
    table.columns.push_back({score.model + ": P1's"});
    table.columns.push_back({score.model + ": words"});
    table.columns.push_back({score.model + ": rank"});
    table.columns.push_back({score.model + ": answer", Align::left});
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
  }
  return table;
}

// Sentences sorted by their score: a curve above another is a network that selects better, sentence by sentence.
Figure score_figure(std::span<const ModelScore> scores) {
  Figure figure;
  figure.id = "scores";
  figure.title = "Scores of the sentences, sorted";
  figure.x.label = "sentence, from the highest score";
  figure.y.label = "P1's score of the pivotal word";
  figure.y.range = {0, 1};
  figure.caption = "1: the pivotal word has the most attention of all tokens; 0: the least.";
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
                    score_text(score.published), score.published.count);
    figure.series.push_back(std::move(series));
  }
  figure.description = "P1's score of each sentence that it keeps, sorted. " + figure.description + ".";
  return figure;
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
        {score.model, of(score.correct, count), score_text(score.published), of(score.published.count, count),
         score_text(score.sum), score_text(score.largest), of(score.sum.count, count),
         of(score.first, score.share.count), score_text(score.share),
         score.tokens_attended.count > 0 ? fmt::format("{:.2f}", score.tokens_attended.mean) : "–"});
  }
  // P1's tables print 40 of its 50 sentences.
  for (const auto& [name, value] :
       {std::pair{"P1: ℓ1.1", published_score_md}, std::pair{"P1: GD", published_score_gd}})
    table.rows.push_back({name, "–", fmt::format("{:.4f}", value), "40 of 50", "–", "–", "–", "–", "–", "–"});
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
  page.footer = version_line();
  Section section{.id = "score", .title = "Does attention select the word that decides?", .blocks = {}};
  section.blocks.push_back(
      Paragraph{"The attention of `[CLS]` in the last block, as the mean over heads. P1's score stretches it "
                "to 0 … 1 over all tokens, `[CLS]` and `[SEP]` among them, and takes the number of the "
                "pivotal word; sentences in which the word is not one token are dropped. The score over "
                "words gives a word the attention of its pieces together (their sum, or the largest) and "
                "leaves special tokens out. ± is a standard error over sentences; share is what the pivotal "
                "word gets of the attention to words; tokens attended is 1 / Σ s², the number of tokens that "
                "attention is spread over."});
  section.blocks.push_back(TableBlock{.id = "scores", .table = score_table(scores)});
  section.blocks.push_back(score_figure(scores));
  const Table dropped = dropped_table(scores.front(), sentences);
  if (!dropped.rows.empty()) section.blocks.push_back(TableBlock{.id = "dropped", .table = dropped});
  section.blocks.push_back(Folded{
      "Sentence by sentence", {TableBlock{.id = "sentences", .table = sentences_table(scores, sentences)}}});
  page.sections.push_back(std::move(section));
  page.sections.push_back(attention_section(view));
  return page;
}

}  // namespace attmirror::deep

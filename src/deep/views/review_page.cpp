// The token-selection score on reviews as tables and a page.
#include "deep/views/page_parts.hpp"
#include "deep/views/view_pages.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::deep {

namespace {

std::vector<std::string> network_names(const ReviewStudy& study) {
  std::vector<std::string> names;
  for (const ModelReviews& model : study.models) names.push_back(model.model);
  return names;
}

std::size_t review_count(const ReviewStudy& study) { return study.models.front().reviews.size(); }

std::string listed_words(const ReviewStudy& study, std::int32_t label) {
  std::vector<std::string_view> words;
  for (const SentimentWord& word : study.words)
    if (word.label == label) words.push_back(word.word);
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, ", "));
}

Table words_table(const ReviewStudy& study) {
  Table table;
  table.title = "Listed words";
  table.columns = {{"word", Align::left}, {"label", Align::left}, {"reviews"}, {"share with this label"}};
  for (const SentimentWord& word : study.words)
    table.rows.push_back({word.word, std::string(label_name(word.label)),
                          word.count ? fmt::format("{}", *word.count) : "–",
                          word.share ? fmt::format("{:.3f}", *word.share) : "–"});
  return table;
}

// Reviews sorted by their score, as for sentences.
Figure review_figure(const ReviewStudy& study) {
  Figure figure;
  figure.id = "review-scores";
  figure.title = "How much attention sentiment words get, review by review";
  figure.x = {.label = "review, sorted by score", .whole = true};
  figure.y.label = "score of sentiment words (0 to 1)";
  figure.y.range = {0, 1};
  std::string means;
  for (const ModelReviews& model : study.models) {
    Series series;
    series.name = model.model;
    for (const ReviewScore& one : model.reviews) series.y.push_back(one.score);
    std::ranges::sort(series.y, std::greater<>());
    for (std::size_t i = 0; i < series.y.size(); ++i) series.x.push_back(static_cast<double>(i + 1));
    means += fmt::format("{}{}: mean {}", means.empty() ? "" : "; ", model.model, mean_text(model.score));
    figure.series.push_back(std::move(series));
  }
  figure.caption = means + ". A curve above another one belongs to a network that gives these words more.";
  figure.description =
      fmt::format("The score of each of {} reviews, sorted. {}.", review_count(study), means);
  return figure;
}

}  // namespace

Table review_table(const ReviewStudy& study) {
  Table table;
  table.title =
      fmt::format("Attention to sentiment words in {}", counted(review_count(study), "review", "reviews"));
  table.columns = {{"network", Align::left}, {"accuracy"},           {"score"},          {"lift"},
                   {"top token is one"},     {"share of attention"}, {"share of words"}, {"tokens attended"}};
  for (const ModelReviews& model : study.models)
    table.rows.push_back({model.model, fmt::format("{} of {}", model.correct, model.reviews.size()),
                          mean_text(model.score), mean_text(model.lift, 2), mean_text(model.top, 3),
                          mean_text(model.share), mean_text(model.token_share),
                          fmt::format("{:.1f}", model.tokens_attended.mean)});
  return table;
}

Table review_pairs_table(const ReviewStudy& study) {
  return pairs_table(score_pairs(study.models), network_names(study), "reviews", "lift");
}

std::string review_conclusion(const ReviewStudy& study) {
  const auto by_score = [](const ModelReviews& a, const ModelReviews& b) {
    return a.score.mean < b.score.mean;
  };
  const auto& [worst, best] = std::ranges::minmax_element(study.models, by_score);
  const std::string reviews = counted(review_count(study), "review", "reviews");
  if (best == worst)
    return fmt::format(
        "In {}, {} gives sentiment words {:.2f} times the attention of an average word, with a mean score of {}.",
        reviews, best->model, best->lift.mean, mean_text(best->score));
  const auto first = static_cast<std::size_t>(best - study.models.begin()),
             second = static_cast<std::size_t>(worst - study.models.begin());
  for (const ScorePair& pair : score_pairs(study.models))
    if (pair.first == std::min(first, second) && pair.second == std::max(first, second)) {
      const SignTest& test = pair.published;
      return fmt::format(
          "In {}, {} gives sentiment words the highest mean score, {}, and {} the lowest, {}: the former has the higher score "
          "in {}, the latter in {} (sign test, p = {:.2g}); they give these words {:.2f} and {:.2f} times the attention of an "
          "average word.",
          reviews, best->model, mean_text(best->score), worst->model, mean_text(worst->score),
          first < second ? test.first : test.second, first < second ? test.second : test.first, test.p,
          best->lift.mean, worst->lift.mean);
    }
  return "";
}

Section review_section(const ReviewStudy& study) {
  if (study.models.empty()) throw bad_input("there are no scores to show");
  Section section{
      .id = "reviews", .title = "Does attention select sentiment words in real reviews?", .blocks = {}};
  section.blocks.push_back(Paragraph{fmt::format(
      "The attention is that of `[CLS]` in the last block, averaged over heads. In each review the listed words of its own "
      "label count. Their score is the mean of their attention after scaling to 0 … 1 over all tokens of the review, as in P1. "
      "Lift is the share of the attention to words that they get, divided by their share of the words: 1 if "
      "attention does not tell them apart. The top token is the one with the most attention. `[CLS]` and `[SEP]` take "
      "part in the score alone. ± is a standard error over reviews. {} of the reviews have such a word{}.",
      study.found,
      std::cmp_equal(study.found, review_count(study))
          ? ""
          : fmt::format("; {} of them, evenly spaced, were scored", review_count(study)))});
  section.blocks.push_back(TableBlock{.id = "reviews", .table = review_table(study)});
  section.blocks.push_back(review_figure(study));
  if (study.models.size() > 1) {
    section.blocks.push_back(Paragraph{
        "Review by review, the network with the higher number wins. p is that of the two-sided sign test: the probability "
        "of so uneven a count if both were equally good. Ties are left out."});
    section.blocks.push_back(TableBlock{.id = "review-pairs", .table = review_pairs_table(study)});
  }
  section.blocks.push_back(Paragraph{fmt::format(
      "The list {}. Positive: {}. Negative: {}.",
      study.rule
          ? fmt::format(
                "has the words that occur in at least {} of the reviews it was made from, at least {:g} % of "
                "which have the same label",
                study.rule->least_reviews, 100 * study.rule->least_share)
          : "was given",
      listed_words(study, 1), listed_words(study, 0))});
  section.blocks.push_back(Folded{"Listed words", {TableBlock{.id = "words", .table = words_table(study)}}});
  return section;
}

Page review_page(const ReviewStudy& study) {
  Page page;
  page.sections.push_back(review_section(study));
  page.title = "Token selection";
  page.subtitle = fmt::format("{}, {}", counted(study.models.size(), "network", "networks"),
                              counted(review_count(study), "review", "reviews"));
  page.conclusion = review_conclusion(study);
  page.footer = version_line();
  return page;
}

}  // namespace attmirror::deep

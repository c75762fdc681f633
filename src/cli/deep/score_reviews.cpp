#include "cli/deep/score_reviews.hpp"

#include "base/atomic_file.hpp"
#include "base/progress.hpp"
#include "cli/console.hpp"
#include "deep/corpus/rows.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/tokenize.hpp>

#include <algorithm>
#include <cstdio>
#include <limits>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

namespace fs = std::filesystem;

// Tokens of a text set, which become as long as P1's, are those that training would see.
constexpr std::int64_t text_length = 512;

// A token file, or a text set that is turned into tokens here. The file is part of every message.
TokenSet read_reviews(const fs::path& path, const WordPiece& vocabulary, const CommonOptions& common) {
  if (path.extension() != ".safetensors")
    return make_token_set(read_text_set(path), vocabulary, text_length, static_cast<int>(common.threads));
  TokenSet tokens = load_token_set(path);
  if (tokens.vocabulary_fingerprint != vocabulary.fingerprint() || tokens.vocabulary != vocabulary.size())
    throw bad_input(fmt::format(
        "{} was made with another vocabulary, of {} pieces, than the {} of --vocabulary: they do not belong together",
        path.string(), tokens.vocabulary, vocabulary.size()));
  return tokens;
}

std::vector<SentimentWord> list_of(const ReviewOptions& options, const WordPiece& vocabulary,
                                   const CommonOptions& common) {
  if (!options.words.empty()) return read_sentiment_words(options.words, vocabulary);
  const std::vector<SentimentWord> words =
      sentiment_words(read_reviews(options.words_from, vocabulary, common), vocabulary, options.rule);
  if (words.empty())
    throw bad_input(fmt::format(
        "{} gives no word that occurs in {} of its reviews and has the same label in {:g} % of them: lower --least-reviews or "
        "--least-share",
        options.words_from.string(), options.rule.least_reviews, 100 * options.rule.least_share));
  return words;
}

std::int64_t shortest_length(const TextModels& loaded) {
  std::int64_t length = std::numeric_limits<std::int64_t>::max();
  for (const deep::TextModel& model : loaded.models)
    length = std::min(length, model.network->options().length);
  return length;
}

}  // namespace

void add_review_options(CLI::App& app, ReviewOptions& options) {
  const char* group = "Reviews";
  add_path(
      app, "--reviews", options.reviews, "FILE",
      "reviews to score, such as those of a test set: a token file (.safetensors) or a text set (.tsv, .tsv.xz)")
      ->group(group);
  add_path(app, "--words", options.words, "FILE",
           "the sentiment words to look for: comma-separated values with the columns word and label")
      ->group(group);
  add_path(
      app, "--words-from", options.words_from, "FILE",
      "find the sentiment words in these reviews, such as those of training: words that occur often, nearly "
      "always in reviews with the same label")
      ->group(group);
  add_count(app, "--least-reviews", options.rule.least_reviews,
            "with --words-from: in how many reviews a word must occur")
      ->group(group);
  add_number(app, "--least-share", options.rule.least_share,
             "with --words-from: how large a share of these reviews must have the same label")
      ->group(group);
  add_path(app, "--list", options.list, "FILE",
           "with --words-from: write the words, which --words reads (.csv)")
      ->group(group);
  add_count(app, "--limit", options.limit,
            "score so many of the reviews with a listed word, evenly spaced; 0 for all")
      ->group(group);
}

void check_review_options(const CLI::App& app, const ReviewOptions& options) {
  if (options.reviews.empty()) {
    for (const char* option :
         {"--words", "--words-from", "--least-reviews", "--least-share", "--list", "--limit"})
      if (app.count(option) > 0)
        throw bad_input(fmt::format("{} is given, but there are no reviews: give --reviews", option));
    return;
  }
  if (options.words.empty() == options.words_from.empty())
    throw bad_input(
        options.words.empty()
            ? "--reviews needs a list of words: give --words with a list, or --words-from with reviews to "
              "find them in"
            : "--words and --words-from are both given: the words come from one of them");
  if (!options.words.empty())
    for (const char* option : {"--least-reviews", "--least-share", "--list"})
      if (app.count(option) > 0)
        throw bad_input(
            fmt::format("{} cannot be combined with --words: it belongs to --words-from", option));
  if (options.limit < 0) throw bad_input(fmt::format("limit is {}: expected 0 or more", options.limit));
  options.rule.validate();
  if (!options.list.empty()) check_writable(options.list);
}

deep::ReviewStudy score_reviews(const TextModels& loaded, const ReviewOptions& options,
                                const CommonOptions& common) {
  deep::ReviewStudy study;
  study.words = list_of(options, loaded.vocabulary, common);
  if (options.words.empty()) study.rule = options.rule;
  const TokenSet reviews =
      shortened(read_reviews(options.reviews, loaded.vocabulary, common), shortest_length(loaded));
  const ReviewChoice choice = reviews_with_words(reviews, loaded.vocabulary, study.words, options.limit);
  if (choice.reviews.empty())
    throw bad_input(
        fmt::format("{} has no review with a listed word of its own label", options.reviews.string()));
  study.found = choice.found;
  const auto each = std::ssize(choice.reviews);
  Progress progress(stderr, {.label = "score",
                             .total = each * std::ssize(loaded.models),
                             .unit = "reviews",
                             .quiet = common.quiet});
  for (const deep::TextModel& model : loaded.models) {
    const std::int64_t before = each * std::ssize(study.models);
    study.models.push_back(
        deep::review_scores(model, loaded.vocabulary, reviews, choice.reviews,
                            {.threads = static_cast<int>(common.threads),
                             .on_progress = [&](std::int64_t done) { progress.update(before + done); }}));
  }
  progress.finish();
  return study;
}

Json mean_json(const deep::ScoreMean& mean) {
  return {{"mean", finite_or_null(mean.mean)},
          {"standard_error", finite_or_null(mean.standard_error)},
          {"kept", mean.count}};
}

Json pairs_json(std::span<const deep::ScorePair> pairs, const std::vector<std::string>& networks,
                const char* words_way) {
  const auto test_json = [](const SignTest& test) {
    return Json{{"wins", {test.first, test.second}}, {"ties", test.ties}, {"p", test.p}};
  };
  Json rows = Json::array();
  for (const deep::ScorePair& pair : pairs)
    rows.push_back({{"models", {networks[pair.first], networks[pair.second]}},
                    {"published_way", test_json(pair.published)},
                    {words_way, test_json(pair.words)}});
  return rows;
}

// Numbers of single reviews are in arrays, one entry per review: two networks that were scored in different calls
// can be compared by them.
Json reviews_json(const deep::ReviewStudy& study, const ReviewOptions& options) {
  Json words = Json::array(), rows = Json::array(), models = Json::array();
  for (const SentimentWord& word : study.words)
    words.push_back({{"word", word.word},
                     {"label", word.label},
                     {"count", word.count ? Json(*word.count) : Json()},
                     {"share", word.share ? Json(*word.share) : Json()}});
  for (const deep::ReviewScore& one : study.models.front().reviews) rows.push_back(one.row);
  std::vector<std::string> networks;
  for (const deep::ModelReviews& model : study.models) {
    networks.push_back(model.model);
    Json scores = Json::array(), lifts = Json::array(), tops = Json::array(), probabilities = Json::array();
    for (const deep::ReviewScore& one : model.reviews) {
      scores.push_back(one.score);
      lifts.push_back(one.lift);
      tops.push_back(one.top);
      probabilities.push_back(one.probability);
    }
    models.push_back(
        {{"model", model.model},
         {"score", mean_json(model.score)},
         {"lift", mean_json(model.lift)},
         {"top", mean_json(model.top)},
         {"share", mean_json(model.share)},
         {"word_share", mean_json(model.token_share)},
         {"tokens_attended", mean_json(model.tokens_attended)},
         {"correct", model.correct},
         {"accuracy", static_cast<double>(model.correct) / static_cast<double>(model.reviews.size())},
         {"scores", std::move(scores)},
         {"lifts", std::move(lifts)},
         {"tops", std::move(tops)},
         {"probabilities", std::move(probabilities)}});
  }
  return {{"set", options.reviews.string()},
          {"with_listed_word", study.found},
          {"rows", std::move(rows)},
          {"words", std::move(words)},
          {"least_reviews", study.rule ? Json(study.rule->least_reviews) : Json()},
          {"least_share", study.rule ? Json(study.rule->least_share) : Json()},
          {"list", options.list.empty() ? Json() : Json(options.list.string())},
          {"models", std::move(models)},
          {"pairs", pairs_json(deep::score_pairs(study.models), networks, "lift")}};
}

}  // namespace attmirror::cli

// attmirror deep score: how much attention the words that decide a review get, in sentences and in real reviews.
#include "base/atomic_file.hpp"
#include "cli/console.hpp"
#include "cli/deep/deep_options.hpp"
#include "cli/deep/deep_subcommands.hpp"
#include "cli/deep/model_files.hpp"
#include "cli/deep/score_reviews.hpp"
#include "cli/page_output.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/token_score.hpp>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

namespace fs = std::filesystem;

struct ScoreOptions {
  CommonOptions common;
  std::vector<fs::path> models;
  fs::path vocabulary, sentences;
  ReviewOptions reviews;
  PageOutput output;
};

Json optional_json(const std::optional<double>& number) { return number ? finite_or_null(*number) : Json(); }

Json score_json(const deep::ModelScore& score, const std::vector<PivotalSentence>& sentences) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    const deep::SentenceScore& one = score.sentences[i];
    rows.push_back({{"sentence", sentences[i].sentence},
                    {"label", sentences[i].label},
                    {"pivotal", sentences[i].pivotal},
                    {"pieces", one.pieces},
                    {"published", optional_json(one.published)},
                    {"dropped", one.dropped.empty() ? Json() : Json(one.dropped)},
                    {"sum", optional_json(one.sum)},
                    {"largest", optional_json(one.largest)},
                    {"rank", one.rank ? Json(*one.rank) : Json()},
                    {"share", one.rank ? Json(one.share) : Json()},
                    {"probability", one.probability},
                    {"correct", one.correct},
                    {"tokens_attended", one.tokens_attended}});
  }
  return {{"model", score.model},
          {"published_way", mean_json(score.published)},
          {"words_sum", mean_json(score.sum)},
          {"words_largest", mean_json(score.largest)},
          {"share", mean_json(score.share)},
          {"tokens_attended", mean_json(score.tokens_attended)},
          {"word_is_first", score.first},
          {"correct", score.correct},
          {"accuracy", static_cast<double>(score.correct) / static_cast<double>(sentences.size())},
          {"sentences", std::move(rows)}};
}

// What a call of the command measured.
struct Measured {
  std::vector<PivotalSentence> sentences;
  std::vector<deep::ModelScore> scores;      // on them; empty without --sentences
  std::optional<deep::ReviewStudy> reviews;  // with --reviews
  std::vector<std::string> networks;
};

Page page_of(const Measured& measured, const TextModels& loaded) {
  if (measured.scores.empty()) return deep::review_page(*measured.reviews);
  Page page = deep::score_page(
      measured.scores, measured.sentences,
      deep::attention_view(loaded.models, loaded.vocabulary, deep::viewed_texts(measured.sentences)));
  if (measured.reviews) {
    // Before the attention of single sentences, which is long.
    page.sections.insert(page.sections.end() - 1, deep::review_section(*measured.reviews));
    page.conclusion += " " + deep::review_conclusion(*measured.reviews);
  }
  return page;
}

Json json_of(const Measured& measured, const ScoreOptions& options, const std::vector<fs::path>& files) {
  Json answer = files.empty() ? Json{{"status", "done"}} : written_json(files);
  if (!measured.scores.empty()) {
    answer["published"] = {{"l1.1", deep::published_score_md}, {"gd", deep::published_score_gd}};
    answer["models"] = Json::array();
    for (const deep::ModelScore& score : measured.scores)
      answer["models"].push_back(score_json(score, measured.sentences));
    answer["pairs"] = pairs_json(deep::score_pairs(measured.scores), measured.networks, "words_sum");
  }
  if (measured.reviews) answer["reviews"] = reviews_json(*measured.reviews, options.reviews);
  return answer;
}

std::string text_of(const Measured& measured) {
  std::string text;
  const auto add = [&](const Table& table) { text += (text.empty() ? "" : "\n") + to_text(table); };
  const bool several = measured.networks.size() > 1;
  if (!measured.scores.empty()) {
    add(deep::score_table(measured.scores));
    if (several)
      add(deep::pairs_table(deep::score_pairs(measured.scores), measured.networks, "sentences",
                            "words, sum"));
    const Table dropped = deep::dropped_table(measured.scores.front(), measured.sentences);
    if (!dropped.rows.empty()) add(dropped);
  }
  if (measured.reviews) {
    add(deep::review_table(*measured.reviews));
    if (several) add(deep::review_pairs_table(*measured.reviews));
  }
  return text;
}

int run_score(const CLI::App& app, const ScoreOptions& options) {
  if (!options.output.path.empty()) check_page_output(options.output);
  check_review_options(app, options.reviews);
  if (options.sentences.empty() && options.reviews.reviews.empty())
    throw bad_input("there is nothing to score: give --sentences or --reviews");
  Measured measured;
  if (!options.sentences.empty()) measured.sentences = read_pivotal_sentences(options.sentences);
  const TextModels loaded = load_text_models(options.models, options.vocabulary);
  for (const deep::TextModel& model : loaded.models) measured.networks.push_back(model.name);
  if (!measured.sentences.empty())
    measured.scores = deep::model_scores(loaded.models, loaded.vocabulary, measured.sentences);
  if (!options.reviews.reviews.empty())
    measured.reviews = score_reviews(loaded, options.reviews, options.common);
  std::vector<fs::path> files;
  if (!options.output.path.empty()) files = write_output_page(page_of(measured, loaded), options.output);
  if (!options.reviews.list.empty())
    write_file_atomically(options.reviews.list, format_sentiment_words(measured.reviews->words));
  if (options.common.json) {
    print_json(json_of(measured, options, files));
    return done;
  }
  // The tables are what was asked for, so --quiet does not silence them.
  std::string text = text_of(measured);
  if (!options.common.quiet) {
    if (!files.empty()) text += fmt::format("\nreport   {}\n", written_text(files));
    if (!options.reviews.list.empty())
      text += fmt::format("\nwords    {} ({} words)\n", options.reviews.list.string(),
                          measured.reviews->words.size());
  }
  print(text);
  return done;
}

}  // namespace

Subcommand add_score(CLI::App& parent) {
  auto options = std::make_shared<ScoreOptions>();
  CLI::App& app = *parent.add_subcommand("score", std::string(deep_description("score")));
  app.add_option("models", options->models, "weights (.safetensors) or folders of attmirror deep train")
      ->type_name("FILE")
      ->required();
  add_path(
      app, "--sentences", options->sentences, "FILE",
      "short reviews with a pivotal word each: a .tsv file with the columns label, pivotal and sentence");
  add_path(app, "--vocabulary", options->vocabulary, "FILE",
           "the WordPieces that the networks were trained with, one per line")
      ->required();
  add_review_options(app, options->reviews);
  add_page_options(app, options->output, "write a page with the scores and the attention of every sentence");
  add_common_options(app, options->common);
  app.footer(
      "Examples:\n"
      "  attmirror deep score l1.1/ gd/ --sentences p1_sentences.tsv --vocabulary vocab.txt -o score.html\n"
      "  attmirror deep score l1.1/ gd/ --reviews test.tsv.xz --words-from train.tsv.xz --list words.csv --vocabulary "
      "vocab.txt");
  return {&app, &options->common, [options, &app] { return run_score(app, *options); }};
}

}  // namespace attmirror::cli

// attmirror deep score: how much attention the word that decides a review gets.
#include "cli/console.hpp"
#include "cli/deep/deep_options.hpp"
#include "cli/deep/deep_subcommands.hpp"
#include "cli/deep/model_files.hpp"
#include "cli/page_output.hpp"
#include <attmirror/deep/token_score.hpp>

#include <filesystem>
#include <memory>
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
  PageOutput output;
};

Json mean_json(const deep::ScoreMean& mean) {
  return {{"mean", finite_or_null(mean.mean)},
          {"standard_error", finite_or_null(mean.standard_error)},
          {"kept", mean.count}};
}

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

int run_score(const ScoreOptions& options) {
  if (!options.output.path.empty()) check_page_output(options.output);
  const std::vector<PivotalSentence> sentences = read_pivotal_sentences(options.sentences);
  const TextModels loaded = load_text_models(options.models, options.vocabulary);
  std::vector<deep::ModelScore> scores;
  for (const deep::TextModel& model : loaded.models)
    scores.push_back(deep::token_score(model, loaded.vocabulary, sentences));
  std::vector<fs::path> files;
  if (!options.output.path.empty()) {
    const deep::AttentionView view =
        deep::attention_view(loaded.models, loaded.vocabulary, viewed_texts(sentences));
    files = write_output_page(deep::score_page(scores, sentences, view), options.output);
  }
  if (options.common.json) {
    Json answer = files.empty() ? Json{{"status", "done"}} : written_json(files);
    answer["published"] = {{"l1.1", deep::published_score_md}, {"gd", deep::published_score_gd}};
    answer["models"] = Json::array();
    for (const deep::ModelScore& score : scores) answer["models"].push_back(score_json(score, sentences));
    print_json(answer);
    return done;
  }
  // The table is what was asked for, so --quiet does not silence it.
  std::string text = to_text(deep::score_table(scores));
  const Table dropped = deep::dropped_table(scores.front(), sentences);
  if (!dropped.rows.empty()) text += "\n" + to_text(dropped);
  if (!files.empty() && !options.common.quiet) text += fmt::format("\nreport   {}\n", written_text(files));
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
  add_path(app, "--sentences", options->sentences, "FILE",
           "reviews with a pivotal word each: a .tsv file with the columns label, pivotal and sentence")
      ->required();
  add_path(app, "--vocabulary", options->vocabulary, "FILE",
           "the WordPieces that the networks were trained with, one per line")
      ->required();
  add_page_options(app, options->output, "write a page with the scores and the attention of every sentence");
  add_common_options(app, options->common);
  app.footer(
      "Example:\n  attmirror deep score l1.1/ gd/ --sentences p1_sentences.tsv --vocabulary vocab.txt -o "
      "score.html");
  return {&app, &options->common, [options] { return run_score(*options); }};
}

}  // namespace attmirror::cli

// attmirror deep attention-map: what networks attend to in texts, as a page.
#include "cli/console.hpp"
#include "cli/deep/deep_options.hpp"
#include "cli/deep/deep_subcommands.hpp"
#include "cli/deep/model_files.hpp"
#include "cli/page_output.hpp"
#include <attmirror/base/error.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

namespace fs = std::filesystem;

struct AttentionMapOptions {
  CommonOptions common;
  std::vector<fs::path> models;
  fs::path vocabulary, sentences;
  std::vector<std::string> texts;
  PageOutput output;
};

int run_attention_map(const AttentionMapOptions& options) {
  check_page_output(options.output);
  if (options.texts.empty() && options.sentences.empty())
    throw bad_input("there is no text to look at: give --text or --sentences");
  std::vector<deep::ViewedText> texts;
  for (const std::string& text : options.texts) texts.push_back({.text = text});
  if (!options.sentences.empty())
    for (deep::ViewedText& text : viewed_texts(read_pivotal_sentences(options.sentences)))
      texts.push_back(std::move(text));
  const TextModels loaded = load_text_models(options.models, options.vocabulary);
  const deep::AttentionView view = deep::attention_view(loaded.models, loaded.vocabulary, texts);
  const std::vector<fs::path> files = write_output_page(deep::attention_page(view), options.output);

  if (!options.common.quiet)
    for (const std::string& sentence : view.notes) note(sentence);
  if (options.common.json) {
    Json answer = written_json(files);
    answer["models"] = view.maps.models;
    answer["notes"] = view.notes;
    answer["texts"] = Json::array();
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const deep::TextAnswer& one = view.answers[i];
      answer["texts"].push_back({{"text", texts[i].text},
                                 {"tokens", one.tokens},
                                 {"cut", one.cut},
                                 {"all_rows", one.rows == deep::AttentionRows::all},
                                 {"probabilities", one.probabilities}});
    }
    print_json(answer);
  } else if (!options.common.quiet) {
    print(fmt::format("maps     {} ({} network{}, {} text{})\n", files.front().string(),
                      view.maps.models.size(), view.maps.models.size() == 1 ? "" : "s",
                      view.maps.texts.size(), view.maps.texts.size() == 1 ? "" : "s"));
  }
  return done;
}

}  // namespace

Subcommand add_attention_map(CLI::App& parent) {
  auto options = std::make_shared<AttentionMapOptions>();
  CLI::App& app = *parent.add_subcommand("attention-map", std::string(deep_description("attention-map")));
  app.add_option("models", options->models,
                 "weights (.safetensors) or folders of attmirror deep train, shown side by side")
      ->type_name("FILE")
      ->required();
  app.add_option("--text", options->texts, "a text to look at; may be given several times")
      ->type_name("TEXT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_path(app, "--sentences", options->sentences, "FILE",
           "texts to look at: a .tsv file with the columns label, pivotal and sentence, like P1's");
  add_path(app, "--vocabulary", options->vocabulary, "FILE",
           "the WordPieces that the networks were trained with, one per line")
      ->required();
  add_page_options(app, options->output, "the page")->required();
  add_common_options(app, options->common);
  app.footer(
      "Texts longer than the networks' length are cut to it.\n\nExample:\n"
      "  attmirror deep attention-map l1.1/ gd/ --text \"The movie was fantastic\" --vocabulary vocab.txt -o "
      "maps.html");
  return {&app, &options->common, [options] { return run_attention_map(*options); }};
}

}  // namespace attmirror::cli

// attmirror deep attention-map: what networks attend to in texts or in images, as a page.
#include "cli/console.hpp"
#include "cli/deep/deep_options.hpp"
#include "cli/deep/deep_subcommands.hpp"
#include "cli/deep/model_files.hpp"
#include "cli/deep/score_reviews.hpp"
#include "cli/page_output.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/image_set.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

namespace fs = std::filesystem;

struct AttentionMapOptions {
  CommonOptions common;
  std::vector<fs::path> models;
  fs::path vocabulary, sentences, images;
  std::vector<std::string> texts;
  std::vector<std::string> image_lists;  // each "0,17,203"
  std::optional<std::int64_t> differing;
  PageOutput output;
};

// What is looked at: texts or images, each with all that it needs and nothing of the other.
void check_subjects(const AttentionMapOptions& options) {
  const bool texts = !options.texts.empty() || !options.sentences.empty();
  if (!options.images.empty()) {
    if (texts)
      throw bad_input("--images cannot be combined with --text and --sentences: a network reads one of them");
    if (!options.vocabulary.empty())
      throw bad_input("--vocabulary is given, but networks for images have none");
    if (options.image_lists.empty())
      throw bad_input("there is no image to look at: give --image with numbers such as 0,17,203");
    return;
  }
  if (!options.image_lists.empty())
    throw bad_input("--image is given, but there are no images: give --images with a file of CIFAR-10");
  if (!texts)
    throw bad_input("there is nothing to look at: give --text or --sentences, or --images and --image");
  if (options.vocabulary.empty())
    throw bad_input(
        "there is no vocabulary: give --vocabulary, the WordPieces that the networks were trained with");
}

// --differing chooses among sentences by their scores, which need a pivotal word.
void check_differing(const AttentionMapOptions& options) {
  if (!options.differing) return;
  const std::int64_t count = *options.differing;
  if (count < 1) throw bad_value("--differing", count, "1 or more sentences");
  if (!options.images.empty())
    throw bad_input(
        fmt::format("--differing is {} with --images: expected --sentences, whose words have scores", count));
  if (!options.texts.empty())
    throw bad_input(fmt::format(
        "--differing is {} with --text, which has no pivotal word: expected --sentences alone", count));
  if (options.sentences.empty())
    throw bad_input(
        fmt::format("--differing is {} without --sentences: expected sentences to choose from", count));
}

// "0,17,203" as numbers of images that `file` has.
std::vector<std::int64_t> parse_images(const std::vector<std::string>& lists, std::int64_t count,
                                       const fs::path& file) {
  std::vector<std::int64_t> images;
  for (const std::string& list : lists)
    for (std::size_t begin = 0; begin <= list.size();) {
      const std::size_t end = std::min(list.find(',', begin), list.size());
      if (end == begin) throw bad_value("--image", list, "numbers such as 0,17,203");
      images.push_back(parse_count("--image", list.substr(begin, end - begin)));
      if (images.back() < 0 || images.back() >= count)
        throw bad_value("--image", images.back(),
                        fmt::format("0 to {}, the images of {}", count - 1, file.string()));
      begin = end + 1;
    }
  return images;
}

// "maps     maps.html (2 networks, 4 images)"
std::string maps_line(const std::vector<fs::path>& files, std::size_t networks, std::size_t subjects,
                      std::string_view subject) {
  return fmt::format("maps     {} ({} network{}, {} {}{})\n", files.front().string(), networks,
                     networks == 1 ? "" : "s", subjects, subject, subjects == 1 ? "" : "s");
}

Json spread_json(const PatchSpread& spread, std::int64_t side) {
  const auto across = static_cast<std::size_t>(side);
  return {{"top_patch", {spread.top_patch / across, spread.top_patch % across}},
          {"top_share", spread.top_share},
          {"patches_attended", spread.patches},
          {"entropy", spread.entropy},
          {"class_token", spread.class_token}};
}

Json image_json(const deep::ImageAttention& one, const std::string& model, std::int32_t label,
                const std::vector<std::string>& classes) {
  const PatchAttention& patches = one.patches;
  Json blocks = Json::array();
  for (std::int64_t b = 0; b < patches.blocks; ++b) {
    const auto spread = [&](std::int64_t head) {
      return spread_json(patch_spread(patches.row(b, head)), patches.side);
    };
    Json heads = Json::array();
    for (std::int64_t h = 0; h < patches.heads; ++h) heads.push_back(spread(h));
    blocks.push_back({{"mean", spread(-1)}, {"heads", std::move(heads)}});
  }
  const std::int64_t answer = one.answer();
  return {{"model", model},
          {"answer", classes[static_cast<std::size_t>(answer)]},
          {"probability", one.probabilities[static_cast<std::size_t>(answer)]},
          {"correct", answer == label},
          {"probabilities", one.probabilities},
          {"side", patches.side},
          {"blocks", std::move(blocks)},
          {"attention", patches.row(patches.blocks - 1, -1)}};
}

int run_image_maps(const AttentionMapOptions& options) {
  const ImageSet images = load_cifar10(cifar10_files(options.images, "test"));
  const std::vector<std::int64_t> chosen = parse_images(options.image_lists, images.count(), options.images);
  const std::vector<deep::ImageModel> models =
      load_image_models(options.models, images, options.images.string());
  const deep::ImageView view = deep::image_view(models, images, cifar10_classes(), chosen);
  const std::vector<fs::path> files = write_output_page(deep::image_attention_page(view), options.output);

  if (!options.common.quiet)
    for (const std::string& sentence : view.notes) note(sentence);
  if (options.common.json) {
    Json answer = written_json(files);
    answer["models"] = view.maps.models;
    answer["classes"] = view.classes;
    answer["notes"] = view.notes;
    answer["images"] = Json::array();
    for (const deep::ImageAnswer& one : view.answers) {
      Json answers = Json::array();
      for (std::size_t m = 0; m < one.models.size(); ++m)
        answers.push_back(image_json(one.models[m], view.maps.models[m], one.label, view.classes));
      answer["images"].push_back({{"image", one.image},
                                  {"class", view.classes[static_cast<std::size_t>(one.label)]},
                                  {"answers", std::move(answers)}});
    }
    print_json(answer);
  } else if (!options.common.quiet) {
    print(to_text(deep::image_attention_table(view)) + "\n" +
          maps_line(files, view.maps.models.size(), view.maps.images.size(), "image"));
  }
  return done;
}

Json text_json(const std::string& text, const deep::TextAnswer& answer) {
  return {{"text", text},
          {"tokens", answer.tokens},
          {"cut", answer.cut},
          {"all_rows", answer.rows == deep::AttentionRows::all},
          {"probabilities", answer.probabilities}};
}

Json group_json(const deep::DifferingView& view, const std::vector<deep::SentenceRange>& group,
                const std::vector<deep::TextAnswer>& answers) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < group.size(); ++i) {
    const PivotalSentence& sentence = view.sentences[group[i].sentence];
    Json row = text_json(sentence.sentence, answers[i]);
    row["row"] = group[i].sentence;
    row["label"] = sentence.label;
    row["pivotal"] = sentence.pivotal;
    row["range"] = group[i].range;
    row["scores"] = Json::array();
    for (const deep::ModelScore& score : view.scores)
      row["scores"].push_back(*score.sentences[group[i].sentence].published);
    for (const auto& [key, networks] :
         {std::pair{"highest", &group[i].highest}, std::pair{"lowest", &group[i].lowest}}) {
      row[key] = Json::array();
      for (const std::size_t m : *networks) row[key].push_back(view.scores[m].model);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Json differing_json(const deep::DifferingView& view) {
  const deep::DifferingSentences& differing = view.differing;
  Json networks = Json::array();
  std::vector<std::string> names;
  for (std::size_t m = 0; m < view.scores.size(); ++m) {
    names.push_back(view.scores[m].model);
    networks.push_back({{"model", names.back()},
                        {"score", mean_json(differing.networks[m].all)},
                        {"mean_chosen", differing.networks[m].chosen},
                        {"tokens_attended", differing.networks[m].tokens_attended},
                        {"wins", differing.networks[m].wins}});
  }
  return {{"sentences", view.sentences.size()},
          {"scored", differing.scored},
          {"ties", differing.ties},
          {"tokens", differing.tokens},
          {"networks", std::move(networks)},
          {"pairs", pairs_json(differing.pairs, names, "words_sum")},
          {"most", group_json(view, differing.most, view.most.answers)},
          {"least", group_json(view, differing.least, view.least.answers)}};
}

int run_differing_maps(const AttentionMapOptions& options) {
  const std::vector<PivotalSentence> sentences = read_pivotal_sentences(options.sentences);
  const TextModels loaded = load_text_models(options.models, options.vocabulary);
  const deep::DifferingView view =
      deep::differing_view(loaded.models, loaded.vocabulary, sentences, *options.differing);
  const std::vector<fs::path> files = write_output_page(deep::differing_page(view), options.output);

  std::vector<std::string> notes = view.most.notes;
  notes.insert(notes.end(), view.least.notes.begin(), view.least.notes.end());
  if (!options.common.quiet)
    for (const std::string& sentence : notes) note(sentence);
  if (options.common.json) {
    Json answer = written_json(files);
    answer["models"] = view.most.maps.models;
    answer["notes"] = notes;
    answer["differing"] = differing_json(view);
    print_json(answer);
  } else if (!options.common.quiet) {
    print(to_text(deep::differing_table(view)) + "\n" +
          maps_line(files, view.scores.size(), view.most.maps.texts.size() + view.least.maps.texts.size(),
                    "text"));
  }
  return done;
}

int run_text_maps(const AttentionMapOptions& options) {
  std::vector<deep::ViewedText> texts;
  for (const std::string& text : options.texts) texts.push_back({.text = text});
  if (!options.sentences.empty())
    for (deep::ViewedText& text : deep::viewed_texts(read_pivotal_sentences(options.sentences)))
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
    for (std::size_t i = 0; i < texts.size(); ++i)
      answer["texts"].push_back(text_json(texts[i].text, view.answers[i]));
    print_json(answer);
  } else if (!options.common.quiet) {
    print(maps_line(files, view.maps.models.size(), view.maps.texts.size(), "text"));
  }
  return done;
}

int run_attention_map(const AttentionMapOptions& options) {
  check_page_output(options.output);
  check_differing(options);
  check_subjects(options);
  if (options.differing) return run_differing_maps(options);
  return options.images.empty() ? run_text_maps(options) : run_image_maps(options);
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
  app.add_option_function<std::string>(
         "--differing",
         [options](const std::string& text) { options->differing = parse_count("--differing", text); },
         "with --sentences and several networks: show only so many sentences in which the networks' token-selection "
         "scores differ most, and as many in which they differ least")
      ->type_name("COUNT");
  add_path(app, "--vocabulary", options->vocabulary, "FILE",
           "for texts: the WordPieces that the networks were trained with, one per line");
  add_path(
      app, "--images", options->images, "FILE",
      "images to look at: a binary file of CIFAR-10 (.bin or .bin.xz), or a folder with its test images");
  app.add_option("--image", options->image_lists,
                 "which of the images: numbers from 0, such as 0,17,203; may be given several times")
      ->type_name("NUMBERS")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_page_options(app, options->output, "the page")->required();
  add_common_options(app, options->common);
  app.footer(
      "Texts longer than the networks' length are cut to it. Images are resized to the networks' size.\n\n"
      "Examples:\n"
      "  attmirror deep attention-map l1.1/ gd/ --text \"The movie was fantastic\" --vocabulary vocab.txt -o "
      "maps.html\n"
      "  attmirror deep attention-map l1.1/ gd/ adam/ muon/ --sentences p1_sentences.tsv --differing 3 --vocabulary "
      "vocab.txt -o maps.html\n"
      "  attmirror deep attention-map cifar-md/ cifar-adam/ --images test_batch.bin --image 0,17,203 -o maps.html");
  return {&app, &options->common, [options] { return run_attention_map(*options); }};
}

}  // namespace attmirror::cli

// attmirror-deep tokenize: text sets as token ids, and what tells whether they are those of somebody else.
#include "base/atomic_file.hpp"
#include "base/stopwatch.hpp"
#include "cli/console.hpp"
#include "cli/deep/deep_subcommands.hpp"
#include "cli/options.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/table.hpp>
#include <attmirror/deep/tokenize.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

namespace fs = std::filesystem;

struct TokenizeCommand {
  CommonOptions common;
  std::vector<fs::path> inputs;
  fs::path vocabulary, output;
  std::int64_t length = 512;
  std::string columns{to_string(TextColumns::found)};
};

// One input, or all of them together.
struct Tokenized {
  std::string name;
  TokenSet tokens;
  TokenStatistics statistics;
  std::string sha256;                       // empty where ids do not fit 16 bits
  double reading_seconds = 0, seconds = 0;  // reading and unpacking; making ids of it
};

Tokenized summed_up(std::string name, TokenSet tokens, const WordPiece& wordpiece) {
  Tokenized result;
  result.name = std::move(name);
  result.statistics = token_statistics(tokens, wordpiece.unknown());
  if (wordpiece.size() <= 65'536) result.sha256 = ids_sha256(tokens);
  result.tokens = std::move(tokens);
  return result;
}

Json to_json(const Tokenized& set) {
  return {{"rows", set.statistics.rows},
          {"tokens", set.statistics.tokens},
          {"mean_length", set.statistics.mean_length},
          {"rows_of_full_length", set.statistics.rows_of_full_length},
          {"unknown", set.statistics.unknown},
          {"sha256_uint16_le", set.sha256.empty() ? Json() : Json(set.sha256)},
          {"reading_seconds", set.reading_seconds},
          {"seconds", set.seconds}};
}

std::string to_text(const std::vector<Tokenized>& sets, const WordPiece& wordpiece,
                    const TokenizeCommand& options) {
  Table table;
  table.title = fmt::format("WordPiece, {} pieces, at most {} ids a row", wordpiece.size(), options.length);
  table.columns = {{"set", Align::left}, {"rows"},    {"tokens"},  {"mean length"},
                   {"at full length"},   {"unknown"}, {"seconds"}, {"reading"}};
  for (const Tokenized& set : sets)
    table.rows.push_back(
        {set.name, fmt::format("{}", set.statistics.rows), fmt::format("{}", set.statistics.tokens),
         fmt::format("{:.3f}", set.statistics.mean_length),
         fmt::format("{}", set.statistics.rows_of_full_length), fmt::format("{}", set.statistics.unknown),
         fmt::format("{:.3f}", set.seconds), fmt::format("{:.3f}", set.reading_seconds)});
  std::string text = to_text(table) + "\nSHA-256 of the ids as uint16, little-endian:\n";
  for (const Tokenized& set : sets)
    text += fmt::format("{}  {}\n", set.sha256.empty() ? "(ids do not fit 16 bits)" : set.sha256, set.name);
  if (!options.output.empty()) text += fmt::format("\ntokens   {}\n", options.output.string());
  return text;
}

int run_tokenize(const TokenizeCommand& options) {
  const TextColumns columns = parse_text_columns(options.columns);
  if (options.length < 1)
    throw bad_input(fmt::format("length is {}: expected a number of ids of at least 1", options.length));
  if (!options.output.empty()) check_writable(options.output);
  const WordPiece wordpiece = load_wordpiece(options.vocabulary);

  std::vector<Tokenized> sets;
  for (const fs::path& input : options.inputs) {
    const auto start = Clock::now();
    const TextSet texts = read_text_set(input, {.columns = columns});
    const double reading = seconds_since(start);
    const auto begin = Clock::now();
    TokenSet tokens =
        make_token_set(texts, wordpiece, options.length, static_cast<int>(options.common.threads));
    const double seconds = seconds_since(begin);
    sets.push_back(summed_up(input.string(), std::move(tokens), wordpiece));
    sets.back().reading_seconds = reading;
    sets.back().seconds = seconds;
  }
  Tokenized all;
  if (sets.size() == 1) {
    all = sets.front();
  } else {
    std::vector<TokenSet> parts;
    for (Tokenized& set : sets) parts.push_back(std::move(set.tokens));
    all = summed_up("all", join_token_sets(parts), wordpiece);
    for (const Tokenized& set : sets) {
      all.reading_seconds += set.reading_seconds;
      all.seconds += set.seconds;
    }
  }
  if (!options.output.empty()) save_token_set(options.output, all.tokens);

  if (options.common.json) {
    Json answer = {{"status", "done"}};
    answer.update(to_json(all));
    answer["length"] = options.length;
    answer["vocabulary"] = {{"path", options.vocabulary.string()},
                            {"pieces", wordpiece.size()},
                            {"fingerprint", wordpiece.fingerprint()}};
    answer["unicode"] = unicode_version();
    answer["output"] = options.output.empty() ? Json() : Json(options.output.string());
    answer["inputs"] = Json::array();
    for (const Tokenized& set : sets) {
      Json input = {{"path", set.name}};
      input.update(to_json(set));
      answer["inputs"].push_back(std::move(input));
    }
    print_json(answer);
  } else if (!options.common.quiet || options.output.empty()) {
    if (sets.size() > 1) sets.push_back(std::move(all));
    print(to_text(sets, wordpiece, options));
  }
  return done;
}

}  // namespace

Subcommand add_tokenize(CLI::App& parent) {
  auto options = std::make_shared<TokenizeCommand>();
  CLI::App& app = *parent.add_subcommand("tokenize", std::string(deep_description("tokenize")));
  app.add_option(
         "inputs", options->inputs,
         "text sets: .tsv or .tsv.xz files with a label and a text per line, or folders with neg and pos, such as aclImdb/train; several are joined in this order")
      ->type_name("FILE")
      ->required();
  add_path(app, "--vocabulary", options->vocabulary, "FILE",
           "one piece per line, such as the vocabulary of bert-base-uncased")
      ->required();
  add_count(app, "--length", options->length, "cut each row to this many ids, including [CLS] and [SEP]");
  add_text(app, "--columns", options->columns, "auto|label,text|text,label",
           "the columns of a .tsv file; auto takes the column that is 0 or 1 in every row for the labels");
  add_path(app, "-o,--output", options->output, "FILE",
           "write a token file, such as tokens.safetensors; without it the numbers are only printed");
  add_common_options(app, options->common);
  app.footer(
      "Examples:\n"
      "  attmirror deep tokenize aclImdb/train --vocabulary vocab.txt -o train.safetensors\n"
      "  attmirror deep tokenize train.tsv.xz test.tsv.xz --vocabulary vocab.txt --json");
  return {&app, &options->common, [options] { return run_tokenize(*options); }};
}

}  // namespace attmirror::cli

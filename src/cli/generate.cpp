// attmirror generate: the papers' data from their seeds, and data of the same kinds in other sizes.
//
// The table of data/generator_kinds.hpp says what kinds there are and which settings each takes; help, messages and
// the check that an option belongs to the kind all read it.
#include "cli/console.hpp"
#include "cli/options.hpp"
#include <attmirror/base/atomic_file.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/data/array.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/generator_kinds.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/data/head_data.hpp>
#include <attmirror/data/npy.hpp>
#include <attmirror/data/prompt_data.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::cli {

namespace {

// The options of a kind beside --output: one for each of its settings.
std::vector<std::string> options_of(const GeneratorKind& kind) {
  std::vector<std::string> options;
  for (std::string name : kind.settings) {
    std::ranges::replace(name, '_', '-');
    options.push_back("--" + name);
  }
  if (kind.score_blind) options.push_back("--key-weights-output");
  return options;
}

struct GenerateOptions {
  CommonOptions common;
  GeneratorSettings given;
  std::string kind = "sphere";
  std::filesystem::path output, key_weights_output;
};

// Whether two paths, spelled in whatever way, name one file; it need not be there.
bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error)) return true;
  return std::filesystem::weakly_canonical(a, error) == std::filesystem::weakly_canonical(b, error);
}

int run_generate(const GenerateOptions& options) {
  check_writable(options.output);
  const bool wants_key_weights = !options.key_weights_output.empty();
  if (wants_key_weights) {
    if (is_same_file(options.key_weights_output, options.output))
      throw bad_input(fmt::format("key-weights-output is {}, the file of the data: expected another one",
                                  options.output.string()));
    check_writable(options.key_weights_output);
  }
  const GeneratorKind& kind = find_generator(options.kind);
  const GeneratorSettings settings = kind.resolve(options.given);
  const Dataset data = kind.make(settings);
  save_dataset(options.output, data);
  if (wants_key_weights) {
    const Matrix A = score_blind_key_weights();
    save_npy(options.key_weights_output,
             Array({A.rows(), A.cols()}, std::span(A.data(), static_cast<std::size_t>(A.size()))));
  }
  if (options.common.json) {
    print_json(
        Json{{"status", "done"},
             {"output", options.output.string()},
             {"key_weights_output", wants_key_weights ? Json(options.key_weights_output.string()) : Json()},
             {"kind", options.kind},
             {"samples", data.samples()},
             {"max_tokens", data.max_length()},
             {"total_tokens", data.total_tokens()},
             {"total_queries", data.total_queries()},
             {"dim", data.dim()},
             {"seed", settings.seed ? Json(*settings.seed) : Json()},
             {"fingerprint", fmt::format("{:016x}", data.fingerprint())}});
  } else if (!options.common.quiet) {
    print(fmt::format("{}: {}\n", options.output.string(), to_string(data)));
    if (wants_key_weights)
      print(fmt::format("{}: key weights diag(1, 1, 0)\n", options.key_weights_output.string()));
  }
  return done;
}

// An option that only some kinds take. Its default is the kind's own, so that help can only quote it.
template <class T, class Parser>
void add_given(CLI::App& app, const std::string& name, std::optional<T>& value, const char* type,
               const std::string& description, Parser parse) {
  app.add_option_function<std::string>(
         "--" + name, [&value, name, parse](const std::string& text) { value = parse(name, text); },
         description)
      ->type_name(type);
}

void refuse_options_of_other_kinds(const CLI::App& app, const GeneratorKind& kind) {
  const std::vector<std::string> taken = options_of(kind);
  for (const GeneratorKind& other : generator_kinds()) {
    for (const std::string& name : options_of(other)) {
      if (std::ranges::find(taken, name) != taken.end() || app.count(name) == 0) continue;
      throw bad_input(fmt::format("{} is given, but the {} data {}", name, kind.name,
                                  taken.empty() ? "have fixed sizes and no seed"
                                                : fmt::format("take {} only", fmt::join(taken, ", "))));
    }
  }
}

}  // namespace

Subcommand add_generate(CLI::App& parent) {
  auto options = std::make_shared<GenerateOptions>();
  GeneratorSettings& given = options->given;
  CLI::App& app = *parent.add_subcommand("generate", "make a dataset from a seed");
  std::string names, footer = "Kinds, and the options each takes:\n";
  for (const GeneratorKind& kind : generator_kinds()) {
    names += (names.empty() ? "" : "|") + kind.name;
    footer += fmt::format("  {:<16} {}\n", kind.name, kind.description);
    if (const auto taken = options_of(kind); !taken.empty())
      footer += fmt::format("  {:<16} {}\n", "", fmt::join(taken, " "));
  }
  const auto text = [](const std::string&, const std::string& word) { return word; };
  add_text(app, "--kind", options->kind, names, "what to make; see below");
  // Defaults as the library has them; those of the two kinds for heads are the same.
  const auto sizes = [](std::int64_t sphere, std::int64_t head) {
    return fmt::format("[{}; relu, orthonormal: {}]", sphere, head);
  };
  const SphereData sphere;
  const ReluHeadData head;
  add_given(app, "samples", given.samples, "COUNT", "sequences n " + sizes(sphere.samples, head.samples),
            parse_count);
  add_given(app, "tokens", given.tokens, "COUNT",
            "tokens T of each sequence, with --min-tokens at most " + sizes(sphere.tokens, head.tokens),
            parse_count);
  add_given(app, "dim", given.dim, "COUNT", "dimension d of a token " + sizes(sphere.dim, head.dim),
            parse_count);
  add_given(app, "min-tokens", given.min_tokens, "COUNT",
            "lengths random from this to --tokens; 0: all equal [0]", parse_count);
  add_given(
      app, "seed", given.seed, "SEED",
      "seed of torch's generator, of which the lower 32 bits count [1; multi-input: 0, visualization2: 3]",
      parse_seed);
  add_given(app, "queries", given.queries, "COUNT", "queries drawn for each sequence [1]", parse_count);
  add_given(app, "query-from", given.query_from, "draw|first|last|all",
            "where the queries are from: drawn, or (self-attention) the first, last or all tokens of the "
            "sequence [draw]",
            text);
  add_given(app, "scores", given.scores, "equal|unequal",
            "whether the tokens that are not optimal have equal scores [equal]", text);
  add_given(app, "label-margin", given.label_margin, "tight|slack",
            "whether all inputs are support vectors of the labels' max-margin problem [tight]", text);
  add_given(app, "score", given.score, "NUMBER", "score C of the first sequence's best token [10]",
            parse_number);
  add_path(
      app, "--key-weights-output", options->key_weights_output, "FILE",
      "write the key weights diag(1, 1, 0) of these data to this .npy file too, for train --key-weights");
  add_path(app, "-o,--output", options->output, "FILE", "the .npz file to write")->required();
  add_common_options(app, options->common);
  app.footer(footer +
             "\nExamples:\n  attmirror generate --samples 6 --tokens 8 --dim 10 --seed 1 -o data.npz\n"
             "  attmirror generate --kind multi-input --key-weights-output A.npy -o data.npz");
  return {&app, &options->common, [options, &app] {
            refuse_options_of_other_kinds(app, find_generator(options->kind));
            return run_generate(*options);
          }};
}

}  // namespace attmirror::cli

// attmirror generate: the papers' data from their seeds, and data of the same kinds in other sizes.
//
// The table of data/generator_kinds.hpp says what kinds there are and which settings each takes; help, messages and
// the check that an option belongs to the kind all read it.
#include "base/atomic_file.hpp"
#include "cli/console.hpp"
#include "cli/field_options.hpp"
#include "cli/options.hpp"
#include "data/generator_fields.hpp"
#include "data/npy.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/array.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/generators.hpp>

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
  for (const std::string& name : kind.settings) options.push_back(option_name({.name = name}));
  if (kind.score_blind) options.push_back("--key-weights-output");
  return options;
}

struct GenerateOptions {
  CommonOptions common;
  Given given;
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
  const GeneratorKind& kind = find_generator(options.kind);
  GeneratorSettings given;
  apply(generator_fields(), options.given, given);
  const GeneratorSettings settings = resolved(kind, given);
  refuse_link(options.output);
  check_writable(options.output);
  const bool wants_key_weights = !options.key_weights_output.empty();
  if (wants_key_weights && !kind.score_blind)
    throw bad_input(fmt::format("--key-weights-output is given, but the {} data {}", kind.name,
                                kind.settings.empty()
                                    ? "have fixed sizes and no seed"
                                    : fmt::format("take {} only", fmt::join(options_of(kind), ", "))));
  if (wants_key_weights) {
    if (is_same_file(options.key_weights_output, options.output))
      throw bad_input(fmt::format("key-weights-output is {}, the file of the data: expected another one",
                                  options.output.string()));
    refuse_link(options.key_weights_output);
    check_writable(options.key_weights_output);
  }
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

}  // namespace

Subcommand add_generate(CLI::App& parent) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App& app = *parent.add_subcommand("generate", "make a dataset from a seed");
  std::string names, footer = "Kinds, and the options each takes:\n";
  for (const GeneratorKind& kind : generator_kinds()) {
    names += (names.empty() ? "" : "|") + kind.name;
    footer += fmt::format("  {:<16} {}\n", kind.name, kind.description);
    if (const auto taken = options_of(kind); !taken.empty())
      footer += fmt::format("  {:<16} {}\n", "", fmt::join(taken, " "));
  }
  add_text(app, "--kind", options->kind, names, "which data to make; the kinds are listed below");
  add_field_options(app, infos(generator_fields()), options->given, "", generator_default);
  add_path(
      app, "--key-weights-output", options->key_weights_output, "FILE",
      "also write the key weights diag(1, 1, 0) of these data to this .npy file, for train --key-weights");
  add_path(app, "-o,--output", options->output, "FILE", "the .npz file to write")->required();
  add_common_options(app, options->common);
  app.footer(footer +
             "\nExamples:\n  attmirror generate --samples 6 --tokens 8 --dim 10 --seed 1 -o data.npz\n"
             "  attmirror generate --kind multi-input --key-weights-output A.npy -o data.npz");
  return {&app, &options->common, [options] { return run_generate(*options); }};
}

}  // namespace attmirror::cli

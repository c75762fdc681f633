// attmirror generate: the papers' random data, and data of the same kind in other sizes.
#include "cli/console.hpp"
#include "cli/options.hpp"
#include <attmirror/base/atomic_file.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/generators.hpp>

#include <memory>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

struct GenerateOptions {
  CommonOptions common;
  SphereData sphere;
  std::int64_t min_tokens = 0;  // 0: rectangular
  std::string kind = "sphere";
  std::filesystem::path output;
};

Dataset make_data(const GenerateOptions& options) {
  if (options.kind == "joint") return generate(JointData{});
  if (options.kind != "sphere")
    throw bad_input(fmt::format("kind is \"{}\": expected sphere or joint", options.kind));
  SphereData sphere = options.sphere;
  if (options.min_tokens != 0) sphere.min_tokens = options.min_tokens;
  return generate(sphere);
}

int run_generate(const GenerateOptions& options) {
  check_writable(options.output);
  const Dataset data = make_data(options);
  save_dataset(options.output, data);
  if (options.common.json) {
    print_json(Json{{"status", "done"},
                    {"output", options.output.string()},
                    {"kind", options.kind},
                    {"samples", data.samples()},
                    {"max_tokens", data.max_length()},
                    {"total_tokens", data.total_tokens()},
                    {"dim", data.dim()},
                    {"seed", options.kind == "sphere" ? Json(options.sphere.seed) : Json()},
                    {"fingerprint", fmt::format("{:016x}", data.fingerprint())}});
  } else if (!options.common.quiet) {
    print(fmt::format("{}: {}\n", options.output.string(), to_string(data)));
  }
  return done;
}

}  // namespace

Subcommand add_generate(CLI::App& parent) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App& app = *parent.add_subcommand("generate", "make a dataset from a seed");
  add_text(app, "--kind", options->kind, "sphere|joint",
           "sphere: tokens, queries and v on the unit sphere, as the papers draw them with torch's "
           "generator; joint: "
           "the two sequences of their joint training of W and v, nothing random");
  CLI::Option* sizes[] = {add_count(app, "--samples", options->sphere.samples, "sequences n"),
                          add_count(app, "--tokens", options->sphere.tokens,
                                    "tokens T of each sequence (with --min-tokens: at most)"),
                          add_count(app, "--dim", options->sphere.dim, "dimension d of a token"),
                          add_count(app, "--min-tokens", options->min_tokens,
                                    "lengths random from this to --tokens; 0: all equal"),
                          add_seed(app, "--seed", options->sphere.seed,
                                   "seed of torch's generator, of which the lower 32 bits count")};
  add_path(app, "-o,--output", options->output, "FILE", "the .npz file to write")->required();
  add_common_options(app, options->common);
  app.footer("Example:\n  attmirror generate --samples 6 --tokens 8 --dim 10 --seed 1 -o data.npz");
  return {&app, &options->common,
          [options, sizes = std::vector<CLI::Option*>(std::begin(sizes), std::end(sizes))] {
            for (const CLI::Option* size : sizes)
              if (options->kind == "joint" && size->count() > 0)
                throw bad_input(fmt::format("{} is given, but the joint data have fixed sizes and no seed",
                                            size->get_name()));
            return run_generate(*options);
          }};
}

}  // namespace attmirror::cli

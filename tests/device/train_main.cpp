// The subcommands of `attmirror deep` that need nothing but LibTorch, for machines without the rest of the packages.
#include "cli/command_line.hpp"
#include "cli/deep/deep_options.hpp"

int main(int argc, char** argv) {
  using namespace attmirror::cli;
  CommandLine line;
  line.name = "attmirror_deep_train";
  line.description =
      "Trains transformers by mirror descent and measures them: five subcommands of `attmirror deep`.";
  line.subcommands = [](CLI::App& app) {
    return std::vector<Subcommand>{add_deep_train(app), add_attention_map(app), add_histogram(app),
                                   add_score(app), add_tokenize(app)};
  };
  return run_command_line(line, argc, argv);
}

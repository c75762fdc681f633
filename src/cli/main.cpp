// The command `attmirror`: reads options, calls the library, prints, and turns what happened into an exit code.
#include "cli/command_line.hpp"
#include "cli/deep_command.hpp"
#include "cli/options.hpp"
#include "descent/model_fields.hpp"

#include <exception>
#include <vector>

int main(int argc, char** argv) {
  using namespace attmirror::cli;
  std::set_terminate(end_without_memory);
  CommandLine line;
  line.name = "attmirror";
  line.description =
      "Trains softmax attention by mirror descent and solves the max-margin problem that it converges to.";
  line.example =
      "  attmirror generate --samples 6 --tokens 8 --dim 10 --seed 1 -o data.npz\n"
      "  attmirror train data.npz --p 3 --normalized --steps 20000 -o run/\n"
      "  attmirror margin data.npz --select run:run/ -o svm.npz\n"
      "  attmirror compare run/ svm.npz";
  line.before_parsing = hand_over_to_deep;
  line.spelling = [](std::string_view field) {
    return attmirror::command_spelling(attmirror::training_fields(), field);
  };
  line.subcommands = [](CLI::App& app) {
    std::vector<Subcommand> commands;
    commands.push_back(add_generate(app));
    commands.push_back(add_train(app));
    commands.push_back(add_margin(app));
    commands.push_back(add_compare(app));
    commands.push_back(add_path_command(app));
    commands.push_back(add_next_token(app));
    commands.push_back(add_deep(app));
    commands.push_back(add_sweep(app));
    commands.push_back(add_which_margin(app));
    commands.push_back(add_attractors(app));
    commands.push_back(add_study(app));
    commands.push_back(add_reproduce(app));
    commands.push_back(add_report(app));
    commands.push_back(add_info(app));
    commands.push_back(add_completion(app));
    commands.push_back(add_man(app));
    return commands;
  };
  return run_command_line(line, argc, argv);
}

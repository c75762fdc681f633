// The program attmirror-deep, which users call as `attmirror deep`: what needs LibTorch.
#include "cli/command_line.hpp"
#include "cli/deep/deep_options.hpp"
#include <attmirror/base/error.hpp>

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>
#include <fmt/format.h>

namespace {

using namespace attmirror;
using namespace attmirror::cli;

// LibTorch's errors carry a listing of its call stack; the first line is the sentence.
Subcommand in_our_words(Subcommand command) {
  command.run = [run = std::move(command.run)] {
    try {
      return run();
    } catch (const c10::Error& error) {
      const std::string text = error.what_without_backtrace();
      throw environment_error(fmt::format("LibTorch: {}", text.substr(0, text.find('\n'))));
    }
  };
  return command;
}

}  // namespace

int main(int argc, char** argv) {
  std::set_terminate(end_without_memory);
  CommandLine line;
  line.name = "attmirror deep";
  line.description = "Trains transformers by mirror descent and shows what their attention selects.";
  line.example =
      "  attmirror deep train examples/deep/sst2.toml -o l1.1/ --set data.train=train.tsv ...\n"
      "  attmirror deep attention-map l1.1/ gd/ --text \"The movie was fantastic\" \\\n"
      "      --vocabulary vocab.txt -o maps.html\n"
      "  attmirror deep attention-map cifar-md/ cifar-adam/ --images test_batch.bin --image 0,17 \\\n"
      "      -o images.html\n"
      "  attmirror deep score l1.1/ gd/ --sentences p1_sentences.tsv --vocabulary vocab.txt\n"
      "  attmirror deep report l1.1/ gd/ -o report.html";
  line.subcommands = [](CLI::App& app) {
    std::vector<Subcommand> commands;
    commands.push_back(add_deep_train(app));
    commands.push_back(add_tokenize(app));
    commands.push_back(add_attention_map(app));
    commands.push_back(add_score(app));
    commands.push_back(add_histogram(app));
    commands.push_back(add_deep_report(app));
    commands.push_back(add_man(app));
    for (Subcommand& command : commands) command = in_our_words(std::move(command));
    return commands;
  };
  return run_command_line(line, argc, argv);
}

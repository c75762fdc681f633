#include "cli/help.hpp"

#include "cli/console.hpp"
#include "cli/environment.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::cli {

std::string_view first_word(std::span<char* const> words) {
  const auto word = std::ranges::find_if(words, [](std::string_view text) { return !text.starts_with('-'); });
  return word == words.end() ? std::string_view() : std::string_view(*word);
}

std::vector<std::string> with_help_as_option(std::span<char* const> words) {
  std::vector<std::string> result(words.begin(), words.end());
  if (first_word(words) != "help") return result;
  const auto about = std::ranges::find(words, std::string_view("environment"),
                                       [](const char* word) { return std::string_view(word); });
  const bool asks_already =
      std::ranges::find(result, "--help") != result.end() || std::ranges::find(result, "-h") != result.end();
  if (about != words.end() || asks_already) return result;
  result.erase(std::ranges::find(result, "help"));
  result.push_back("--help");
  return result;
}

Subcommand add_help(CLI::App& parent) {
  struct Options {
    CommonOptions common;
    std::vector<std::string> topics;
  };
  auto options = std::make_shared<Options>();
  std::vector<std::string> topics;
  for (const CLI::App* one : parent.get_subcommands([](const CLI::App*) { return true; }))
    topics.push_back(one->get_name());
  topics.push_back("environment");
  CLI::App& app = *parent.add_subcommand("help", "print the help of a subcommand");
  app.add_option(
         "topic", options->topics,
         "a subcommand, or environment for the variables that attmirror reads; by default this overview")
      ->type_name(fmt::format("{}", fmt::join(topics, "|")));
  add_common_options(app, options->common);
  app.footer(
      fmt::format("Examples:\n  {0} help {1}\n  {0} help environment", parent.get_name(), topics.front()));
  // Everything but this one has become an option by now.
  return {&app, &options->common, [options] {
            if (options->common.json)
              print_json({{"status", "done"}, {"text", environment_help()}});
            else
              print(environment_help());
            return static_cast<int>(done);
          }};
}

}  // namespace attmirror::cli

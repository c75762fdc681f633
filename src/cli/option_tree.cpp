#include "cli/option_tree.hpp"

#include <algorithm>
#include <cctype>

namespace attmirror::cli {

namespace {

// "zero|uniform|normal:STD" gives zero, uniform and "normal:". A part of three capitals or more is the user's own word;
// shorter ones are names of parameters (W, KQ).
std::vector<std::string> choices_of(const std::string& type) {
  std::vector<std::string> choices;
  if (type.find('|') == std::string::npos) return choices;
  for (std::size_t begin = 0; begin <= type.size();) {
    const std::size_t end = std::min(type.find('|', begin), type.size());
    std::string choice = type.substr(begin, end - begin);
    begin = end + 1;
    if (const std::size_t colon = choice.find(':'); colon != std::string::npos) choice.resize(colon + 1);
    const bool placeholder = choice.size() > 2 && std::ranges::all_of(choice, [](unsigned char c) {
                               return std::isupper(c) || c == '_' || c == ':';
                             });
    if (!placeholder && std::ranges::find(choices, choice) == choices.end()) choices.push_back(choice);
  }
  return choices;
}

OptionInfo option_info(const CLI::Option& option) {
  OptionInfo info;
  for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
  if (info.names.empty()) info.names.push_back(option.get_name(/*positional=*/true));
  info.takes_value = option.get_items_expected_max() != 0;
  if (info.takes_value) info.type = option.get_type_name();
  info.description = option.get_description();
  info.default_text = option.get_default_str();
  info.group = option.get_group();
  info.choices = choices_of(info.type);
  info.takes_file = info.type == "FILE" || info.type == "FOLDER";
  info.required = option.get_required();
  info.repeats = option.get_items_expected_max() > 1;
  return info;
}

}  // namespace

CommandInfo option_tree(const CLI::App& app) {
  CommandInfo info;
  info.name = app.get_name();
  info.description = app.get_description();
  info.footer = app.get_footer();
  info.groups = app.get_groups();
  info.hidden = app.get_group().empty();
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty())  // others are hidden: old names that still work
      (option->nonpositional() ? info.options : info.arguments).push_back(option_info(*option));
  for (const CLI::App* subcommand : app.get_subcommands([](const CLI::App*) { return true; }))
    info.subcommands.push_back(option_tree(*subcommand));
  return info;
}

}  // namespace attmirror::cli

// attmirror completion: scripts for the Tab key, made from the same tree of options that reads the command
// line, so that they cannot fall behind it.
#include "cli/console.hpp"
#include "cli/options.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cctype>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::cli {

namespace {

struct OptionInfo {
  std::vector<std::string> names;  // "-o", "--output"
  std::string description;
  std::vector<std::string> choices;  // "md", "gd"; "normal:" where something of the user's follows
  bool takes_value = false, takes_file = false;
};

struct CommandInfo {
  std::string name, description;
  std::vector<OptionInfo> options;
  OptionInfo argument;  // what words without dashes are
};

// "zero|uniform|normal:STD" gives zero, uniform and "normal:"; a part all in capitals is the user's own word.
std::vector<std::string> choices_of(const std::string& type) {
  std::vector<std::string> choices;
  if (type.find('|') == std::string::npos) return choices;
  for (std::size_t begin = 0; begin <= type.size();) {
    const std::size_t end = std::min(type.find('|', begin), type.size());
    std::string choice = type.substr(begin, end - begin);
    begin = end + 1;
    if (const std::size_t colon = choice.find(':'); colon != std::string::npos) choice.resize(colon + 1);
    const bool placeholder = choice.size() > 2 && std::ranges::all_of(choice, [](unsigned char c) {
                               return std::isupper(c) || c == '_';
                             });
    if (!placeholder && std::ranges::find(choices, choice) == choices.end()) choices.push_back(choice);
  }
  return choices;
}

OptionInfo info_of(const CLI::Option& option) {
  OptionInfo info;
  for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
  info.description = option.get_description();
  info.takes_value = option.get_items_expected_max() != 0;
  const std::string type = option.get_type_name();
  info.takes_file = type == "FILE" || type == "FOLDER" || type.find("file:") != std::string::npos;
  info.choices = choices_of(type);
  return info;
}

CommandInfo info_of(const CLI::App& app) {
  CommandInfo info{app.get_name(), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    OptionInfo one = info_of(*option);
    if (one.names.empty()) {
      info.argument.takes_file |= one.takes_file;
      info.argument.choices.insert(info.argument.choices.end(), one.choices.begin(), one.choices.end());
    } else {
      info.options.push_back(std::move(one));
    }
  }
  return info;
}

std::vector<std::string> all_names(const CommandInfo& command) {
  std::vector<std::string> names;
  for (const OptionInfo& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

// Within single quotes of a shell.
std::string shell_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'')
      result += "'\\''";
    else
      result += c;
  }
  return result + "'";
}

// What follows the word before the cursor.
std::string bash_values(const OptionInfo& option) {
  if (!option.choices.empty() && option.takes_file)
    return fmt::format("COMPREPLY=($(compgen -W {} -- \"$cur\") $(compgen -f -- \"$cur\"))",
                       shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
  if (!option.choices.empty())
    return fmt::format("COMPREPLY=($(compgen -W {} -- \"$cur\"))",
                       shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
  if (option.takes_file) return "COMPREPLY=($(compgen -f -- \"$cur\")); compopt -o filenames 2>/dev/null";
  return "COMPREPLY=()";
}

std::string bash_script(const CommandInfo& root, const std::vector<CommandInfo>& commands) {
  std::string script =
      "# attmirror for bash: put this line into ~/.bashrc\n"
      "#   source <(attmirror completion bash)\n"
      "_attmirror() {\n"
      "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\" command=\"\" word\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"$word\" in\n";
  std::vector<std::string> names;
  for (const CommandInfo& command : commands) names.push_back(command.name);
  script += fmt::format("      {}) command=\"$word\"; break ;;\n    esac\n  done\n  case \"$command\" in\n",
                        fmt::join(names, "|"));
  for (const CommandInfo& command : commands) {
    script += fmt::format("    {})\n      case \"$prev\" in\n", command.name);
    for (const OptionInfo& option : command.options)
      if (option.takes_value)
        script +=
            fmt::format("        {}) {}; return ;;\n", fmt::join(option.names, "|"), bash_values(option));
    script += fmt::format(
        "      esac\n"
        "      if [[ \"$cur\" == -* ]]; then COMPREPLY=($(compgen -W {} -- \"$cur\")); return; fi\n"
        "      {} ;;\n",
        shell_quoted(fmt::format("{}", fmt::join(all_names(command), " "))), bash_values(command.argument));
  }
  std::vector<std::string> first = names;
  for (const std::string& name : all_names(root)) first.push_back(name);
  script += fmt::format(
      "    *) COMPREPLY=($(compgen -W {} -- \"$cur\")) ;;\n  esac\n}}\ncomplete -F _attmirror attmirror\n",
      shell_quoted(fmt::format("{}", fmt::join(first, " "))));
  return script;
}

// Colons and brackets are marks of zsh's own.
std::string zsh_escaped(std::string text) {
  std::string result;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_action(const OptionInfo& option) {
  if (option.choices.empty()) return option.takes_file ? "_files" : "";
  std::vector<std::string> choices;
  for (const std::string& choice : option.choices) choices.push_back(zsh_escaped(choice));
  return fmt::format("({})", fmt::join(choices, " "));
}

std::string zsh_script(const std::vector<CommandInfo>& commands) {
  std::string script =
      "#compdef attmirror\n"
      "# attmirror for zsh: put this line into ~/.zshrc, after compinit\n"
      "#   source <(attmirror completion zsh)\n"
      "_attmirror() {\n"
      "  local -a commands\n"
      "  commands=(\n";
  for (const CommandInfo& command : commands)
    script += fmt::format("    {}\n", shell_quoted(fmt::format("{}:{}", command.name, command.description)));
  script +=
      "  )\n"
      "  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
      "  local command=\"${words[2]}\"\n"
      "  shift words; (( CURRENT-- ))\n"
      "  case \"$command\" in\n";
  for (const CommandInfo& command : commands) {
    script += fmt::format("    {})\n      _arguments", command.name);
    for (const OptionInfo& option : command.options)
      for (const std::string& name : option.names) {
        std::string spec = fmt::format("{}[{}]", name, zsh_escaped(option.description));
        if (option.takes_value) spec += fmt::format(":value:{}", zsh_action(option));
        script += " \\\n        " + shell_quoted(spec);
      }
    script +=
        " \\\n        " + shell_quoted(fmt::format("*:argument:{}", zsh_action(command.argument))) + " ;;\n";
  }
  return script + "  esac\n}\ncompdef _attmirror attmirror\n";
}

std::string fish_script(const std::vector<CommandInfo>& commands) {
  std::string script =
      "# attmirror for fish: attmirror completion fish > ~/.config/fish/completions/attmirror.fish\n"
      "complete -c attmirror -f\n";
  for (const CommandInfo& command : commands) {
    script += fmt::format("complete -c attmirror -n __fish_use_subcommand -a {} -d {}\n", command.name,
                          shell_quoted(command.description));
    const std::string condition = fmt::format("-n '__fish_seen_subcommand_from {}'", command.name);
    if (command.argument.takes_file) script += fmt::format("complete -c attmirror {} -F\n", condition);
    if (!command.argument.choices.empty())
      script += fmt::format("complete -c attmirror {} -a '{}'\n", condition,
                            fmt::join(command.argument.choices, " "));
    for (const OptionInfo& option : command.options) {
      script += fmt::format("complete -c attmirror {}", condition);
      for (const std::string& name : option.names)
        script += name.starts_with("--") ? fmt::format(" -l {}", name.substr(2))
                                         : fmt::format(" -s {}", name.substr(1));
      if (option.takes_value) script += option.takes_file ? " -r -F" : " -x";
      if (!option.choices.empty()) script += fmt::format(" -a '{}'", fmt::join(option.choices, " "));
      script += fmt::format(" -d {}\n", shell_quoted(option.description));
    }
  }
  return script;
}

int run_completion(const CLI::App& root, const std::string& shell, const CommonOptions& common) {
  std::vector<CommandInfo> commands;
  for (const CLI::App* app : root.get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(info_of(*app));
  std::string script;
  if (shell == "bash")
    script = bash_script(info_of(root), commands);
  else if (shell == "zsh")
    script = zsh_script(commands);
  else if (shell == "fish")
    script = fish_script(commands);
  else
    throw bad_input(fmt::format("shell is \"{}\": expected bash, zsh or fish", shell));
  if (common.json)
    print_json(Json{{"status", "done"}, {"shell", shell}, {"script", script}});
  else
    print(script);
  return done;
}

}  // namespace

Subcommand add_completion(CLI::App& parent) {
  struct Options {
    CommonOptions common;
    std::string shell;
  };
  auto options = std::make_shared<Options>();
  CLI::App& app = *parent.add_subcommand("completion", "print the completion script for a shell");
  add_text(app, "shell", options->shell, "bash|zsh|fish", "the shell")->required();
  add_common_options(app, options->common);
  app.footer("Example:\n  source <(attmirror completion bash)");
  return {&app, &options->common,
          [options, &parent] { return run_completion(parent, options->shell, options->common); }};
}

}  // namespace attmirror::cli

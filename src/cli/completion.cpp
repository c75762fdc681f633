// attmirror completion: scripts for the Tab key, made from the same tree of options that reads the command
// line, so that they cannot fall behind it.
//
// A choice that ends in a colon ("normal:") is completed without a space after it; after "file:" and "run:" the scripts
// offer files. tests/house/completions.sh asks each shell itself what it makes of its script.
#include "base/words.hpp"
#include "cli/console.hpp"
#include "cli/option_tree.hpp"
#include "cli/options.hpp"
#include <attmirror/base/error.hpp>

#include <memory>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::cli {

namespace {

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

std::string quoted_list(const std::vector<std::string>& words) {
  return shell_quoted(fmt::format("{}", fmt::join(words, " ")));
}

std::vector<std::string> names_of(const std::vector<OptionInfo>& options) {
  std::vector<std::string> names;
  for (const OptionInfo& option : options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::vector<std::string> names_of(const std::vector<CommandInfo>& commands) {
  std::vector<std::string> names;
  for (const CommandInfo& command : commands) names.push_back(command.name);
  return names;
}

// Readline takes words apart at colons and equals signs, and replaces only what stands after the last of them.
constexpr const char* bash_beginning = R"(# attmirror for bash: put this line into ~/.bashrc
#   source <(attmirror completion bash)

# _attmirror_reply WORDS [files]: offers those of WORDS that begin like the word at the cursor, and files.
_attmirror_reply() {
  local rest="${cur#*:}" before=""
  COMPREPLY=()
  if [[ "$cur" == file:* || "$cur" == run:* ]]; then
    [[ "$COMP_WORDBREAKS" == *:* ]] || before="${cur%%:*}:"
    mapfile -t COMPREPLY < <(compgen -P "$before" -f -- "$rest")
    compopt -o filenames 2>/dev/null
    return
  fi
  [[ "$cur" == *:* ]] || mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
  if [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *: ]]; then compopt -o nospace 2>/dev/null; fi
  if [[ "$2" == files ]]; then
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$cur")
    compopt -o filenames 2>/dev/null
  fi
}

_attmirror() {
  local cur prev command="" word last="" words=() i position=0
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word="${COMP_WORDS[i]}"
    if [[ "$word" == "=" ]]; then
      # --option=value is --option value.
      if ((i == COMP_CWORD)); then words+=(""); fi
    elif [[ "$word" == ":" || ( "$last" == ":" && "$word" != -* ) ]]; then
      words[${#words[@]}-1]+="$word"
    else
      words+=("$word")
    fi
    last="$word"
  done
  cur="${words[${#words[@]}-1]}"
  prev="${words[${#words[@]}-2]}"
  for word in "${words[@]:1:${#words[@]}-2}"; do
    if [[ "$word" == -* ]]; then continue; fi
    if [[ -z "$command" ]]; then command="$word"; else position=$((position + 1)); fi
  done
  case "$command" in
)";

std::string bash_reply(const OptionInfo& option) {
  return fmt::format("_attmirror_reply {}{}", quoted_list(option.choices), option.takes_file ? " files" : "");
}

// What words without dashes are. The first may be of another kind than the others: `deep SUBCOMMAND FILE...`.
std::string bash_arguments(const CommandInfo& command) {
  if (command.arguments.empty()) return "_attmirror_reply ''";
  if (command.arguments.size() == 1) return bash_reply(command.arguments.front());
  return fmt::format("if ((position == 0)); then {}; else {}; fi", bash_reply(command.arguments.front()),
                     bash_reply(command.arguments.back()));
}

std::string bash_script(const CommandInfo& root) {
  std::string script = bash_beginning;
  for (const CommandInfo& command : root.subcommands) {
    script += fmt::format("    {})\n      case \"$prev\" in\n", command.name);
    for (const OptionInfo& option : command.options)
      if (option.takes_value)
        script +=
            fmt::format("        {}) {}; return ;;\n", fmt::join(option.names, "|"), bash_reply(option));
    script += fmt::format(
        "      esac\n"
        "      if [[ \"$cur\" == -* ]]; then _attmirror_reply {}; return; fi\n"
        "      {} ;;\n",
        quoted_list(names_of(command.options)), bash_arguments(command));
  }
  std::vector<std::string> first = names_of(root.subcommands);
  for (const std::string& name : names_of(root.options)) first.push_back(name);
  return script +
         fmt::format("    \"\") _attmirror_reply {} ;;\n  esac\n}}\ncomplete -F _attmirror attmirror\n",
                     quoted_list(first));
}

// Colons and brackets are marks of zsh's own.
std::string zsh_escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

// A file on zsh's search path is the body of a function the first time that it is called; sourced, it only defines.
constexpr const char* zsh_beginning = R"(#compdef attmirror
# attmirror for zsh: put this line into ~/.zshrc, after compinit
#   source <(attmirror completion zsh)

# _attmirror_values WORDS...: those that end in a colon want more, so no space follows them.
_attmirror_values() {
  local -a whole open
  if compset -P '(file|run):'; then _files; return; fi
  whole=(${@:#*:}) open=(${(M)@:#*:})
  compadd -a whole
  compadd -S '' -a open
}

_attmirror() {
  local -a commands
  local index=2
  commands=(
)";

constexpr const char* zsh_middle = R"(  )
  while (( index < CURRENT )) && [[ "${words[index]}" == -* ]]; do (( index++ )); done
  if (( CURRENT <= index )); then
    if [[ "${words[CURRENT]}" == -* ]]; then compadd -- ROOT_OPTIONS; else _describe command commands; fi
    return
  fi
  local command="${words[index]}"
  shift $(( index - 1 )) words; (( CURRENT -= index - 1 ))
  case "$command" in
)";

constexpr const char* zsh_end = R"(  esac
}

if [[ "${funcstack[1]}" == _attmirror ]]; then
  _attmirror "$@"
else
  compdef _attmirror attmirror
fi
)";

std::string zsh_action(const OptionInfo& option) {
  if (option.choices.empty()) return option.takes_file ? "_files" : " ";
  std::vector<std::string> choices;
  for (const std::string& choice : option.choices) choices.push_back(zsh_escaped(choice));
  return fmt::format(" _attmirror_values {}", fmt::join(choices, " "));
}

std::string zsh_option(const OptionInfo& option) {
  std::string specifications;
  // Once given, neither name is offered again.
  const std::string once = option.repeats ? "*" : fmt::format("({})", fmt::join(option.names, " "));
  for (const std::string& name : option.names) {
    const char* joined = option.takes_value && name.starts_with("--") ? "=" : "";
    std::string one = fmt::format("{}{}{}[{}]", once, name, joined, zsh_escaped(option.description));
    if (option.takes_value) one += fmt::format(":{}:{}", zsh_escaped(option.type), zsh_action(option));
    specifications += " \\\n        " + shell_quoted(one);
  }
  return specifications;
}

std::string zsh_script(const CommandInfo& root) {
  std::string script = zsh_beginning;
  for (const CommandInfo& command : root.subcommands)
    script += fmt::format("    {}\n", shell_quoted(fmt::format("{}:{}", command.name, command.description)));
  std::string middle = zsh_middle;
  const std::string mark = "ROOT_OPTIONS";
  middle.replace(middle.find(mark), mark.size(), fmt::format("{}", fmt::join(names_of(root.options), " ")));
  script += middle;
  for (const CommandInfo& command : root.subcommands) {
    script += fmt::format("    {})\n      _arguments", command.name);
    for (const OptionInfo& option : command.options) script += zsh_option(option);
    int position = 0;
    for (const OptionInfo& argument : command.arguments) {
      const std::string place = argument.repeats ? "*" : fmt::format("{}", ++position);
      script += " \\\n        " +
                shell_quoted(fmt::format("{}:{}:{}", place, argument.names.front(), zsh_action(argument)));
    }
    script += " ;;\n";
  }
  return script + zsh_end;
}

// `attmirror deep train` is not `attmirror train`: only the first word without dashes is the subcommand.
constexpr const char* fish_beginning =
    R"(# attmirror for fish: attmirror completion fish > ~/.config/fish/completions/attmirror.fish

# __attmirror_at COMMAND [first|later]: whether COMMAND is the subcommand ('' for none yet), and how many words follow.
function __attmirror_at
  set -l words (commandline -opc)
  set -l plain (string match -v -- '-*' $words[2..-1])
  set -l command ''
  if set -q plain[1]
    set command $plain[1]
  end
  test "$command" = "$argv[1]"; or return 1
  switch "$argv[2]"
    case first
      test (count $plain) -eq 1
    case later
      test (count $plain) -gt 1
  end
end

complete -c attmirror -f
)";

std::string fish_option(const OptionInfo& option, const std::string& condition) {
  std::string line = fmt::format("complete -c attmirror {}", condition);
  for (const std::string& name : option.names)
    line += name.starts_with("--") ? fmt::format(" -l {}", name.substr(2))
                                   : fmt::format(" -s {}", name.substr(1));
  if (option.takes_value) line += option.takes_file ? " -r -F" : " -x";
  if (!option.choices.empty()) line += fmt::format(" -a {}", quoted_list(option.choices));
  return line + fmt::format(" -d {}\n", shell_quoted(option.description));
}

std::string fish_argument(const OptionInfo& argument, const std::string& condition) {
  std::string lines;
  if (argument.takes_file) lines += fmt::format("complete -c attmirror {} -F\n", condition);
  if (!argument.choices.empty())
    lines += fmt::format("complete -c attmirror {} -a {}\n", condition, quoted_list(argument.choices));
  return lines;
}

std::string fish_script(const CommandInfo& root) {
  std::string script = fish_beginning;
  for (const OptionInfo& option : root.options) script += fish_option(option, "-n '__attmirror_at \"\"'");
  for (const CommandInfo& command : root.subcommands) {
    script += fmt::format("complete -c attmirror -n '__attmirror_at \"\"' -a {} -d {}\n", command.name,
                          shell_quoted(command.description));
    const auto condition = [&](const char* where) {
      return fmt::format("-n '__attmirror_at {}{}'", command.name, where);
    };
    if (command.arguments.size() > 1) {
      script += fish_argument(command.arguments.front(), condition(" first"));
      script += fish_argument(command.arguments.back(), condition(" later"));
    } else if (!command.arguments.empty()) {
      script += fish_argument(command.arguments.front(), condition(""));
    }
    for (const OptionInfo& option : command.options) script += fish_option(option, condition(""));
  }
  return script;
}

int run_completion(const CLI::App& root, const std::string& shell, const CommonOptions& common) {
  const CommandInfo tree = option_tree(root);
  std::string script;
  if (shell == "bash")
    script = bash_script(tree);
  else if (shell == "zsh")
    script = zsh_script(tree);
  else if (shell == "fish")
    script = fish_script(tree);
  else
    throw bad_input(
        fmt::format("shell is \"{}\": expected {}", shell, expected_choice(shell, {"bash", "zsh", "fish"})));
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

#include "cli/command_line.hpp"

#include "base/fields.hpp"
#include "base/words.hpp"
#include "cli/console.hpp"
#include "cli/help.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/base/isa.hpp>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

namespace attmirror::cli {

namespace {

// Whether the user wants JSON must be known even if the options make no sense.
bool wants_json(std::span<char* const> words) {
  return std::ranges::any_of(words, [](const char* word) { return std::string_view(word) == "--json"; });
}

void print_version(bool json) {
  if (!json) return print(version_line() + "\n");
  print_json(Json{{"version", version()},
                  {"commit", commit()},
                  {"isa", to_string(active_isa())},
                  {"components", components()},
                  {"compiler", compiler()},
                  {"build_type", build_type()}});
}

// The options of a command, hidden ones left out.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// Words that the command does not know, in the order in which they were given (CLI11 tells them backwards),
// each unknown option with the one that was probably meant. Empty: there are none.
std::string unknown_words_text(const CLI::App& app) {
  const std::vector<std::string> known = option_names(app);
  std::vector<std::string> options, near, others;
  for (const std::string& word : app.remaining()) {
    if (word == "--") continue;
    const bool is_number = word.size() > 1 && std::isdigit(static_cast<unsigned char>(word[1])) != 0;
    if (!word.starts_with('-') || is_number) {
      others.push_back(shell_word(word));
      continue;
    }
    const std::string name = word.substr(0, word.find('='));
    options.push_back(shell_word(name));
    near.emplace_back(nearest_word(name, {known.begin(), known.end()}));
  }
  if (options.size() == 1)
    return fmt::format("unknown option {}{}", options.front(),
                       near.front().empty() ? "" : fmt::format("; did you mean {}?", near.front()));
  for (std::size_t i = 0; i < options.size(); ++i)
    if (!near[i].empty()) options[i] += fmt::format(" (did you mean {}?)", near[i]);
  if (!options.empty()) return fmt::format("unknown options: {}", fmt::join(options, ", "));
  if (others.empty()) return "";
  return fmt::format("unexpected argument{}: {}", others.size() == 1 ? "" : "s", fmt::join(others, " "));
}

// CLI11's messages in our form: "unknown option --foo (see attmirror train --help)". A mistyped option also
// leaves the right one missing, so unknown words come first.
std::string parse_error_text(const CLI::ParseError& error, const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  std::string text = unknown_words_text(app);
  if (text.empty() && !chosen.empty()) text = unknown_words_text(*chosen.front());
  const std::string see = fmt::format(" (see {} {}--help)", app.get_name(),
                                      chosen.empty() ? "" : chosen.front()->get_name() + " ");
  if (!text.empty()) return text + see;
  text = error.what();
  if (const std::size_t line_end = text.find('\n'); line_end != std::string::npos) text.resize(line_end);
  constexpr std::string_view flag_value = " was given a disallowed flag override";
  constexpr std::string_view twice = ": At Most 1 required but received ";
  if (text.ends_with(flag_value))
    text.replace(text.size() - flag_value.size(), flag_value.size(), " takes no value");
  if (const std::size_t at = text.find(twice); at != std::string::npos)
    text = fmt::format("{} is given {} times: expected once", text.substr(0, at),
                       text.substr(at + twice.size()));
  if (!text.empty() && text.front() != '-') text.front() = static_cast<char>(std::tolower(text.front()));
  return text + see;
}

// CLI11 would answer an unknown subcommand with "a subcommand is required".
void check_subcommand(std::span<char* const> words, std::span<const Subcommand> commands) {
  const std::string_view word = first_word(words);
  if (word.empty()) return;
  std::vector<std::string> names;
  for (const Subcommand& command : commands) names.push_back(command.app->get_name());
  if (std::ranges::find(names, word) != names.end()) return;
  const std::string_view near = nearest_word(word, {names.begin(), names.end()});
  throw bad_input(fmt::format("unknown subcommand {}{}", shell_word(std::string(word)),
                              near.empty() ? fmt::format(": expected {}", fmt::join(names, ", "))
                                           : fmt::format("; did you mean {}?", near)));
}

int run(const CommandLine& line, int argc, char** argv, bool json) {
  CLI::App app(line.description, line.name);
  bool json_flag = false;
  app.formatter(help_formatter());
  app.set_help_flag("-h,--help", "print this help");
  app.set_version_flag("-V,--version", "", "print version, commit, instruction set and components");
  app.add_flag("--json", json_flag, "print one JSON object to standard output");
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done, 1 done with a negative answer (diverged, infeasible, differs), 2 bad input,\n3 the environment failed, 130 Ctrl-C, 143 SIGTERM and 129 SIGHUP (the checkpoint is kept).\n\n" +
      fmt::format("{0} help SUBCOMMAND lists the options of a subcommand,\n"
                  "{0} help environment the environment variables.\n\n",
                  line.name) +
      "Example:\n" + line.example);
  std::vector<Subcommand> commands = line.subcommands(app);
  commands.push_back(add_help(app));

  if (argc <= 1) {
    const std::string help = help_text(app);
    std::fwrite(help.data(), 1, help.size(), stderr);
    return bad_input_exit;
  }
  check_subcommand(std::span(argv, static_cast<std::size_t>(argc)).subspan(1), commands);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    print(help_text(app));
    return done;
  } catch (const CLI::CallForVersion&) {
    print_version(json);
    return done;
  } catch (const CLI::ParseError& error) {
    throw bad_input(parse_error_text(error, app));
  }
  for (const Subcommand& command : commands) {
    if (!command.app->parsed()) continue;
    if (json_flag) command.common->json = true;  // `attmirror --json train` is `attmirror train --json`
    apply(*command.common);
    return command.run();
  }
  throw bad_input("no subcommand was given");
}

int fail(const std::string& message, ExitCode code, bool json, const Json& place = Json::object()) {
  note_error(message);
  if (json) {
    try {
      Json answer{{"status", "error"}, {"error", message}};
      answer.update(place);
      print_json(answer);
    } catch (const std::exception&) {
      // stdout itself is broken, and the sentence above has said what went wrong first.
    }
  }
  return code;
}

// The field that an error is about, for programs: {"field": "labels", "index": 17, "value": "0"}.
Json place_of(const Error& error) {
  Json place = Json::object();
  if (error.field().empty()) return place;
  place["field"] = error.field();
  if (error.index()) place["index"] = *error.index();
  place["value"] = error.value();
  return place;
}

}  // namespace

// Libraries that we use allocate where nothing may be thrown (JSON when it is destroyed, the standard library when it
// opens a folder): without memory they end the program. Then what is left is to say why, in the words of any other
// lack of memory; files that were being written stay behind unfinished, as after a kill. Anything else that ends the
// program is a mistake of ours.
void end_without_memory() {
  static std::atomic_flag again;
  if (const std::exception_ptr error = std::current_exception(); error && !again.test_and_set()) {
    try {
      std::rethrow_exception(error);
    } catch (const std::bad_alloc&) {
      constexpr std::string_view sentence = "attmirror: out of memory: unfinished files may be left\n";
      if (::write(STDERR_FILENO, sentence.data(), sentence.size()) < 0) ::_exit(environment);
      ::_exit(environment);
    } catch (...) {
    }
  }
  std::abort();
}

int run_command_line(CommandLine line, int argc, char** argv) {
  const auto words = std::span<char* const>(argv, static_cast<std::size_t>(argc)).subspan(argc > 0 ? 1 : 0);
  const bool json = wants_json(words);
  // A file above the limit of `ulimit -f` shall be a sentence, like a full disk, and not a sudden death.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    std::vector<std::string> asked = with_help_as_option(words);
    std::vector<char*> arguments{argc > 0 ? argv[0] : line.name.data()};
    for (std::string& word : asked) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int count = static_cast<int>(arguments.size()) - 1;
    if (line.before_parsing) line.before_parsing(std::span<char* const>(arguments).subspan(1, asked.size()));
    return run(line, count, arguments.data(), json);
  } catch (const Error& error) {
    return fail(line.spelling ? error.message(line.spelling) : error.what(),
                error.kind() == ErrorKind::bad_input ? bad_input_exit : environment, json, place_of(error));
  } catch (const std::bad_alloc&) {
    return fail("out of memory", environment, json);
  } catch (const std::system_error& error) {  // of std::filesystem, too
    return fail(error.what(), environment, json);
  } catch (const std::exception& error) {
    return fail(fmt::format("internal error: {}", error.what()), environment, json);
  }
}

}  // namespace attmirror::cli

#include "cli/command_line.hpp"

#include "cli/console.hpp"
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

// CLI11's messages in our form: "the following argument was not expected: --foo (see attmirror train
// --help)".
std::string parse_error_text(const CLI::ParseError& error, const CLI::App& app) {
  std::string text = error.what();
  if (const std::size_t line_end = text.find('\n'); line_end != std::string::npos) text.resize(line_end);
  constexpr std::string_view flag_value = " was given a disallowed flag override";
  constexpr std::string_view twice = ": At Most 1 required but received ";
  if (text.ends_with(flag_value))
    text.replace(text.size() - flag_value.size(), flag_value.size(), " takes no value");
  if (const std::size_t at = text.find(twice); at != std::string::npos)
    text = fmt::format("{} is given {} times: expected once", text.substr(0, at),
                       text.substr(at + twice.size()));
  if (!text.empty() && text.front() != '-') text.front() = static_cast<char>(std::tolower(text.front()));
  const auto chosen = app.get_subcommands();
  return fmt::format("{} (see {} {}--help)", text, app.get_name(),
                     chosen.empty() ? "" : chosen.front()->get_name() + " ");
}

// CLI11 would answer an unknown subcommand with "a subcommand is required".
void check_subcommand(std::span<char* const> words, std::span<const Subcommand> commands) {
  const auto word = std::ranges::find_if(words, [](std::string_view text) { return !text.starts_with('-'); });
  if (word == words.end()) return;
  std::vector<std::string> names;
  for (const Subcommand& command : commands) names.push_back(command.app->get_name());
  if (std::ranges::find(names, *word) == names.end())
    throw bad_input(fmt::format("\"{}\" is no subcommand: expected {}", *word, fmt::join(names, ", ")));
}

int run(const CommandLine& line, int argc, char** argv, bool json) {
  CLI::App app(line.description, line.name);
  bool json_flag = false;
  app.formatter(help_formatter());
  app.set_help_flag("-h,--help", "this text");
  app.set_version_flag("--version", "", "version, commit, instruction set in use and components");
  app.add_flag("--json", json_flag, "one JSON object on stdout");
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done, 1 ran but the answer is negative, 2 bad input, 3 the environment failed,\n"
      "130 Ctrl-C, 143 SIGTERM and 129 SIGHUP (checkpoint kept).\n\n"
      "Example:\n" +
      line.example);
  const std::vector<Subcommand> commands = line.subcommands(app);

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
  note(message);
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

int run_command_line(const CommandLine& line, int argc, char** argv) {
  const auto words = std::span<char* const>(argv, static_cast<std::size_t>(argc)).subspan(argc > 0 ? 1 : 0);
  const bool json = wants_json(words);
  // A file above the limit of `ulimit -f` shall be a sentence, like a full disk, and not a sudden death.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    if (line.before_parsing) line.before_parsing(words);
    return run(line, argc, argv, json);
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

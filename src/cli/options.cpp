#include "cli/options.hpp"

#include "cli/console.hpp"
#include "cli/papers_cited.hpp"
#include "cli/screen.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/thread_pool.hpp>

#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

// "-o,--output" is "output" in messages; "data" is "data".
std::string spoken_name(const std::string& name) {
  const std::size_t comma = name.rfind(',');
  const std::string last = comma == std::string::npos ? name : name.substr(comma + 1);
  return last.substr(std::min(last.find_first_not_of('-'), last.size()));
}

// An unset variable of a script must not pass for an option that was not given.
std::string not_empty(const std::string& name, const std::string& text, const std::string& type) {
  if (text.empty()) throw bad_value(name, text, type);
  return text;
}

template <class T, class Parser>
CLI::Option* add_parsed(CLI::App& app, const std::string& name, T& value, const std::string& description,
                        const char* type, Parser parse) {
  const std::string spoken = spoken_name(name);
  CLI::Option* option = app.add_option_function<std::string>(
      name, [&value, spoken, parse](const std::string& text) { value = parse(spoken, text); }, description);
  return option->type_name(type)->default_str(fmt::format("{}", value));
}

class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(34); }

  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text;
    if (option->get_type_size() != 0 && !option->get_type_name().empty())
      text = " " + option->get_type_name();
    return text;
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = option->get_description();
    if (option->get_required()) text += " [required]";
    if (!option->get_default_str().empty()) text += fmt::format(" [{}]", option->get_default_str());
    return wrapped(text);
  }

 private:
  // Lines of a width that fits a terminal; CLI11 indents those after the first.
  static std::string wrapped(const std::string& text) {
    constexpr std::size_t width = 76;
    std::string result;
    std::size_t line = 0;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find(' ', begin), text.size());
      const bool breaks = line > 0 && line + 1 + end - begin > width;
      if (line > 0) result += breaks ? '\n' : ' ';
      result.append(text, begin, end - begin);
      line = (breaks || line == 0 ? 0 : line + 1) + end - begin;
      begin = end + 1;
    }
    return result;
  }
};

}  // namespace

double parse_number(std::string_view name, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size() ||
      std::isspace(static_cast<unsigned char>(text.front())))
    throw bad_value(name, text, "a number");
  return value;
}

std::int64_t parse_count(std::string_view name, const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size()) return value;
  char* number_end = nullptr;
  const double number = std::strtod(text.c_str(), &number_end);
  const bool whole = !text.empty() && number_end == text.c_str() + text.size() &&
                     std::trunc(number) == number && std::abs(number) < 0x1p53;
  if (!whole) throw bad_value(name, text, "a whole number");
  return static_cast<std::int64_t>(number);
}

std::uint64_t parse_seed(std::string_view name, const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw bad_value(name, text, "a whole number from 0 to 18446744073709551615");
  return value;
}

CLI::Option* add_number(CLI::App& app, const std::string& name, double& value,
                        const std::string& description) {
  return add_parsed(app, name, value, description, "NUMBER", parse_number);
}

CLI::Option* add_count(CLI::App& app, const std::string& name, std::int64_t& value,
                       const std::string& description) {
  return add_parsed(app, name, value, description, "COUNT", parse_count);
}

CLI::Option* add_seed(CLI::App& app, const std::string& name, std::uint64_t& value,
                      const std::string& description) {
  return add_parsed(app, name, value, description, "SEED", parse_seed);
}

CLI::Option* add_text(CLI::App& app, const std::string& name, std::string& value, const std::string& type,
                      const std::string& description) {
  const std::string spoken = spoken_name(name), choices = type;
  return app
      .add_option_function<std::string>(
          name,
          [&value, spoken, choices](const std::string& text) { value = not_empty(spoken, text, choices); },
          description)
      ->type_name(type)
      ->default_str(value);
}

CLI::Option* add_path(CLI::App& app, const std::string& name, std::filesystem::path& value,
                      const std::string& type, const std::string& description) {
  const std::string spoken = spoken_name(name), kind = type;
  return app
      .add_option_function<std::string>(
          name, [&value, spoken, kind](const std::string& text) { value = not_empty(spoken, text, kind); },
          description)
      ->type_name(type);
}

CLI::Option* add_flag(CLI::App& app, const std::string& name, bool& value, const std::string& description) {
  return app.add_flag(name, value, description)->disable_flag_override();
}

void add_run_output(CLI::App& app, std::filesystem::path& folder) {
  add_path(app, "-o,--output", folder, "FOLDER",
           "folder to keep the run in; without it the result is only printed");
}

void add_checkpoint_interval(CLI::App& app, double& seconds, const std::string& group) {
  add_number(app, "--checkpoint-every", seconds,
             "seconds between checkpoints; more where writing one takes over a tenth of that")
      ->group(group);
}

void add_existing_run_flags(CLI::App& app, bool& resume, bool& overwrite, const std::string& group) {
  add_flag(app, "--resume", resume,
           "continue the run in the folder, with the same bits as if it had never been stopped")
      ->group(group);
  add_flag(app, "--overwrite", overwrite, "replace the run in the folder")->group(group);
}

void add_common_options(CLI::App& app, CommonOptions& options) {
  const std::string group = "Common options";
  app.formatter(help_formatter());
  app.set_help_flag("-h,--help", "print this help")->group(group);
  add_flag(app, "--json", options.json, "print one JSON object to standard output, also after an error")
      ->group(group);
  add_flag(app, "--quiet", options.quiet,
           "print no progress, notes or summaries; errors and the answers you asked for remain")
      ->group(group);
  add_count(app, "--threads", options.threads,
            "number of threads, 0 for one per core; results do not depend on it")
      ->group(group);
  add_text(app, "--isa", options.isa, "sse2|avx2|avx512",
           "instruction set to use instead of the best one of this machine")
      ->group(group);
}

void apply(const CommonOptions& options) {
  if (options.threads < 0 || options.threads > ThreadPool::max_threads)
    throw bad_input(fmt::format("threads is {}: expected 0 to {}", options.threads, ThreadPool::max_threads));
  if (!options.isa.empty()) set_isa(parse_isa(options.isa));
  if (options.quiet) silence_warnings();
}

std::string help_text(const CLI::App& app) {
  std::string text = app.help();
  for (std::size_t at; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
  if (!text.ends_with('\n')) text += '\n';
  const NamedTexts papers = papers_cited(text);
  if (!papers.empty()) text += "\nPapers:\n";
  for (const auto& [name, title] : papers) text += wrapped(fmt::format("{}: {}", name, title), "  ", 100);
  return text;
}

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

}  // namespace attmirror::cli

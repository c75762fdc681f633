// Options as the subcommands declare them: each with its name, its default and a sentence, read by our own
// parsers, so that a wrong value is answered in the same words as everywhere ("p is abc: expected a number").
//
// The type name of an option says what it takes, in help and for the completion of shells: NUMBER, COUNT,
// FILE, FOLDER, or choices "md|gd", in which parts in capitals stand for something of the user's
// ("normal:STD").
#pragma once

#include <attmirror/base/isa.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

namespace attmirror::cli {

// What every subcommand takes.
struct CommonOptions {
  bool json = false, quiet = false;
  std::int64_t threads = 1;  // 0 = as many as the machine has
  std::string isa;           // empty: the best, or what ATTMIRROR_ISA says
};

void add_common_options(CLI::App& app, CommonOptions& options);

// Checks the common options and puts --isa into force.
void apply(const CommonOptions& options);

// The value before parsing is the default that help shows. The name in messages is that of the option without dashes.
CLI::Option* add_number(CLI::App& app, const std::string& name, double& value,
                        const std::string& description);
CLI::Option* add_count(CLI::App& app, const std::string& name, std::int64_t& value,
                       const std::string& description);
CLI::Option* add_seed(CLI::App& app, const std::string& name, std::uint64_t& value,
                      const std::string& description);
CLI::Option* add_text(CLI::App& app, const std::string& name, std::string& value, const std::string& type,
                      const std::string& description);
CLI::Option* add_path(CLI::App& app, const std::string& name, std::filesystem::path& value,
                      const std::string& type, const std::string& description);

// On when it is there; --name=VALUE is refused.
CLI::Option* add_flag(CLI::App& app, const std::string& name, bool& value, const std::string& description);

// What commands take that keep a run in a folder: -o where it may be left out; --checkpoint-every; --resume and
// --overwrite.
void add_run_output(CLI::App& app, std::filesystem::path& folder);
void add_checkpoint_interval(CLI::App& app, double& seconds, const std::string& group);
void add_existing_run_flags(CLI::App& app, bool& resume, bool& overwrite,
                            const std::string& group = "Options");

// The value of an option, if it was given: where a default that was not asked for is no word.
template <class T>
std::optional<T> if_given(const CLI::App& app, const char* option, const T& value) {
  return app.count(option) > 0 ? std::optional(value) : std::nullopt;
}

// The parsers. `name` is what messages call the value; all throw Error (bad input).
double parse_number(std::string_view name, const std::string& text);       // anything strtod reads to its end
std::int64_t parse_count(std::string_view name, const std::string& text);  // "20000", "2e4"
std::uint64_t parse_seed(std::string_view name, const std::string& text);

// A subcommand: how to run it once its options are read.
struct Subcommand {
  CLI::App* app = nullptr;
  CommonOptions* common = nullptr;
  std::function<int()> run;  // returns the exit code
};

Subcommand add_generate(CLI::App& parent);
Subcommand add_train(CLI::App& parent);
Subcommand add_margin(CLI::App& parent);
Subcommand add_compare(CLI::App& parent);
Subcommand add_path_command(CLI::App& parent);
Subcommand add_next_token(CLI::App& parent);
Subcommand add_sweep(CLI::App& parent);
Subcommand add_which_margin(CLI::App& parent);
Subcommand add_attractors(CLI::App& parent);
Subcommand add_study(CLI::App& parent);
Subcommand add_reproduce(CLI::App& parent);
Subcommand add_report(CLI::App& parent);
Subcommand add_info(CLI::App& parent);
Subcommand add_completion(CLI::App& parent);
Subcommand add_man(CLI::App& parent);

// The layout of --help: the default at the end of each sentence.
std::shared_ptr<CLI::FormatterBase> help_formatter();
std::string help_text(const CLI::App& app);

}  // namespace attmirror::cli

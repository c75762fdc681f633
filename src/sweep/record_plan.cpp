#include "sweep/record_plan.hpp"

#include "base/json.hpp"
#include "sweep/measure.hpp"
#include "sweep/settings.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

class RecordReader {
 public:
  RecordReader(const TomlTable& file, const std::string& name) : name_(name) {
    const auto found = std::ranges::find(file, "record", &TomlEntry::key);
    if (found == file.end()) return;
    table_ = found->value.as<TomlTable>();
    if (!table_)
      throw bad_input(fmt::format("{}: record is {}: expected a table", name_, to_text(found->value)));
  }

  RecordPlan read() {
    if (!table_) return {};
    RecordPlan record;
    static const std::vector<std::string_view> keys{"steps",     "curves",         "margins", "solutions",
                                                    "saturated", "rank_tolerance", "keep"};
    for (const auto& [key, value] : *table_) {
      if (key == "steps")
        record.schedule = read_steps(value);
      else if (key == "curves")
        record.curves = read_words(key, value);
      else if (key == "margins")
        record.margins = read_margins(value);
      else if (key == "solutions")
        record.solutions = read_solutions(value);
      else if (key == "saturated")
        record.saturated = read_number(key, value, 0, 1);
      else if (key == "rank_tolerance")
        record.rank_tolerance = read_number(key, value, 0, 1);
      else if (key == "keep")
        read_keep(value, record);
      else
        throw bad_input(fmt::format("{}: [record] has no key {}{}", name_, in_double_quotes(key),
                                    did_you_mean(key, keys)));
    }
    check_curves(record);
    check_schedule(record);
    return record;
  }

 private:
  [[noreturn]] void refuse(std::string_view key, const std::string& why) const {
    throw bad_input(fmt::format("{}: [record] {}: {}", name_, key, why));
  }

  const TomlValue* find(std::string_view key) const {
    const auto found = std::ranges::find(*table_, key, &TomlEntry::key);
    return found == table_->end() ? nullptr : &found->value;
  }

  template <class Parse>
  auto parsed(std::string_view key, Parse parse) const {
    try {
      return parse();
    } catch (const Error& error) {
      refuse(key, error.what());
    }
  }

  RecordSchedule read_steps(const TomlValue& value) const {
    if (const auto* text = value.as<std::string>())
      return parsed("steps", [&] { return RecordSchedule::parse(*text); });
    const auto* array = value.as<TomlArray>();
    if (!array) refuse("steps", to_text(value) + " is neither a list of steps nor a text such as \"log\"");
    std::vector<std::int64_t> steps;
    for (const TomlValue& element : *array) {
      const auto* step = element.as<std::int64_t>();
      if (!step || *step < 0) refuse("steps", to_text(element) + " is not a step: expected 0 or more");
      steps.push_back(*step);
    }
    if (steps.empty()) refuse("steps", "the list is empty: expected steps, or \"none\"");
    return RecordSchedule::at(std::move(steps));
  }

  const TomlArray& array_of(std::string_view key, const TomlValue& value) const {
    if (const auto* array = value.as<TomlArray>()) return *array;
    refuse(key, to_text(value) + " is not a list");
  }

  // Texts, none of them twice.
  std::vector<std::string> read_words(std::string_view key, const TomlValue& value) const {
    std::vector<std::string> words;
    for (const TomlValue& element : array_of(key, value)) {
      const auto* word = element.as<std::string>();
      if (!word) refuse(key, to_text(element) + " is not a text");
      if (std::ranges::find(words, *word) != words.end())
        refuse(key, in_double_quotes(*word) + " is given twice");
      words.push_back(*word);
    }
    return words;
  }

  // "nuclear", "1.75" or 1.75.
  Norm read_norm(std::string_view key, const TomlValue& value) const {
    std::string text;
    if (const auto* word = value.as<std::string>())
      text = *word;
    else if (const auto* integer = value.as<std::int64_t>())
      text = fmt::format("{}", *integer);
    else if (const auto* real = value.as<double>())
      text = fmt::format("{}", *real);
    else
      refuse(key, to_text(value) + " is not a norm");
    return parsed(key, [&] { return parse_norm(text); });
  }

  std::vector<Norm> read_margins(const TomlValue& value) const {
    std::vector<Norm> norms;
    for (const TomlValue& element : array_of("margins", value)) {
      norms.push_back(read_norm("margins", element));
      if (std::ranges::count(norms, norms.back()) > 1)
        refuse("margins", fmt::format("the norm {} is given twice", to_string(norms.back())));
    }
    return norms;
  }

  double read_number(std::string_view key, const TomlValue& value, double least, double most) const {
    double number = NAN;
    if (const auto* integer = value.as<std::int64_t>())
      number = static_cast<double>(*integer);
    else if (const auto* real = value.as<double>())
      number = *real;
    else
      refuse(key, to_text(value) + " is not a number");
    if (!(number >= least && number <= most))
      refuse(key, fmt::format("{} is not from {} to {}", number, least, most));
    return number + 0.0;
  }

  void read_keep(const TomlValue& value, RecordPlan& record) const {
    for (const std::string& word : read_words("keep", value)) {
      if (word == "weights")
        record.keep_weights = true;
      else if (word == "solutions")
        record.keep_solutions = true;
      else if (word == "path")
        record.keep_path = true;
      else
        refuse("keep", in_double_quotes(word) + ": expected weights, solutions or path");
    }
    if (record.keep_solutions && !find("solutions"))
      refuse("keep", "\"solutions\" is given, but no solutions are requested");
  }

  // 2 is l2, 1.75 is l1.75, inf is linf, schatten:1.5 is schatten1.5.
  static std::string default_name(const std::optional<Norm>& norm) {
    if (!norm) return "own";
    std::string text = to_string(*norm);
    if (norm->is_entrywise()) return fmt::format("l{}", text);
    std::erase(text, ':');
    return text;
  }

  // The norm of a solution: "own" is that of the run's geometry.
  std::optional<Norm> solution_norm(const TomlValue& value) const {
    if (const auto* word = value.as<std::string>(); word && *word == "own") return std::nullopt;
    return read_norm("solutions", value);
  }

  std::string word_of(const std::string& key, const TomlValue& value) const {
    if (const auto* word = value.as<std::string>()) return *word;
    refuse("solutions", fmt::format("{} is {}: expected a text", key, to_text(value)));
  }

  SolutionPlan read_solution_table(const TomlTable& table) const {
    static const std::vector<std::string_view> keys{"name", "norm", "tokens", "problem"};
    SolutionPlan solution;
    bool has_norm = false;
    for (const auto& [key, value] : table) {
      if (key == "name") {
        solution.name = word_of(key, value);
        if (solution.name.empty()) refuse("solutions", "a name is empty");
      } else if (key == "norm") {
        solution.norm = solution_norm(value);
        has_norm = true;
      } else if (key == "tokens") {
        const std::string word = word_of(key, value);
        if (word != "selected" && word != "optimal")
          refuse("solutions",
                 fmt::format("tokens is {}: expected selected or optimal", in_double_quotes(word)));
        if (word == "optimal") solution.tokens = SolutionPlan::Tokens::optimal;
      } else if (key == "problem") {
        const std::string word = word_of(key, value);
        if (word != "attention" && word != "decoder")
          refuse("solutions",
                 fmt::format("problem is {}: expected attention or decoder", in_double_quotes(word)));
        if (word == "decoder") solution.problem = SolutionPlan::Problem::decoder;
      } else {
        refuse("solutions",
               fmt::format("a solution has no {}{}", in_double_quotes(key), did_you_mean(key, keys)));
      }
    }
    if (!has_norm) refuse("solutions", "a solution has no norm: expected \"own\" or a norm");
    if (solution.name.empty()) solution.name = default_name(solution.norm);
    return solution;
  }

  void check_name(const std::string& name) const {
    const bool fits = std::ranges::all_of(name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
             c == '.';
    });
    if (!fits || name.size() > 64)
      refuse("solutions", fmt::format("name {}: expected at most 64 letters, digits, dots and underscores",
                                      in_double_quotes(name)));
    for (const char* taken : {"margin", "path", "curve"})
      if (name == taken) refuse("solutions", fmt::format("name \"{}\" is taken: expected another", name));
  }

  std::vector<SolutionPlan> read_solutions(const TomlValue& value) const {
    std::vector<SolutionPlan> solutions;
    for (const TomlValue& element : array_of("solutions", value)) {
      if (const auto* table = element.as<TomlTable>()) {
        solutions.push_back(read_solution_table(*table));
      } else {
        const std::optional<Norm> norm = solution_norm(element);
        solutions.push_back({.name = default_name(norm), .norm = norm});
      }
      const std::string& name = solutions.back().name;
      check_name(name);
      if (std::ranges::count(solutions, name, &SolutionPlan::name) > 1)
        refuse("solutions",
               fmt::format("the name \"{}\" is given twice: give one of the solutions another name", name));
    }
    return solutions;
  }

  void check_curves(const RecordPlan& record) const {
    std::vector<std::string> known{"loss", "max_softmax", "norm"};
    for (const SolutionPlan& solution : record.solutions)
      for (const char* curve : {".bregman", ".correlation"}) known.push_back(solution.name + curve);
    for (const Norm& norm : record.margins) known.push_back(margin_name(norm));
    for (const std::string& curve : record.curves)
      if (std::ranges::find(known, curve) == known.end())
        refuse("curves",
               fmt::format("{}: expected one of {}; others need a solution or a margin of that name",
                           in_double_quotes(curve), fmt::join(known, ", ")));
  }

  void check_schedule(RecordPlan& record) const {
    const bool needed = !record.curves.empty() || record.keep_path;
    if (!find("steps")) {
      if (needed) record.schedule = RecordSchedule::log_spaced();
      return;
    }
    const bool none = record.schedule.to_string() == RecordSchedule::none().to_string();
    if (needed && none) refuse("steps", "\"none\", but curves or the path are requested");
    if (!needed && !none) refuse("steps", "given, but neither curves nor the path are requested");
  }

  const std::string& name_;
  const TomlTable* table_ = nullptr;
};

}  // namespace

RecordPlan read_record(const TomlTable& file, const std::string& name) {
  return RecordReader(file, name).read();
}

Norm norm_of(const SolutionPlan& solution, const Optimizer& optimizer) {
  if (solution.norm) return *solution.norm;
  if (const std::optional<Norm> own = geometry_norm(optimizer)) return *own;
  throw bad_input(
      fmt::format("solution {} is in the norm \"own\", but theory names no norm whose margin {} maximizes: "
                  "expected a norm such as \"2\"",
                  solution.name, method_name(optimizer)));
}

std::string to_text(const RecordPlan& record) {
  Json margins = Json::array(), solutions = Json::array();
  for (const Norm& norm : record.margins) margins.push_back(to_string(norm));
  for (const SolutionPlan& solution : record.solutions)
    solutions.push_back(
        {{"name", solution.name},
         {"norm", solution.norm ? to_string(*solution.norm) : "own"},
         {"tokens", solution.tokens == SolutionPlan::Tokens::optimal ? "optimal" : "selected"},
         {"problem", solution.problem == SolutionPlan::Problem::decoder ? "decoder" : "attention"}});
  Json keep = Json::array();
  if (record.keep_weights) keep.push_back("weights");
  if (record.keep_solutions) keep.push_back("solutions");
  if (record.keep_path) keep.push_back("path");
  return dump(Json{{"steps", record.schedule.to_string()},
                   {"curves", record.curves},
                   {"margins", margins},
                   {"solutions", solutions},
                   {"saturated", record.saturated},
                   {"rank_tolerance", record.rank_tolerance},
                   {"keep", keep}});
}

}  // namespace attmirror

#include "descent/optimizer_words.hpp"

#include "base/words.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

// A word of the user's in a message.
std::string user_word(std::string_view word) { return fmt::format("\"{}\"", one_line(word)); }

// The field that stands after a method's colon; empty: the method takes none.
std::string_view field_after_colon(std::string_view method) {
  if (method == "md") return "p";
  if (method == "steepest") return "norm";
  if (method == "adam") return "beta2";
  return {};
}

double number_after_colon(const std::string& word, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size() || std::isspace(static_cast<unsigned char>(text[0])))
    throw bad_input(fmt::format("optimizer {}: expected a number after the colon", user_word(word)));
  return value;
}

const OptimizerMethod& method_of_word(const std::string& word, const std::string& name) {
  std::vector<std::string_view> names;
  for (const OptimizerMethod& method : optimizer_methods()) {
    if (!method.preset) continue;
    if (method.name == name) return method;
    names.push_back(method.name);
  }
  throw bad_input(fmt::format("unknown optimizer {}: expected one of {}{}", user_word(word),
                              fmt::join(names, ", "), did_you_mean(name, names)));
}

std::string title_of(const OptimizerMethod& method, const Optimizer& optimizer) {
  if (method.name == "md") return norm_symbol(Norm::l(geometry_p(optimizer))) + " mirror descent";
  if (method.name == "steepest")
    return fmt::format("{} steepest descent", norm_symbol(std::get<SteepestDescent>(optimizer).norm));
  if (method.name == "adam") return fmt::format("Adam, β₂ = {}", std::get<Adam>(optimizer).beta2);
  return std::string(method.title);
}

NamedOptimizer make_named(const std::string& word, const OptimizerMethod& method, const Given& more) {
  NamedOptimizer made{
      .word = word, .title = {}, .given = {{"optimizer", std::string(method.name)}}, .optimizer = {}};
  for (const auto& [name, value] : more) made.given.put(name, value);
  if (method.name == "md" || method.name == "gd") made.given.put("normalized", true);
  try {
    made.optimizer = make_optimizer(made.given);
  } catch (const Error& error) {
    throw error.in(fmt::format("optimizer {}", user_word(word)));
  }
  made.title = title_of(method, made.optimizer);
  return made;
}

NamedOptimizer named_with_value(const std::string& word, const OptimizerMethod& method,
                                const std::string& value) {
  const std::string_view field = field_after_colon(method.name);
  if (field.empty())
    throw bad_input(
        fmt::format("optimizer {}: {} takes nothing after a colon; md:P, steepest:NORM and adam:BETA2 do",
                    user_word(word), method.name));
  if (field == "norm") return make_named(word, method, {{"norm", value}});
  return make_named(word, method, {{field, number_after_colon(word, value)}});
}

}  // namespace

std::vector<NamedOptimizer> parse_optimizer_words(std::span<const std::string> words,
                                                  std::span<const double> p) {
  std::vector<NamedOptimizer> all;
  bool p_used = false;
  const auto add = [&all](NamedOptimizer one) {
    const auto same =
        std::ranges::find_if(all, [text = to_string(one.optimizer)](const NamedOptimizer& other) {
          return to_string(other.optimizer) == text;
        });
    if (same != all.end())
      throw bad_input(fmt::format("optimizer {} is given twice{}", user_word(one.word),
                                  same->word == one.word ? "" : fmt::format(": it is {}", same->word)));
    all.push_back(std::move(one));
  };
  for (const std::string& word : words) {
    const std::size_t colon = word.find(':');
    const std::string name = word.substr(0, colon);
    const OptimizerMethod& method = method_of_word(word, name);
    if (colon != std::string::npos) {
      add(named_with_value(word, method, word.substr(colon + 1)));
    } else if (method.name == "md" && !p.empty()) {
      p_used = true;
      for (const double each : p) add(make_named(fmt::format("md:{}", each), method, {{"p", each}}));
    } else if (method.name == "steepest") {
      throw bad_input("optimizer \"steepest\": expected its norm after a colon, as in steepest:nuclear");
    } else {
      add(make_named(word, method, {}));
    }
  }
  if (!p.empty() && !p_used)
    throw bad_input(fmt::format("{} is given, but no optimizer takes it: only md without a p of its own does",
                                field_name("p")));
  return all;
}

std::string norm_symbol(const Norm& norm) {
  if (norm == Norm::nuclear()) return "nuclear";
  if (norm == Norm::spectral()) return "spectral";
  if (!norm.is_entrywise()) return fmt::format("Schatten-{}", norm.p());
  return norm.p() == infinity ? "ℓ∞" : fmt::format("ℓ{}", norm.p());
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t from = 0; from <= text.size() && !text.empty();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    words.emplace_back(text.substr(from, comma - from));
    from = comma + 1;
  }
  return words;
}

std::vector<Norm> parse_norm_words(std::span<const std::string> words) {
  static const std::vector<std::string_view> names{"frobenius", "nuclear", "spectral", "schatten:1.5", "inf"};
  std::vector<Norm> norms;
  for (const std::string& word : words) {
    std::optional<Norm> norm;
    try {
      norm = parse_norm(word);
    } catch (const Error& error) {
      throw bad_input(fmt::format("{}{}", error.what(), did_you_mean(word, names)));
    }
    if (std::ranges::find(norms, *norm) != norms.end())
      throw bad_input(fmt::format("norm {} is given twice", user_word(word)));
    norms.push_back(*norm);
  }
  return norms;
}

}  // namespace attmirror

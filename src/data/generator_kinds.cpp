#include "base/words.hpp"
#include "data/generator_fields.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/generators.hpp>

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

template <class T>
void take(T& field, const std::optional<T>& given) {
  if (given) field = *given;
}

// The words of a choice.
template <class T>
struct Choice {
  std::string_view word;
  T value;
};

template <class T, std::size_t n>
using Choices = std::array<Choice<T>, n>;

constexpr Choices<SphereData::QueryFrom, 4> query_from_words{{{"draw", SphereData::QueryFrom::draw},
                                                              {"first", SphereData::QueryFrom::first_token},
                                                              {"last", SphereData::QueryFrom::last_token},
                                                              {"all", SphereData::QueryFrom::all_tokens}}};
constexpr Choices<SingleInputData::Scores, 2> scores_words{
    {{"equal", SingleInputData::Scores::equal}, {"unequal", SingleInputData::Scores::unequal}}};
constexpr Choices<JointPromptData::LabelMargin, 2> label_margin_words{
    {{"tight", JointPromptData::LabelMargin::tight}, {"slack", JointPromptData::LabelMargin::slack}}};

template <class T, std::size_t n>
void take_choice(T& field, const char* name, const std::optional<std::string>& given,
                 const Choices<T, n>& choices) {
  if (!given) return;
  std::vector<std::string_view> words;
  for (const auto& [word, value] : choices) {
    if (word == *given) {
      field = value;
      return;
    }
    words.push_back(word);
  }
  throw bad_value(name, *given, expected_choice(*given, words));
}

template <class T, std::size_t n>
std::string word_of(T value, const Choices<T, n>& choices) {
  return std::string(std::ranges::find(choices, value, &Choice<T>::value)->word);
}

// From settings to the options of each kind, and back. The kinds that have the same fields share the code.
template <class Options>
Options options_of(const GeneratorSettings& given) {
  Options options;
  if constexpr (requires { options.samples; }) {
    take(options.samples, given.samples);
    take(options.tokens, given.tokens);
    take(options.dim, given.dim);
  }
  if constexpr (requires { options.seed; }) take(options.seed, given.seed);
  if constexpr (requires { options.query_from; }) {
    take(options.queries, given.queries);
    if (given.min_tokens && *given.min_tokens != 0) options.min_tokens = *given.min_tokens;
    take_choice(options.query_from, "query_from", given.query_from, query_from_words);
  }
  if constexpr (requires { options.scores; })
    take_choice(options.scores, "scores", given.scores, scores_words);
  if constexpr (requires { options.label_margin; })
    take_choice(options.label_margin, "label_margin", given.label_margin, label_margin_words);
  if constexpr (requires { options.score; }) take(options.score, given.score);
  return options;
}

template <class Options>
GeneratorSettings resolve(const GeneratorSettings& given) {
  const Options options = options_of<Options>(given);
  if constexpr (requires { options.validate(); }) options.validate();
  GeneratorSettings all;
  if constexpr (requires { options.samples; }) {
    all.samples = options.samples;
    all.tokens = options.tokens;
    all.dim = options.dim;
  }
  if constexpr (requires { options.seed; }) all.seed = options.seed;
  if constexpr (requires { options.query_from; }) {
    all.queries = options.queries;
    all.min_tokens = options.min_tokens.value_or(0);
    all.query_from = word_of(options.query_from, query_from_words);
  }
  if constexpr (requires { options.scores; }) all.scores = word_of(options.scores, scores_words);
  if constexpr (requires { options.label_margin; })
    all.label_margin = word_of(options.label_margin, label_margin_words);
  if constexpr (requires { options.score; }) all.score = options.score;
  return all;
}

template <class Options>
Dataset make(const GeneratorSettings& given) {
  return generate(options_of<Options>(given));
}

template <class Options, std::int64_t fixed_dim, bool has_decoder>
DataOutline outline(const GeneratorSettings& given) {
  const Options options = options_of<Options>(given);
  DataOutline result{.dim = fixed_dim, .has_decoder = has_decoder};
  if constexpr (requires { options.dim; }) result.dim = options.dim;
  if constexpr (requires { options.query_from; })
    result.queries_are_tokens = options.query_from != SphereData::QueryFrom::draw;
  result.has_head_weights = std::is_same_v<Options, ReluHeadData>;
  return result;
}

// `fixed_dim` is that of kinds whose dimension cannot be set.
template <class Options, std::int64_t fixed_dim = 1, bool has_decoder = true>
GeneratorKind kind(std::string name, std::string description, std::vector<std::string> settings) {
  return {.name = std::move(name),
          .description = std::move(description),
          .settings = std::move(settings),
          .score_blind = std::is_same_v<Options, SingleInputData> ||
                         std::is_same_v<Options, MultiInputData> ||
                         std::is_same_v<Options, LossComparisonData>,
          .resolve = resolve<Options>,
          .make = make<Options>,
          .outline = outline<Options, fixed_dim, has_decoder>};
}

}  // namespace

const std::vector<GeneratorKind>& generator_kinds() {
  static const std::vector<GeneratorKind> all = {
      kind<SphereData>("sphere", "tokens, queries and v on the unit sphere (P1, P3)",
                       {"samples", "tokens", "dim", "seed", "min_tokens", "queries", "query_from"}),
      kind<JointData, 2, false>("joint", "two sequences for training W and v together (P1)", {}),
      kind<SingleInputData, 3>("single-input", "one sequence, for a prompt (P2)", {"scores"}),
      kind<MultiInputData, 3>("multi-input", "three sequences of seven tokens, for a prompt (P2)", {"seed"}),
      kind<JointPromptData, 2, false>(
          "joint-prompt", "three sequences for training a prompt and v together (P2)", {"label_margin"}),
      kind<LossComparisonData, 3>("loss-comparison",
                                  "two sequences on which losses differ, for a prompt (P2)", {"score"}),
      kind<Visualization1Data, 2>("visualization1",
                                  "two sequences in the plane, nuclear solution of rank 1 (P3)", {"seed"}),
      kind<Visualization2Data, 2>("visualization2",
                                  "two sequences in the plane, nuclear solution of rank 2 (P3)", {"seed"}),
      kind<ReluHeadData, 1, false>("relu", "unit tokens with the weights V of a ReLU head (P3)",
                                   {"samples", "tokens", "dim", "seed"}),
      kind<OrthonormalData>("orthonormal", "orthonormal tokens, for a quadratic head (P3)",
                            {"samples", "tokens", "dim", "seed"}),
  };
  return all;
}

const Fields<GeneratorSettings>& generator_fields() {
  using G = GeneratorSettings;
  static const Fields<G> fields{
      field<&G::samples>({.name = "samples", .help = "sequences n", .range = Range::from(1)}),
      field<&G::tokens>({.name = "tokens", .help = "tokens T of each sequence", .range = Range::from(1)}),
      field<&G::dim>({.name = "dim", .help = "dimension d of a token", .range = Range::from(1)}),
      field<&G::seed>(
          {.name = "seed", .help = "seed of torch's random generator; only its lower 32 bits count"}),
      field<&G::min_tokens>(
          {.name = "min_tokens",
           .help = "draw the lengths of sequences from this to the number of tokens; 0: all equal",
           .range = Range::from(0)}),
      field<&G::queries>(
          {.name = "queries", .help = "queries drawn for each sequence", .range = Range::from(1)}),
      field<&G::query_from>(
          {.name = "query_from",
           .help =
               "where the queries come from: drawn at random, or (self-attention) the first, the last or all tokens of the sequence",
           .choices = "draw|first|last|all"}),
      field<&G::scores>({.name = "scores",
                         .help = "single-input: whether the tokens that are not optimal have equal scores",
                         .choices = "equal|unequal"}),
      field<&G::label_margin>(
          {.name = "label_margin",
           .help = "joint-prompt: tight makes all inputs support vectors of the labels' max-margin problem",
           .choices = "tight|slack"}),
      field<&G::score>({.name = "score",
                        .help = "loss-comparison: score of the first sequence's best token",
                        .range = Range::above(0)}),
  };
  return fields;
}

std::string generator_default(const FieldInfo& info) {
  std::vector<std::pair<std::string_view, FieldValue>> values;
  for (const GeneratorKind& kind : generator_kinds())
    for (const auto& field : generator_fields())
      if (field.name == info.name) values.emplace_back(kind.name, field.read(kind.resolve({})));
  return grouped_defaults(values);
}

const GeneratorKind& find_generator(std::string_view name) {
  std::vector<std::string_view> names;
  for (const GeneratorKind& kind : generator_kinds()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  throw bad_value("kind", name, expected_choice(name, names));
}

bool GeneratorKind::takes(std::string_view setting) const {
  return std::ranges::find(settings, setting) != settings.end();
}

GeneratorSettings resolved(const GeneratorKind& kind, const GeneratorSettings& given) {
  for (const auto& field : generator_fields()) {
    if (kind.takes(field.name) || field.read(given).index() == 0) continue;
    std::vector<std::string> taken;
    for (const std::string& name : kind.settings) taken.push_back(field_name(name));
    throw bad_input(fmt::format("{} is given, but the {} data {}", field_name(field.name), kind.name,
                                taken.empty() ? "have fixed sizes and no seed"
                                              : fmt::format("take {} only", fmt::join(taken, ", "))));
  }
  return kind.resolve(given);
}

Dataset generate(const GeneratorKind& kind, const GeneratorSettings& given) {
  return kind.make(resolved(kind, given));
}

}  // namespace attmirror

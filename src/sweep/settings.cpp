#include "sweep/settings.hpp"

#include <attmirror/base/error.hpp>
#include <attmirror/base/fingerprint.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

// The field of RunWords that a path of member pointers leads to.
template <auto First, auto... Rest>
auto& field(auto& object) {
  if constexpr (sizeof...(Rest) == 0)
    return object.*First;
  else
    return field<Rest...>(object.*First);
}

template <auto... Path>
struct Bound {
  using Optional = std::remove_cvref_t<decltype(field<Path...>(std::declval<RunWords&>()))>;
  using Value = typename Optional::value_type;

  static void put(RunWords& words, const Cell& cell) {
    Optional& target = field<Path...>(words);
    if constexpr (std::is_arithmetic_v<Value> && !std::is_floating_point_v<Value>)
      target = static_cast<Value>(std::get<std::int64_t>(cell));
    else if constexpr (std::is_floating_point_v<Value>)
      target = std::get<double>(cell);
    else
      target = Value(std::get<std::string>(cell));
  }
  static Cell get(const RunWords& words) {
    const Optional& value = field<Path...>(words);
    if (!value) return {};
    if constexpr (std::is_arithmetic_v<Value> && !std::is_floating_point_v<Value>)
      return static_cast<std::int64_t>(*value);
    else if constexpr (std::is_floating_point_v<Value>)
      return *value;
    else if constexpr (std::is_same_v<Value, std::filesystem::path>)
      return value->string();
    else
      return *value;
  }
  static constexpr ValueKind kind() {
    if constexpr (std::is_same_v<Value, bool>) return ValueKind::flag;
    if constexpr (std::is_same_v<Value, std::uint64_t>) return ValueKind::seed;
    if constexpr (std::is_same_v<Value, std::int64_t>) return ValueKind::integer;
    if constexpr (std::is_same_v<Value, double>) return ValueKind::real;
    return ValueKind::text;
  }
};

CellType cell_type(ValueKind kind) {
  switch (kind) {
    case ValueKind::real:
      return CellType::real;
    case ValueKind::text:
    case ValueKind::norm:
      return CellType::text;
    default:
      return CellType::integer;
  }
}

std::string type_text(ValueKind kind) {
  switch (kind) {
    case ValueKind::integer:
      return "whole number";
    case ValueKind::seed:
      return "seed";
    case ValueKind::real:
      return "number";
    case ValueKind::flag:
      return "true or false";
    case ValueKind::text:
      return "text";
    case ValueKind::norm:
      return "norm";
    case ValueKind::seed_or_word:
      return "seed or text";
  }
  return "";
}

struct Description {
  const char *name, *default_text, *meaning;
};

template <auto... Path>
Setting setting(const char* table, Description description, Range range = Range::any,
                void (*check)(const std::string&) = nullptr) {
  Setting result;
  result.info = {description.name, table, type_text(Bound<Path...>::kind()), description.default_text,
                 description.meaning};
  result.kind = Bound<Path...>::kind();
  result.type = cell_type(result.kind);
  result.range = range;
  result.check = check;
  result.put = Bound<Path...>::put;
  result.get = Bound<Path...>::get;
  return result;
}

template <auto Field>
Setting data(Description description, Range range = Range::any, void (*check)(const std::string&) = nullptr) {
  return setting<&RunWords::data, Field>("data", description, range, check);
}
template <auto Field>
Setting optimizer(Description description, Range range = Range::any,
                  void (*check)(const std::string&) = nullptr) {
  return setting<&RunWords::optimizer, Field>("train", description, range, check);
}
template <auto Field>
Setting model(Description description, Range range = Range::any,
              void (*check)(const std::string&) = nullptr) {
  return setting<&RunWords::model, Field>("train", description, range, check);
}

// The norm of steepest descent, which may be written as a number.
Setting norm_setting() {
  Setting result = optimizer<&OptimizerWords::norm>(
      {"norm", "",
       "of steepest, which needs one: 1, 2, inf, any other number from 1, nuclear, spectral, schatten:P"},
      Range::any, [](const std::string& text) { parse_norm(text); });
  result.kind = ValueKind::norm;
  result.info.type = type_text(result.kind);
  return result;
}

// A number, or how to find one.
Setting init_seed_setting() {
  Setting result = model<&ModelWords::init_seed>(
      {"init_seed", "seed",
       "of random starts: a number; \"seed\": the seed of the run's data, 0 where they have none; \"own\": "
       "another one "
       "for each run, from its other settings"},
      Range::from_zero, [](const std::string& text) {
        if (text != "seed" && text != "own")
          throw bad_input(
              fmt::format("init_seed is \"{}\": expected a whole number, \"seed\" or \"own\"", text));
      });
  result.kind = ValueKind::seed_or_word;
  result.info.type = type_text(result.kind);
  result.put = [](RunWords& words, const Cell& cell) {
    if (const auto* word = std::get_if<std::string>(&cell))
      words.init_seed = *word;
    else
      words.model.init_seed = static_cast<std::uint64_t>(std::get<std::int64_t>(cell));
  };
  return result;
}

void check_generator(const std::string& name) {
  std::vector<std::string_view> names;
  for (const GeneratorKind& kind : generator_kinds()) names.push_back(kind.name);
  if (std::ranges::find(names, name) == names.end())
    throw bad_input(fmt::format("generator is \"{}\": expected {}", name, fmt::join(names, ", ")));
}

void check_optimizer(const std::string& name) {
  if (std::ranges::find(optimizer_methods(), name) == optimizer_methods().end())
    throw bad_input(
        fmt::format("optimizer is \"{}\": expected one of {}", name, fmt::join(optimizer_methods(), ", ")));
}

void check_file(const std::string& name) {
  if (name.empty()) throw bad_input("file is \"\": expected the path of an .npz file");
}

// The words of the data, by the kind that takes them.
void check_query_from(const std::string& word) { find_generator("sphere").resolve({.query_from = word}); }
void check_scores(const std::string& word) { find_generator("single-input").resolve({.scores = word}); }
void check_label_margin(const std::string& word) {
  find_generator("joint-prompt").resolve({.label_margin = word});
}

void check_params(const std::string& name) { plan_model({.params = name}); }
void check_mask(const std::string& name) { plan_model({.mask = name}); }
void check_init(const std::string& name) { plan_model({.init = name}); }

using G = GeneratorSettings;
using O = OptimizerWords;
using M = ModelWords;
using R = RunWords;

std::vector<Setting> make_settings() {
  return {
      setting<&R::generator>("data", {"generator", "sphere", "what `attmirror generate --kind` makes"},
                             Range::any, check_generator),
      setting<&R::file>("data",
                        {"file", "", "a dataset instead of a generator: .npz, relative to the sweep file"},
                        Range::any, check_file),
      data<&G::samples>({"samples", "6; relu, orthonormal: 3", "sequences n"}, Range::from_one),
      data<&G::tokens>({"tokens", "8; relu, orthonormal: 4", "tokens T of each sequence"}, Range::from_one),
      data<&G::dim>({"dim", "10; relu, orthonormal: 4", "dimension d of a token"}, Range::from_one),
      data<&G::seed>({"seed", "1; multi-input: 0, visualization2: 3", "of the data"}, Range::from_zero),
      data<&G::min_tokens>({"min_tokens", "0", "lengths random from this to tokens; 0: all equal"},
                           Range::from_zero),
      data<&G::queries>({"queries", "1", "queries drawn for each sequence"}, Range::from_one),
      data<&G::query_from>({"query_from", "draw", "where queries are from: draw, first, last, all"},
                           Range::any, check_query_from),
      data<&G::scores>({"scores", "equal", "of single-input: equal, unequal"}, Range::any, check_scores),
      data<&G::label_margin>({"label_margin", "tight", "of joint-prompt: tight, slack"}, Range::any,
                             check_label_margin),
      data<&G::score>({"score", "10", "of loss-comparison: score of the first sequence's best token"},
                      Range::above_zero),

      optimizer<&O::optimizer>(
          {"optimizer", "md", "md, gd, steepest, sign, coordinate, spectral, signum, muon, adam"}, Range::any,
          check_optimizer),
      optimizer<&O::geometry>({"geometry", "lp", "of md: lp, schatten, entropy"}, Range::any,
                              [](const std::string& text) { parse_geometry(text); }),
      optimizer<&O::p>({"p", "2", "of md with lp and schatten, > 1"}, Range::above_one),
      optimizer<&O::entropy_beta>({"entropy_beta", "1", "of md with entropy"}, Range::above_zero),
      norm_setting(),
      optimizer<&O::lr>({"lr", "0.1", "step size"}, Range::above_zero),
      optimizer<&O::normalized>(
          {"normalized", "md, gd: false; others: true",
           "divide each block's gradient by its dual norm; false for steepest is --unnormalized"}),
      optimizer<&O::momentum>({"momentum", "none; signum: ema:0.9, muon: ema:0.95",
                               "none, heavy-ball:BETA, ema:BETA; not of adam"},
                              Range::any, [](const std::string& text) { parse_momentum(text).validate(); }),
      optimizer<&O::schedule>({"schedule", "constant", "constant, power:EXPONENT, polyak:LOWER"}, Range::any,
                              [](const std::string& text) { parse_schedule(text).validate(); }),
      optimizer<&O::beta1>({"beta1", "0.9", "of adam"}, Range::below_one),
      optimizer<&O::beta2>({"beta2", "0.999", "of adam"}, Range::below_one),
      optimizer<&O::orthogonalization>(
          {"orthogonalization", "exact; muon: newton-schulz", "of spectral directions: exact, newton-schulz"},
          Range::any, [](const std::string& text) { parse_orthogonalization(text); }),
      optimizer<&O::eps>({"eps", "exact", "exact, paper"}, Range::any,
                         [](const std::string& text) { parse_eps_policy(text); }),
      optimizer<&O::eps_value>(
          {"eps_value", "2.220446049250313e-16; adam: 1e-8", "of normalized steps with eps paper"},
          Range::from_zero),
      optimizer<&O::jacobian>({"jacobian", "safe; eps paper: textbook", "safe, textbook"}, Range::any,
                              [](const std::string& text) { parse_jacobian(text); }),
      optimizer<&O::powers>({"powers", "fast", "of md with lp: fast, general"}, Range::any,
                            [](const std::string& text) { parse_power_path(text); }),
      model<&M::params>({"params", "W", "W, KQ, prompt"}, Range::any, check_params),
      model<&M::rank>({"rank", "0", "of KQ: columns of K and Q; 0: the dimension"}, Range::from_zero),
      model<&M::key_weights>(
          {"key_weights", "the identity", "of a prompt: A, .npy (d, d), relative to the sweep file"}),
      model<&M::loss>({"loss", "logistic", "logistic, exponential, linear"}, Range::any,
                      [](const std::string& text) { parse_loss(text); }),
      model<&M::head>({"head", "linear", "linear, relu, quadratic:LAMBDA"}, Range::any,
                      [](const std::string& text) { parse_head(text); }),
      model<&M::mask>({"mask", "none", "none, causal"}, Range::any, check_mask),
      model<&M::scaled>({"scaled", "false", "divide the logits by sqrt(d), by sqrt(rank) for KQ"}),
      model<&M::penalty>({"penalty", "0", "LAMBDA of the penalty LAMBDA |W|^2"}, Range::from_zero),
      model<&M::train>({"train", "all blocks but v", "blocks to train: W, \"W,v\", \"K,Q\", ..."}, Range::any,
                       [](const std::string& text) { parse_blocks(text); }),
      model<&M::init>({"init", "zero; KQ: uniform", "zero, uniform, normal:STD, file:PATH"}, Range::any,
                      check_init),
      init_seed_setting(),
      setting<&R::steps>("train", {"steps", "1000", "stop after this many"}, Range::from_zero),
      setting<&R::saturation>(
          "train",
          {"saturation", "0", "stop once the mean largest softmax probability reaches this; 0: never"},
          Range::probability),
      setting<&R::data_path>("train", {"data_path", "auto", "auto, block, stream"}, Range::any,
                             [](const std::string& text) { parse_data_path(text); }),
      setting<&R::storage>("train", {"storage", "float64", "float64, float32"}, Range::any,
                           [](const std::string& text) { parse_token_storage(text); }),
  };
}

}  // namespace

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = make_settings();
  return all;
}

const std::vector<SweepSetting>& sweep_settings() {
  static const std::vector<SweepSetting> all = [] {
    std::vector<SweepSetting> infos;
    for (const Setting& setting : settings()) infos.push_back(setting.info);
    return infos;
  }();
  return all;
}

std::optional<std::size_t> find_setting(std::string_view name) {
  for (std::size_t i = 0; i < settings().size(); ++i)
    if (settings()[i].info.name == name) return i;
  return std::nullopt;
}

std::string to_text(const Setting& setting, const Cell& value) {
  if (setting.kind == ValueKind::flag) return std::get<std::int64_t>(value) != 0 ? "true" : "false";
  return std::visit(
      [](const auto& v) -> std::string {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, std::monostate>)
          return "nothing";
        else
          return fmt::format("{}", v);
      },
      value);
}

std::string in_words_of_sweeps(std::string message) {
  const auto replace_all = [&message](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = message.find(from, at)) != std::string::npos; at += to.size())
      message.replace(at, from.size(), to);
  };
  for (const Setting& setting : settings()) {
    std::string dashed = setting.info.name;
    std::ranges::replace(dashed, '_', '-');
    replace_all("--" + dashed, setting.info.name);
    if (dashed != setting.info.name) replace_all(dashed, setting.info.name);
  }
  return message;
}

std::uint64_t fingerprint(const Values& resolved) {
  Fingerprint print;
  for (std::size_t i = 0; i < resolved.size(); ++i) {
    const Cell& value = resolved[i];
    if (std::holds_alternative<std::monostate>(value)) continue;
    print.add(std::string_view(settings()[i].info.name));
    if (const auto* number = std::get_if<std::int64_t>(&value))
      print.add(std::ptrdiff_t{*number});
    else if (const auto* real = std::get_if<double>(&value))
      print.add(*real);
    else
      print.add(std::string_view(std::get<std::string>(value)));
  }
  return print.value();
}

}  // namespace attmirror

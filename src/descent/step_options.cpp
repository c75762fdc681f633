#include "base/words.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/descent/step_options.hpp>

#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace attmirror {

namespace {

// "ema:0.95" as a word and, where there is a colon, the number after it.
struct WordAndNumber {
  std::string_view word;
  std::optional<double> number;
};

WordAndNumber split(std::string_view what, std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {text, std::nullopt};
  const std::string_view digits = text.substr(colon + 1);
  double number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size())
    throw bad_value(what, text, "a number after the colon");
  return {text.substr(0, colon), number};
}

}  // namespace

std::string_view to_string(EpsPolicy policy) { return policy == EpsPolicy::exact ? "exact" : "paper"; }

EpsPolicy parse_eps_policy(std::string_view name) {
  if (name == "exact") return EpsPolicy::exact;
  if (name == "paper") return EpsPolicy::paper;
  throw bad_value("eps", name, expected_choice(name, {"exact", "paper"}));
}

void Momentum::validate() const {
  if (!(beta >= 0 && beta < 1))
    throw bad_input(
        fmt::format("{}'s beta is {}: expected a number in [0, 1)", field_name("momentum"), beta));
}

std::string to_string(const Momentum& momentum) {
  if (momentum.kind == MomentumKind::none) return "none";
  return fmt::format("{}:{}", momentum.kind == MomentumKind::ema ? "ema" : "heavy-ball", momentum.beta);
}

Momentum parse_momentum(std::string_view text) {
  const auto [word, number] = split("momentum", text);
  Momentum momentum;
  if (word == "heavy-ball")
    momentum.kind = MomentumKind::heavy_ball;
  else if (word == "ema")
    momentum.kind = MomentumKind::ema;
  else if (word != "none" || number)
    throw bad_value("momentum", text,
                    expected_choice(text, {"none", "heavy-ball", "heavy-ball:BETA", "ema", "ema:BETA"}));
  if (number) momentum.beta = *number;
  momentum.validate();
  return momentum;
}

void Schedule::validate() const {
  if (!(exponent >= 0) || std::isinf(exponent))
    throw bad_input(fmt::format("{}'s exponent is {}: expected a finite number, 0 or greater",
                                field_name("schedule"), exponent));
  if (!std::isfinite(lower_bound))
    throw bad_input(
        fmt::format("{}'s lower bound is {}: expected a finite number", field_name("schedule"), lower_bound));
}

std::string to_string(const Schedule& schedule) {
  switch (schedule.kind) {
    case ScheduleKind::constant:
      return "constant";
    case ScheduleKind::power:
      return fmt::format("power:{}", schedule.exponent);
    case ScheduleKind::polyak:
      return fmt::format("polyak:{}", schedule.lower_bound);
  }
  return "unknown";
}

Schedule parse_schedule(std::string_view text) {
  const auto [word, number] = split("schedule", text);
  Schedule schedule;
  if (word == "power") {
    schedule.kind = ScheduleKind::power;
    if (number) schedule.exponent = *number;
  } else if (word == "polyak") {
    schedule.kind = ScheduleKind::polyak;
    if (number) schedule.lower_bound = *number;
  } else if (word != "constant" || number) {
    throw bad_value(
        "schedule", text,
        expected_choice(text, {"constant", "power", "power:EXPONENT", "polyak", "polyak:LOWER_BOUND"}));
  }
  schedule.validate();
  return schedule;
}

}  // namespace attmirror

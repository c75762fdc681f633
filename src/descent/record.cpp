#include "base/words.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/descent/record.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace attmirror {

namespace {

std::int64_t parse_count(std::string_view text, std::string_view whole) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw bad_value("record", whole,
                    "none, every:K, log, log:PER_DECADE or a list of steps such as 0,10,100" +
                        did_you_mean(whole.substr(0, whole.find(':')), {"none", "every", "log"}));
  return value;
}

constexpr std::int64_t last_step = std::numeric_limits<std::int64_t>::max();

// The j-th step of the log-spaced schedule, before equal neighbours are merged: 10^(j/n), rounded; last_step from
// 10^18 on.
std::int64_t log_step(std::int64_t j, int per_decade) {
  const double step = std::pow(10.0, static_cast<double>(j) / per_decade);
  return step < 1e18 ? std::llround(step) : last_step;
}

}  // namespace

RecordSchedule RecordSchedule::none() { return {}; }

RecordSchedule RecordSchedule::every(std::int64_t steps) {
  if (steps < 1) throw bad_input(fmt::format("record every {} steps: expected 1 or more", steps));
  RecordSchedule schedule;
  schedule.kind_ = Kind::every;
  schedule.every_ = steps;
  return schedule;
}

RecordSchedule RecordSchedule::log_spaced(int per_decade) {
  if (per_decade < 1 || per_decade > 10000)
    throw bad_input(fmt::format("record log:{}: expected 1 to 10000 steps per decade", per_decade));
  RecordSchedule schedule;
  schedule.kind_ = Kind::log_spaced;
  schedule.per_decade_ = per_decade;
  return schedule;
}

RecordSchedule RecordSchedule::at(std::vector<std::int64_t> steps) {
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (steps[i] < 0)
      throw bad_input(fmt::format("record[{}] is {}: expected a step of 0 or more", i, steps[i]));
  std::ranges::sort(steps);
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  RecordSchedule schedule;
  schedule.kind_ = Kind::list;
  schedule.list_ = std::move(steps);
  return schedule;
}

RecordSchedule RecordSchedule::parse(std::string_view text) {
  if (text == "none") return none();
  if (text == "log") return log_spaced();
  if (text.starts_with("every:")) return every(parse_count(text.substr(6), text));
  if (text.starts_with("log:"))
    return log_spaced(
        static_cast<int>(std::clamp<std::int64_t>(parse_count(text.substr(4), text), -1, 1 << 30)));
  std::vector<std::int64_t> steps;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    steps.push_back(parse_count(rest.substr(0, comma), text));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return at(std::move(steps));
}

std::int64_t RecordSchedule::next(std::int64_t step) const {
  switch (kind_) {
    case Kind::none:
      return -1;
    case Kind::every:
      if (step % every_ == 0) return step;
      return step / every_ >= last_step / every_ ? -1 : (step / every_ + 1) * every_;
    case Kind::log_spaced: {
      if (step <= 1) return std::max<std::int64_t>(step, 0);
      auto j = static_cast<std::int64_t>(std::floor(per_decade_ * std::log10(static_cast<double>(step)))) - 1;
      while (log_step(std::max<std::int64_t>(j, 0), per_decade_) < step) ++j;
      return log_step(j, per_decade_) == last_step ? -1 : log_step(j, per_decade_);
    }
    case Kind::list: {
      const auto at = std::ranges::lower_bound(list_, step);
      return at == list_.end() ? -1 : *at;
    }
  }
  return -1;
}

std::int64_t RecordSchedule::count(std::int64_t steps) const {
  if (kind_ == Kind::every) return steps / every_ == last_step ? last_step : steps / every_ + 1;
  std::int64_t count = 0;
  for (std::int64_t step = next(0); step >= 0 && step <= steps; step = next(step + 1)) ++count;
  return count;
}

std::string RecordSchedule::to_string() const {
  switch (kind_) {
    case Kind::none:
      return "none";
    case Kind::every:
      return fmt::format("every:{}", every_);
    case Kind::log_spaced:
      return fmt::format("log:{}", per_decade_);
    case Kind::list:
      return fmt::format("{}", fmt::join(list_, ","));
  }
  return "none";
}

}  // namespace attmirror

#include "sweep/ranges.hpp"

#include <attmirror/base/error.hpp>

#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

template <class T>
std::optional<T> parse(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t colon = text.find(':');
    parts.push_back(text.substr(0, colon));
    if (colon == std::string_view::npos) return parts;
    text.remove_prefix(colon + 1);
  }
}

bool is_whole(const Setting& setting) { return setting.field.kind != FieldKind::number; }

double rounded(double value, const Setting& setting) {
  if (is_whole(setting)) return std::round(value);
  return *parse<double>(fmt::format("{:.12g}", value));
}

[[noreturn]] void refuse(const std::string& place, const std::string& text, const std::string& why) {
  throw bad_input(fmt::format("{}: {}: {}", place, in_double_quotes(text), why));
}

std::string expected_range(const Setting& setting) {
  return is_whole(setting) ? "expected a list or a range such as \"1:100\", \"1:100:5\" or \"log:10:1000:3\""
                           : "expected a list or a range such as \"log:1e-3:1:7\" or \"lin:0:1:5\"";
}

}  // namespace

bool takes_ranges(const Setting& setting) {
  return setting.field.kind == FieldKind::count || setting.field.kind == FieldKind::seed ||
         setting.field.kind == FieldKind::number;
}

ValueRange::ValueRange(const std::string& text, const Setting& setting, const std::string& place)
    : setting_(&setting) {
  const std::vector<std::string_view> parts = split(text);
  if (parts[0] == "lin" || parts[0] == "log") {
    const bool log = parts[0] == "log";
    if (parts.size() != 4) refuse(place, text, expected_range(setting));
    const auto first = parse<double>(parts[1]), last = parse<double>(parts[2]);
    const auto count = parse<std::int64_t>(parts[3]);
    if (!first || !last || !count || !std::isfinite(*first) || !std::isfinite(*last))
      refuse(place, text, expected_range(setting));
    if (*count < 2) refuse(place, text, fmt::format("{} values: expected 2 or more", *count));
    if (log && !(*first > 0 && *last > 0)) refuse(place, text, "the ends of log are not > 0");
    kind_ = log ? Kind::logarithmic : Kind::linear;
    first_ = *first;
    last_ = *last;
    count_ = static_cast<std::uint64_t>(*count);
    return;
  }
  if (!is_whole(setting) || parts.size() < 2 || parts.size() > 3)
    refuse(place, text, expected_range(setting));
  const auto first = parse<std::int64_t>(parts[0]), last = parse<std::int64_t>(parts[1]);
  const auto step = parts.size() == 3 ? parse<std::int64_t>(parts[2]) : 1;
  if (!first || !last || !step) refuse(place, text, expected_range(setting));
  if (*step < 1) refuse(place, text, fmt::format("the step {} is not >= 1", *step));
  if (*last < *first) refuse(place, text, fmt::format("it ends at {}, before its start {}", *last, *first));
  if (*first < 0) refuse(place, text, fmt::format("{} is not >= 0", *first));
  start_ = *first;
  step_ = *step;
  count_ = static_cast<std::uint64_t>((*last - *first) / *step) + 1;
}

// The ends as they were written; what lies between, rounded.
TomlValue ValueRange::at(std::uint64_t i) const {
  TomlValue value;
  if (kind_ == Kind::counted) {
    value.value = start_ + static_cast<std::int64_t>(i) * step_;
    return value;
  }
  const double share = static_cast<double>(i) / static_cast<double>(count_ - 1);
  if (i == 0)
    value.value = first_;
  else if (i + 1 == count_)
    value.value = last_;
  else if (kind_ == Kind::linear)
    value.value = rounded((1 - share) * first_ + share * last_, *setting_);
  else
    value.value = rounded(std::exp((1 - share) * std::log(first_) + share * std::log(last_)), *setting_);
  return value;
}

}  // namespace attmirror

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

// A range, read. `count` values from `first` to at most `last`.
struct SpacedRange {
  enum class Kind { counted, linear, logarithmic } kind = Kind::counted;
  std::int64_t start = 0, step = 1;  // of `counted`
  double first = 0, last = 0;        // of the others
  std::uint64_t count = 0;
};

class RangeReader {
 public:
  RangeReader(const std::string& text, const Setting& setting, const std::string& place)
      : text_(text), setting_(setting), place_(place), parts_(split(text)) {}

  SpacedRange read() const {
    if (parts_[0] == "lin" || parts_[0] == "log") return spaced();
    if (!is_whole(setting_) || parts_.size() < 2 || parts_.size() > 3) refuse(expected());
    return counted();
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw bad_input(fmt::format("{}: {}: {}", place_, in_double_quotes(text_), why));
  }

  std::string expected() const {
    return is_whole(setting_)
               ? "expected a list or a range such as \"1:100\", \"1:100:5\" or \"log:10:1000:3\""
               : "expected a list or a range such as \"log:1e-3:1:7\" or \"lin:0:1:5\"";
  }

  SpacedRange counted() const {
    const auto first = parse<std::int64_t>(parts_[0]), last = parse<std::int64_t>(parts_[1]);
    const auto step = parts_.size() == 3 ? parse<std::int64_t>(parts_[2]) : 1;
    if (!first || !last || !step) refuse(expected());
    if (*step < 1) refuse(fmt::format("the step {} is not >= 1", *step));
    if (*last < *first) refuse(fmt::format("it ends at {}, before its start {}", *last, *first));
    if (*first < 0) refuse(fmt::format("{} is not >= 0", *first));
    const std::int64_t intervals = (*last - *first) / *step;
    return {.start = *first, .step = *step, .count = static_cast<std::uint64_t>(intervals) + 1};
  }

  SpacedRange spaced() const {
    using enum SpacedRange::Kind;
    const bool log = parts_[0] == "log";
    if (parts_.size() != 4) refuse(expected());
    const auto first = parse<double>(parts_[1]), last = parse<double>(parts_[2]);
    const auto count = parse<std::int64_t>(parts_[3]);
    if (!first || !last || !count || !std::isfinite(*first) || !std::isfinite(*last)) refuse(expected());
    if (*count < 2) refuse(fmt::format("{} values: expected 2 or more", *count));
    if (log && !(*first > 0 && *last > 0)) refuse("the ends of log are not > 0");
    return {.kind = log ? logarithmic : linear,
            .first = *first,
            .last = *last,
            .count = static_cast<std::uint64_t>(*count)};
  }

  const std::string& text_;
  const Setting& setting_;
  const std::string& place_;
  std::vector<std::string_view> parts_;
};

// The ends as they were written; what lies between, rounded.
double value_at(const SpacedRange& range, std::uint64_t i, const Setting& setting) {
  if (i == 0) return range.first;
  if (i + 1 == range.count) return range.last;
  const double share = static_cast<double>(i) / static_cast<double>(range.count - 1);
  if (range.kind == SpacedRange::Kind::linear)
    return rounded((1 - share) * range.first + share * range.last, setting);
  return rounded(std::exp((1 - share) * std::log(range.first) + share * std::log(range.last)), setting);
}

}  // namespace

bool takes_ranges(const Setting& setting) {
  return setting.field.kind == FieldKind::count || setting.field.kind == FieldKind::seed ||
         setting.field.kind == FieldKind::number;
}

double range_size(const std::string& text, const Setting& setting, const std::string& place) {
  return static_cast<double>(RangeReader(text, setting, place).read().count);
}

TomlArray expand_range(const std::string& text, const Setting& setting, const std::string& place) {
  const SpacedRange range = RangeReader(text, setting, place).read();
  TomlArray values(static_cast<std::size_t>(range.count));
  for (std::uint64_t i = 0; i < range.count; ++i) {
    TomlValue& target = values[static_cast<std::size_t>(i)];
    if (range.kind == SpacedRange::Kind::counted)
      target.value = range.start + static_cast<std::int64_t>(i) * range.step;
    else
      target.value = value_at(range, i, setting);
  }
  return values;
}

}  // namespace attmirror

#include <attmirror/base/error.hpp>
#include <attmirror/base/figure.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

void check_series(const Figure& figure) {
  for (std::size_t i = 0; i < figure.series.size(); ++i) {
    const Series& one = figure.series[i];
    const auto check = [&](const char* what, std::size_t size) {
      if (size != one.x.size())
        throw bad_input(fmt::format("figure {}, series {} (\"{}\"): {} has {} numbers and x has {}",
                                    figure.id, i, one.name, what, size, one.x.size()));
    };
    check("y", one.y.size());
    if (!one.low.empty()) check("low", one.low.size());
    if (!one.high.empty()) check("high", one.high.size());
    if (!one.labels.empty()) check("labels", one.labels.size());
    if (one.low.empty() != one.high.empty())
      throw bad_input(
          fmt::format("figure {}, series {} (\"{}\"): a band needs low and high", figure.id, i, one.name));
  }
}

void check_heatmap(const Figure& figure) {
  const Heatmap& map = *figure.heatmap;
  if (map.values.size() != map.rows.size())
    throw bad_input(
        fmt::format("figure {}: {} rows of values, {} names", figure.id, map.values.size(), map.rows.size()));
  for (std::size_t r = 0; r < map.rows.size(); ++r)
    if (map.values[r].size() != map.columns.size())
      throw bad_input(fmt::format("figure {}: values[{}] has {} numbers, there are {} columns", figure.id, r,
                                  map.values[r].size(), map.columns.size()));
  for (const auto& [r, c] : map.marked)
    if (r >= map.rows.size() || c >= map.columns.size())
      throw bad_input(fmt::format("figure {}: there is no cell ({}, {}) to mark", figure.id, r, c));
}

void check_range(const Figure& figure, const char* name, const Axis& axis) {
  if (!axis.range) return;
  const auto [low, high] = *axis.range;
  const bool drawable = std::isfinite(low) && std::isfinite(high) && low < high &&
                        (axis.scale == Axis::Scale::linear || low > 0);
  if (!drawable)
    throw bad_input(fmt::format("figure {}: range of {} is {} to {}: expected two increasing {}numbers",
                                figure.id, name, low, high,
                                axis.scale == Axis::Scale::log ? "positive " : ""));
}

}  // namespace

void Figure::validate() const {
  const bool named = !id.empty() && std::ranges::all_of(id, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-';
  });
  if (!named) throw bad_input(fmt::format("figure id is \"{}\": expected letters, digits and dashes", id));
  if (title.empty()) throw bad_input(fmt::format("figure {} has no title", id));
  if (description.empty()) throw bad_input(fmt::format("figure {} has no description", id));
  if (series.empty() == !heatmap)
    throw bad_input(fmt::format("figure {} has {}: expected series or a heatmap", id,
                                series.empty() ? "neither" : "both"));
  check_range(*this, "x", x);
  check_range(*this, "y", y);
  check_series(*this);
  if (heatmap) check_heatmap(*this);
}

}  // namespace attmirror

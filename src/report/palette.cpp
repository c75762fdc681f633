#include "report/palette.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr std::array<Color, series_color_count> light_series{{{0x00, 0x6c, 0xb0},    // blue
                                                              {0xd0, 0x56, 0x00},    // vermilion
                                                              {0x00, 0x8a, 0x64},    // green
                                                              {0xb5, 0x4f, 0x8c},    // purple
                                                              {0xb4, 0x7b, 0x00},    // orange
                                                              {0x2f, 0x95, 0xcf},    // sky blue
                                                              {0x4a, 0x4f, 0x57},    // black
                                                              {0x85, 0x7c, 0x0a}}};  // yellow
constexpr std::array<Color, series_color_count> dark_series{{{0x4f, 0xa8, 0xf0},
                                                             {0xff, 0x8a, 0x3d},
                                                             {0x35, 0xcc, 0x9b},
                                                             {0xe6, 0x97, 0xc6},
                                                             {0xf0, 0xb4, 0x29},
                                                             {0xa3, 0xdc, 0xff},
                                                             {0xc9, 0xce, 0xd6},
                                                             {0xea, 0xe0, 0x63}}};

constexpr Surface light_surface{
    {0xff, 0xff, 0xff}, {0x1c, 0x21, 0x28}, {0x57, 0x60, 0x6a}, {0xe3, 0xe7, 0xec}, {0x8b, 0x94, 0x9e}};
constexpr Surface dark_surface{
    {0x15, 0x1a, 0x21}, {0xe4, 0xe8, 0xee}, {0xa3, 0xac, 0xb8}, {0x2c, 0x34, 0x3f}, {0x70, 0x7a, 0x87}};

struct HeatEnds {
  Color low, middle, high;
};
constexpr HeatEnds light_heat{{0xf1, 0xf5, 0xfa}, {0x7f, 0xb4, 0xdc}, {0x0a, 0x3d, 0x6e}};
constexpr HeatEnds dark_heat{{0x1d, 0x25, 0x30}, {0x1f, 0x6f, 0xae}, {0xb5, 0xdf, 0xff}};

std::uint8_t between(std::uint8_t a, std::uint8_t b, double share) {
  return static_cast<std::uint8_t>(std::lround(a + share * (b - a)));
}
Color between(Color a, Color b, double share) {
  return {between(a.red, b.red, share), between(a.green, b.green, share), between(a.blue, b.blue, share)};
}

double luminance(Color color) {
  const auto linear = [](std::uint8_t part) {
    const double s = part / 255.0;
    return s <= 0.04045 ? s / 12.92 : std::pow((s + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(color.red) + 0.7152 * linear(color.green) + 0.0722 * linear(color.blue);
}

}  // namespace

std::string to_hex(Color color) {
  return fmt::format("#{:02x}{:02x}{:02x}", color.red, color.green, color.blue);
}

double contrast(Color a, Color b) {
  const double first = luminance(a) + 0.05, second = luminance(b) + 0.05;
  return std::max(first, second) / std::min(first, second);
}

Color series_color(int index, Theme theme) {
  const auto i = static_cast<std::size_t>(index % series_color_count);
  return theme == Theme::light ? light_series[i] : dark_series[i];
}

Color heat_color(int step, Theme theme) {
  const HeatEnds& ends = theme == Theme::light ? light_heat : dark_heat;
  const double share = static_cast<double>(step) / (heat_steps - 1);
  return share < 0.5 ? between(ends.low, ends.middle, 2 * share)
                     : between(ends.middle, ends.high, 2 * share - 1);
}

Color heat_text_color(int step, Theme theme) {
  constexpr Color white{0xff, 0xff, 0xff}, black{0x00, 0x00, 0x00};
  const Color cell = heat_color(step, theme);
  return contrast(cell, white) > contrast(cell, black) ? white : black;
}

const Surface& surface(Theme theme) { return theme == Theme::light ? light_surface : dark_surface; }

std::vector<int> resolve_colors(const std::vector<Series>& series) {
  std::set<int> taken;
  for (const Series& one : series)
    if (one.color >= 0) taken.insert(one.color);
  std::vector<int> colors;
  int next = 0;
  for (const Series& one : series) {
    if (one.color >= 0) {
      colors.push_back(one.color);
      continue;
    }
    while (taken.contains(next)) ++next;
    taken.insert(next);
    colors.push_back(next);
  }
  return colors;
}

std::vector<std::vector<int>> heat_steps_of(const Heatmap& map) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const auto& row : map.values)
    for (const double value : row)
      if (std::isfinite(value)) {
        low = std::min(low, value);
        high = std::max(high, value);
      }
  // Numbers that are nearly alike look alike: not 0.99 and 1.00 as the two ends of the colors.
  if (low > 0 && low < high) low = std::min(low, 0.8 * high);
  std::vector<std::vector<int>> steps;
  for (const auto& row : map.values) {
    auto& line = steps.emplace_back();
    for (const double value : row) {
      if (!std::isfinite(value)) {
        line.push_back(-1);
        continue;
      }
      // Halves, because the largest number less the smallest may overflow.
      const double span = high / 2 - low / 2;
      const double share = span > 0 ? (value / 2 - low / 2) / span : 0.25;
      line.push_back(std::clamp(static_cast<int>(share * heat_steps), 0, heat_steps - 1));
    }
  }
  return steps;
}

std::string heat_number(double value, int digits) {
  if (std::isnan(value)) return "";
  if (std::isinf(value)) return value > 0 ? "∞" : "−∞";
  digits = std::clamp(digits, 0, 17);
  std::string text = std::abs(value) < 1e6 ? fmt::format("{:.{}f}", value, digits)
                                           : fmt::format("{:.{}e}", value, std::min(digits, 3));
  if (value != 0 && text.find_first_of("123456789") == std::string::npos)
    text = fmt::format("{:.{}e}", value, std::min(digits, 1));
  if (text.find_first_of("123456789") == std::string::npos && text.front() == '-') text.erase(0, 1);
  return text;
}

std::string css_colors(Theme theme) {
  std::string css;
  for (int i = 0; i < series_color_count; ++i)
    css += fmt::format("--series-{}:{};", i, to_hex(series_color(i, theme)));
  for (int i = 0; i < heat_steps; ++i)
    css += fmt::format("--heat-{}:{};--heat-text-{}:{};", i, to_hex(heat_color(i, theme)), i,
                       to_hex(heat_text_color(i, theme)));
  css += fmt::format("--mark:{};", to_hex(series_color(mark_color, theme)));
  const Surface& on = surface(theme);
  css += fmt::format("--background:{};--text:{};--quiet:{};--grid:{};--frame:{};", to_hex(on.background),
                     to_hex(on.text), to_hex(on.quiet_text), to_hex(on.grid), to_hex(on.frame));
  return css;
}

}  // namespace attmirror

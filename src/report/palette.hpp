// The colors of all drawings, for light and for dark screens. Internal.
//
// Eight colors that people with any kind of color blindness tell apart: those of Okabe and Ito, darkened on white and
// lightened on black until each stands out from its background by 3 to 1, as lines and symbols should (WCAG 1.4.11).
// Numbers as colors run from the background to a deep blue in 16 steps, so that a class name is enough for each.
#pragma once

#include <attmirror/base/figure.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace attmirror {

enum class Theme { light, dark };

struct Color {
  std::uint8_t red = 0, green = 0, blue = 0;
};
std::string to_hex(Color color);  // "#0072b2"
// Of WCAG 2: 1 for equal colors, 21 for black and white.
double contrast(Color a, Color b);

inline constexpr int series_color_count = 8;
Color series_color(int index, Theme theme);  // any index from 0: they repeat

inline constexpr int heat_steps = 16;
Color heat_color(int step, Theme theme);
Color heat_text_color(int step, Theme theme);

// Of the frames about cells: seen on the palest and on the deepest of them.
inline constexpr int mark_color = 1;

struct Surface {
  Color background, text, quiet_text, grid, frame;
};
const Surface& surface(Theme theme);

// The color of each series: its own, or the first that no series has.
std::vector<int> resolve_colors(const std::vector<Series>& series);

// The step of each number between the smallest and the largest; -1 for what is not finite.
std::vector<std::vector<int>> heat_steps_of(const Heatmap& map);
// With the digits of the map; more significant where those would show 0 for a number that is not, and a power of ten
// where the number is large. Empty for NaN.
std::string heat_number(double value, int digits);

// Custom properties of CSS: "--series-0:#0072b2;--heat-0:...;--background:...".
std::string css_colors(Theme theme);

}  // namespace attmirror

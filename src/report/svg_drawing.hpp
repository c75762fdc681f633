// What curves and heatmaps share when they are drawn as SVG. Internal.
//
// One drawing serves twice. As a file it carries its colors as attributes, which every converter understands, and a
// style for dark screens, which browsers obey. In the page the same elements take their colors from the page's style
// sheet by their class names, which beats attributes; there the picture leaves out the strip with the title, because
// the page has it as a heading. A script of the page makes the file from that drawing.
#pragma once

#include "report/palette.hpp"
#include <attmirror/report/svg.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

inline constexpr double svg_font_size = 14, svg_small_size = 13;
inline constexpr double svg_title_strip = 34;  // at the top of each drawing

// About as wide as a browser sets it; fonts differ.
double text_width(std::string_view text, double font_size);
// Cut to about this width, with an ellipsis.
std::string fit_text(std::string_view text, double width, double font_size);

// The name of an axis in one line, or in two where one is too short for it; cut only where two are.
std::vector<std::string> label_lines(std::string_view label, double width, double font_size);

enum class Anchor { start, middle, end };

struct SvgText {
  double x = 0, y = 0;  // of the base line
  Anchor anchor = Anchor::start;
  std::string_view kind = "text";  // class: text, quiet, title, or "heat-text-3"
  double size = svg_font_size;
  int turn = 0;  // degrees
};

class SvgDrawing {
 public:
  // All numbers have at most two digits after the point.
  void text(const SvgText& place, std::string_view words);
  void line(double x1, double y1, double x2, double y2, std::string_view kind);  // grid, frame, tick
  void rectangle(double x, double y, double width, double height, std::string_view kind,
                 std::string_view more = {});
  void raw(std::string_view markup) { body_ += markup; }

  // The whole drawing of this size. `clip` is a rectangle that raw parts refer to as url(#CLIP).
  std::string finish(const Figure& figure, const SvgOptions& options, double width, double height) const;

 private:
  std::string body_;
};

// 'class="series-3" fill="#b54f8c"': for files and for the page at once. `kind` may be text, quiet, title, background,
// grid, frame, tick, mark, heat-N, heat-text-N, or empty-cell.
std::string fill_of(std::string_view kind);
// A series as a line or an outline; as an area or a symbol.
std::string series_stroke(int color);
std::string series_fill(int color);

// Numbers as SVG has them: "12.5", "7", never "-0" or an exponent.
std::string svg_number(double value);

// svg_curves.cpp and svg_heatmap.cpp
std::string curves_svg(const Figure& figure, const SvgOptions& options);
std::string heatmap_svg(const Figure& figure, const SvgOptions& options);

// The rules for dark screens of a file that stands alone.
std::string svg_dark_style();

}  // namespace attmirror

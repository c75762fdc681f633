// Numbers as colors, each written into its cell.
#include "report/svg_drawing.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

namespace attmirror {

namespace {

double rows_of(const Heatmap& map) { return static_cast<double>(map.rows.size()); }

double widest(const std::vector<std::string>& names, double font_size) {
  double width = 0;
  for (const std::string& name : names) width = std::max(width, text_width(name, font_size));
  return width;
}

}  // namespace

std::string heatmap_svg(const Figure& figure, const SvgOptions& options) {
  const Heatmap& map = *figure.heatmap;
  const auto columns = static_cast<double>(map.columns.size()), rows = static_cast<double>(map.rows.size());
  const double width = options.width;
  const double least_height =
      std::clamp(rows_of(map) > 0 ? (options.height - svg_title_strip - 68) / rows_of(map) : 0, 22.0, 46.0) *
      rows_of(map);
  const std::vector<std::string> y_name =
      label_lines(figure.y.label, std::max(least_height, 60.0), svg_font_size);
  const double y_label = y_name.empty() ? 0 : 6 + 18 * static_cast<double>(y_name.size());
  const double left = 12 + y_label + std::min(widest(map.rows, svg_small_size), 0.4 * width) + 8;
  const double right = 14, top = svg_title_strip + 8;
  const double cell_width = columns > 0 ? (width - left - right) / columns : 0;
  const double cell_height = std::clamp(rows > 0 ? (options.height - top - 60) / rows : 0, 22.0, 46.0);
  const double bottom_of_cells = top + cell_height * rows;

  // Names of columns that do not fit side by side are turned.
  const double longest = widest(map.columns, svg_small_size);
  const bool turned = longest > cell_width + 2;  // text_width() is generous
  const double names_height = turned ? std::min(longest, 160.0) + 14 : 26;
  const double height = bottom_of_cells + names_height + (figure.x.label.empty() ? 6 : 28);

  SvgDrawing drawing;
  const auto steps = heat_steps_of(map);
  const double gap = cell_width > 8 && cell_height > 8 ? 1.5 : 0;
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const double y = top + cell_height * static_cast<double>(r);
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const double x = left + cell_width * static_cast<double>(c);
      const int step = steps[r][c];
      drawing.rectangle(x + gap, y + gap, cell_width - 2 * gap, cell_height - 2 * gap,
                        step < 0 ? "empty-cell" : fmt::format("heat-{}", step), gap > 0 ? "rx=\"3\"" : "");
      const std::string number = heat_number(map.values[r][c], map.digits);
      // A number that does not fit is left to the hover text of the page and to tables.
      const double size = std::min(svg_small_size, cell_width / std::max(1.0, text_width(number, 1)) * 0.94);
      if (!number.empty() && size >= 7)
        drawing.text({.x = x + cell_width / 2,
                      .y = y + cell_height / 2 + size * 0.36,
                      .anchor = Anchor::middle,
                      .kind = step < 0 ? std::string("quiet") : fmt::format("heat-text-{}", step),
                      .size = size},
                     number);
    }
    drawing.text(
        {.x = left - 8, .y = y + cell_height / 2 + 4.5, .anchor = Anchor::end, .size = svg_small_size},
        fit_text(map.rows[r], 0.4 * width, svg_small_size));
  }
  for (const auto& [r, c] : map.marked)
    drawing.raw(fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" class=\"mark\" fill=\"none\" "
        "stroke=\"{}\" stroke-width=\"2.5\"/>\n",
        svg_number(left + cell_width * static_cast<double>(c) + gap),
        svg_number(top + cell_height * static_cast<double>(r) + gap), svg_number(cell_width - 2 * gap),
        svg_number(cell_height - 2 * gap), to_hex(series_color(mark_color, Theme::light))));
  // Many narrow columns: every k-th name.
  const double needed = turned ? svg_small_size + 3 : 0;
  const auto every = static_cast<std::size_t>(std::max(1.0, std::ceil(needed / std::max(cell_width, 0.01))));
  for (std::size_t c = 0; c < map.columns.size(); c += every) {
    const double x = left + cell_width * (static_cast<double>(c) + 0.5);
    if (turned)
      drawing.text({.x = x + 4.5,
                    .y = bottom_of_cells + 8,
                    .anchor = Anchor::end,
                    .size = svg_small_size,
                    .turn = -90},
                   fit_text(map.columns[c], 160, svg_small_size));
    else
      drawing.text({.x = x, .y = bottom_of_cells + 19, .anchor = Anchor::middle, .size = svg_small_size},
                   map.columns[c]);
  }
  if (!figure.x.label.empty())
    drawing.text(
        {.x = left + (width - left - right) / 2, .y = height - 9, .anchor = Anchor::middle, .kind = "quiet"},
        figure.x.label);
  for (std::size_t i = 0; i < y_name.size(); ++i)
    drawing.text({.x = 20 + 18 * static_cast<double>(i),
                  .y = (top + bottom_of_cells) / 2,
                  .anchor = Anchor::middle,
                  .kind = "quiet",
                  .turn = -90},
                 y_name[i]);
  return drawing.finish(figure, options, width, height);
}

}  // namespace attmirror

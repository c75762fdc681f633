// Curves, bands and points over two axes, with a legend below them, where it covers nothing.
#include "report/axis_scale.hpp"
#include "report/svg_drawing.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace attmirror {

namespace {

struct Point {
  double x, y;
};

// The rectangle that the axes enclose, and what lies where in it.
struct Plot {
  double left, top, width, height;
  AxisScale x, y;
  std::vector<std::string> y_name;  // in its lines
  double name_x;                    // of the first of them, turned

  std::optional<Point> at(double px, double py) const {
    if (!x.shows(px) || !y.shows(py)) return std::nullopt;
    return Point{left + width * x.position(px), top + height * (1 - y.position(py))};
  }
};

std::vector<double> all_x(const Figure& figure) {
  std::vector<double> values;
  for (const Series& one : figure.series) values.insert(values.end(), one.x.begin(), one.x.end());
  return values;
}

std::vector<double> all_y(const Figure& figure) {
  std::vector<double> values;
  for (const Series& one : figure.series)
    for (const auto* part : {&one.y, &one.low, &one.high})
      values.insert(values.end(), part->begin(), part->end());
  return values;
}

// Runs of points that can be drawn: a point that cannot breaks the line.
std::vector<std::vector<Point>> pieces(const Plot& plot, const std::vector<double>& x,
                                       const std::vector<double>& y) {
  std::vector<std::vector<Point>> all;
  bool open = false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto point = plot.at(x[i], y[i]);
    if (point && !open) all.emplace_back();
    if (point) all.back().push_back(*point);
    open = point.has_value();
  }
  return all;
}

std::string path_of(const std::vector<Point>& points) {
  std::string path;
  for (const Point& point : points)
    path += fmt::format("{}{} {}", path.empty() ? "M" : "L", svg_number(point.x), svg_number(point.y));
  return path;
}

std::string_view dash_array(Series::Dash dash) {
  switch (dash) {
    case Series::Dash::dashed:
      return " stroke-dasharray=\"8 5\"";
    case Series::Dash::dotted:
      return " stroke-dasharray=\"2 4\"";
    case Series::Dash::solid:
      break;
  }
  return "";
}

// Four shapes in turn, so that color is not alone in telling series apart; where colors begin anew, they are hollow.
std::string symbol(Point at, int color, double r = 3.4) {
  const std::string x = svg_number(at.x), y = svg_number(at.y);
  const auto place = [&](double dx, double dy) {
    return svg_number(at.x + dx) + " " + svg_number(at.y + dy);
  };
  const std::string paint = color < series_color_count
                                ? series_fill(color)
                                : fmt::format("{} stroke-width=\"1.6\"", series_stroke(color));
  switch (color % 4) {
    case 0:
      return fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {}/>\n", x, y, svg_number(r), paint);
    case 1:
      return fmt::format("<path d=\"M{}L{}L{}L{}Z\" {}/>\n", place(-r, -r), place(r, -r), place(r, r),
                         place(-r, r), paint);
    case 2:
      return fmt::format("<path d=\"M{}L{}L{}L{}Z\" {}/>\n", place(0, -1.4 * r), place(1.4 * r, 0),
                         place(0, 1.4 * r), place(-1.4 * r, 0), paint);
    default:
      return fmt::format("<path d=\"M{}L{}L{}Z\" {}/>\n", place(0, -1.3 * r), place(1.25 * r, r),
                         place(-1.25 * r, r), paint);
  }
}

void draw_band(SvgDrawing& drawing, const Plot& plot, const Series& series, int color) {
  std::vector<Point> upper, lower;
  const auto flush = [&] {
    if (upper.size() > 1) {
      std::vector<Point> outline = upper;
      outline.insert(outline.end(), lower.rbegin(), lower.rend());
      drawing.raw(
          fmt::format("<path d=\"{}Z\" {} fill-opacity=\"0.18\"/>\n", path_of(outline), series_fill(color)));
    } else if (upper.size() == 1) {  // a band of one point is an error bar
      drawing.raw(fmt::format("<path d=\"M{} {}L{} {}\" {} stroke-width=\"1.5\" stroke-opacity=\"0.6\"/>\n",
                              svg_number(upper[0].x), svg_number(upper[0].y), svg_number(lower[0].x),
                              svg_number(lower[0].y), series_stroke(color)));
    }
    upper.clear();
    lower.clear();
  };
  for (std::size_t i = 0; i < series.low.size(); ++i) {
    const auto low = plot.at(series.x[i], series.low[i]), high = plot.at(series.x[i], series.high[i]);
    if (!low || !high) {
      flush();
      continue;
    }
    upper.push_back(*high);
    lower.push_back(*low);
  }
  flush();
}

// Points alone have bars; a band between points that no line joins would claim what was not measured.
void draw_bars(SvgDrawing& drawing, const Plot& plot, const Series& series, int color) {
  for (std::size_t i = 0; i < series.low.size(); ++i) {
    const auto low = plot.at(series.x[i], series.low[i]), high = plot.at(series.x[i], series.high[i]);
    if (!low || !high) continue;
    drawing.raw(fmt::format(
        "<path d=\"M{0} {1}L{0} {2}M{3} {1}L{4} {1}M{3} {2}L{4} {2}\" {5} stroke-width=\"1.3\"/>\n",
        svg_number(low->x), svg_number(low->y), svg_number(high->y), svg_number(low->x - 3),
        svg_number(low->x + 3), series_stroke(color)));
  }
}

void draw_series(SvgDrawing& drawing, const Plot& plot, const Series& series, int color) {
  if (series.mark == Series::Mark::points)
    draw_bars(drawing, plot, series, color);
  else
    draw_band(drawing, plot, series, color);
  for (const auto& piece : pieces(plot, series.x, series.y)) {
    if (series.mark != Series::Mark::points && piece.size() > 1)
      drawing.raw(fmt::format("<path d=\"{}\" {} stroke-width=\"2\" stroke-linejoin=\"round\"{}/>\n",
                              path_of(piece), series_stroke(color), dash_array(series.dash)));
    if (series.mark != Series::Mark::line || piece.size() == 1)
      for (const Point& point : piece) drawing.raw(symbol(point, color));
  }
}

struct LegendEntry {
  std::size_t series;
  double x, y;
  std::string name;
};

struct Legend {
  std::vector<LegendEntry> entries;
  double height = 0;
};

constexpr double legend_line = 22, legend_sample = 28, label_line = 18;

// Entries beside each other, row after row.
Legend lay_out_legend(const Figure& figure, double left, double width) {
  Legend legend;
  double x = 0, y = 0;
  for (std::size_t i = 0; i < figure.series.size(); ++i) {
    if (figure.series[i].name.empty()) continue;
    const std::string name = fit_text(figure.series[i].name, width - legend_sample - 8, svg_small_size);
    const double needed = legend_sample + 8 + text_width(name, svg_small_size) + 18;
    if (x > 0 && x + needed > width) {
      x = 0;
      y += legend_line;
    }
    legend.entries.push_back({i, left + x, y, name});
    x += needed;
  }
  if (!legend.entries.empty()) legend.height = y + legend_line + 4;
  return legend;
}

void draw_legend(SvgDrawing& drawing, const Figure& figure, const Legend& legend,
                 const std::vector<int>& colors, double top) {
  for (const LegendEntry& entry : legend.entries) {
    const Series& series = figure.series[entry.series];
    const int color = colors[entry.series];
    const double y = top + entry.y + 11;
    if (series.mark != Series::Mark::points)
      drawing.raw(fmt::format("<path d=\"M{} {}L{} {}\" {} stroke-width=\"2\"{}/>\n", svg_number(entry.x),
                              svg_number(y), svg_number(entry.x + legend_sample), svg_number(y),
                              series_stroke(color), dash_array(series.dash)));
    if (series.mark != Series::Mark::line) drawing.raw(symbol({entry.x + legend_sample / 2, y}, color));
    drawing.text({.x = entry.x + legend_sample + 7, .y = y + 4.5, .size = svg_small_size}, entry.name);
  }
}

void draw_axes(SvgDrawing& drawing, const Plot& plot, const Figure& figure, const std::vector<Tick>& x_ticks,
               const std::vector<Tick>& y_ticks) {
  const double bottom = plot.top + plot.height, right = plot.left + plot.width;
  for (const Tick& tick : x_ticks) {
    const double x = plot.left + plot.width * plot.x.position(tick.value);
    if (tick.label.empty()) {
      drawing.line(x, bottom, x, bottom + 3, "frame");
      continue;
    }
    drawing.line(x, plot.top, x, bottom, "grid");
    drawing.line(x, bottom, x, bottom + 5, "frame");
    drawing.text(
        {.x = x, .y = bottom + 19, .anchor = Anchor::middle, .kind = "quiet", .size = svg_small_size},
        tick.label);
  }
  for (const Tick& tick : y_ticks) {
    const double y = plot.top + plot.height * (1 - plot.y.position(tick.value));
    if (tick.label.empty()) {
      drawing.line(plot.left - 3, y, plot.left, y, "frame");
      continue;
    }
    drawing.line(plot.left, y, right, y, "grid");
    drawing.line(plot.left - 5, y, plot.left, y, "frame");
    drawing.text(
        {.x = plot.left - 9, .y = y + 4.5, .anchor = Anchor::end, .kind = "quiet", .size = svg_small_size},
        tick.label);
  }
  drawing.line(plot.left, plot.top, plot.left, bottom, "frame");
  drawing.line(plot.left, bottom, right, bottom, "frame");
  if (!figure.x.label.empty())
    drawing.text(
        {.x = plot.left + plot.width / 2, .y = bottom + 41, .anchor = Anchor::middle, .kind = "text"},
        fit_text(figure.x.label, plot.width + 2 * plot.left, svg_font_size));
  for (std::size_t i = 0; i < plot.y_name.size(); ++i)
    drawing.text({.x = plot.name_x + label_line * static_cast<double>(i),
                  .y = plot.top + plot.height / 2,
                  .anchor = Anchor::middle,
                  .kind = "text",
                  .turn = -90},
                 plot.y_name[i]);
}

// About as many ticks as their labels leave room for.
int ticks_for(double length, double distance) {
  return std::clamp(static_cast<int>(length / distance), 2, 10);
}

}  // namespace

std::string curves_svg(const Figure& figure, const SvgOptions& options) {
  const double width = options.width, right = 18, top = svg_title_strip + 8;
  AxisScale x_scale(figure.x, all_x(figure)), y_scale(figure.y, all_y(figure));

  const Legend legend = lay_out_legend(figure, 30, width - 30 - right);
  const double below = 26 + (figure.x.label.empty() ? 0 : 24) + legend.height;
  double plot_height = std::max(160.0, options.height - top - below);

  const int y_wanted = ticks_for(plot_height, 55);
  double label_width = 0;
  for (const Tick& tick : y_scale.ticks(y_wanted))
    label_width = std::max(label_width, text_width(tick.label, svg_small_size));
  const std::vector<std::string> y_name = label_lines(figure.y.label, plot_height + 20, svg_font_size);
  const double name_width = y_name.empty() ? 0 : 6 + label_line * static_cast<double>(y_name.size());
  double left = 14 + label_width + name_width;
  double plot_width = std::max(100.0, width - left - right);
  if (figure.equal_axes && figure.x.scale == figure.y.scale) {  // a unit and a decade cannot be compared
    // The plot takes the shape of what it shows; only one that would be too flat or too narrow shows more.
    constexpr double least = 160, highest = 560;
    const double room = plot_width, shape = y_scale.length() / x_scale.length();
    plot_height = std::clamp(plot_width * shape, least, highest);
    plot_width = std::clamp(plot_height / shape, std::min(least, room), room);
    left += (room - plot_width) / 2;
    const double x_unit = plot_width / x_scale.length(), y_unit = plot_height / y_scale.length();
    if (x_unit > y_unit)
      x_scale.stretch(x_unit / y_unit);
    else
      y_scale.stretch(y_unit / x_unit);
  }
  const double height = top + plot_height + below;
  const Plot plot{left,    top,     plot_width, plot_height,
                  x_scale, y_scale, y_name,     left - label_width - name_width + 2};

  SvgDrawing drawing;
  draw_axes(drawing, plot, figure, x_scale.ticks(ticks_for(plot_width, 95)), y_scale.ticks(y_wanted));
  const std::string clip = fmt::format("svg_{}_clip", figure.id);
  // A little room, so that symbols on the edge are whole.
  drawing.raw(fmt::format(
      "<clipPath id=\"{}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath>\n", clip,
      svg_number(left - 5), svg_number(top - 5), svg_number(plot_width + 10), svg_number(plot_height + 10)));
  drawing.raw(fmt::format("<g clip-path=\"url(#{})\">\n", clip));
  const std::vector<int> colors = resolve_colors(figure.series);
  for (std::size_t i = 0; i < figure.series.size(); ++i)
    draw_series(drawing, plot, figure.series[i], colors[i]);
  drawing.raw("</g>\n");
  draw_legend(drawing, figure, legend, colors, top + plot_height + below - legend.height);
  return drawing.finish(figure, options, width, height);
}

}  // namespace attmirror

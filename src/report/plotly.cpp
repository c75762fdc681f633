#include "report/plotly.hpp"

#include "base/json.hpp"
#include "base/utf8.hpp"
#include "report/palette.hpp"
#include "report/typeset.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

// Plotly reads its texts as a little HTML, and %{x} within them as an order: neither must arise from names. Of the
// HTML only the subscripts and superscripts of typeset() are meant.
std::string plain(std::string_view text) {
  std::string markup;
  for (const TypesetPiece& piece : typeset(valid_utf8(text))) {
    std::string escaped;
    for (const char c : piece.text) {
      if (c == '%')
        escaped += "&#37;";
      else if (c == '<')
        escaped += "&lt;";
      else if (c == '>')
        escaped += "&gt;";
      else if (c == '&')
        escaped += "&amp;";
      else
        escaped += c;
    }
    markup += piece.level == Level::lower   ? "<sub>" + escaped + "</sub>"
              : piece.level == Level::upper ? "<sup>" + escaped + "</sup>"
                                            : escaped;
  }
  return markup;
}

bool shows(const Axis& axis, double value) {
  return std::isfinite(value) && (axis.scale == Axis::Scale::linear || value > 0);
}

Json number(const Axis& axis, double value) { return shows(axis, value) ? Json(value) : Json(); }

Json numbers(const Axis& axis, const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(number(axis, value));
  return list;
}

// The polygon about each stretch of a band, null between them.
Json band_trace(const Figure& figure, const Series& series) {
  Json x = Json::array(), y = Json::array();
  std::size_t begin = 0;
  const auto drawable = [&](std::size_t i) {
    return shows(figure.x, series.x[i]) && shows(figure.y, series.low[i]) && shows(figure.y, series.high[i]);
  };
  const auto flush = [&](std::size_t end) {
    if (end <= begin) return;
    if (!x.empty()) {
      x.push_back(nullptr);
      y.push_back(nullptr);
    }
    for (std::size_t i = begin; i < end; ++i) {
      x.push_back(series.x[i]);
      y.push_back(series.high[i]);
    }
    for (std::size_t i = end; i > begin; --i) {
      x.push_back(series.x[i - 1]);
      y.push_back(series.low[i - 1]);
    }
  };
  for (std::size_t i = 0; i < series.x.size(); ++i)
    if (!drawable(i)) {
      flush(i);
      begin = i + 1;
    }
  flush(series.x.size());
  return Json{{"type", "scatter"},
              {"mode", "lines"},
              {"x", x},
              {"y", y},
              {"fill", "toself"},
              {"line", {{"width", 0}}},
              {"role", "band"},
              {"hoverinfo", "skip"},
              {"showlegend", false},
              {"opacity", 1}};
}

std::string_view dash_word(Series::Dash dash) {
  switch (dash) {
    case Series::Dash::dashed:
      return "dash";
    case Series::Dash::dotted:
      return "dot";
    case Series::Dash::solid:
      break;
  }
  return "solid";
}

std::string_view mode_word(const Series& series) {
  switch (series.mark) {
    case Series::Mark::points:
      return "markers";
    case Series::Mark::both:
      return "lines+markers";
    case Series::Mark::line:
      break;
  }
  return "lines";
}

// A line cannot show a point between two gaps: it is drawn as a point. The size of each point's symbol; null where
// none is.
Json lone_points(const Figure& figure, const Series& series) {
  Json sizes = Json::array();
  const auto drawn = [&](std::size_t i) {
    return i < series.x.size() && shows(figure.x, series.x[i]) && shows(figure.y, series.y[i]);
  };
  bool any = false;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    const bool lone = drawn(i) && !(i > 0 && drawn(i - 1)) && !drawn(i + 1);
    sizes.push_back(lone ? 7 : 0);
    any = any || lone;
  }
  return any ? sizes : Json();
}

Json curve_trace(const Figure& figure, const Series& series, int color) {
  // The same shapes as in the static drawing.
  constexpr std::array<std::string_view, 4> symbols{"circle", "square", "diamond", "triangle-up"};
  const std::string symbol = fmt::format("{}{}", symbols[static_cast<std::size_t>(color % 4)],
                                         color < series_color_count ? "" : "-open");
  Json trace{{"type", "scatter"},
             {"mode", mode_word(series)},
             {"x", numbers(figure.x, series.x)},
             {"y", numbers(figure.y, series.y)},
             {"name", plain(series.name)},
             {"showlegend", !series.name.empty()},
             {"line", {{"width", 2}, {"dash", dash_word(series.dash)}}},
             {"marker", {{"size", 8}, {"symbol", symbol}}},
             {"role", "curve"}};
  if (series.mark == Series::Mark::line)
    if (const Json sizes = lone_points(figure, series); !sizes.is_null()) {
      trace["mode"] = "lines+markers";
      trace["marker"]["size"] = sizes;
      trace["marker"]["opacity"] = 1;  // less by default where sizes differ
    }
  // Names go by reference, so that a template holds nothing of the user's.
  std::string hover = series.name.empty() ? "" : "<b>%{fullData.name}</b><br>";
  if (!series.labels.empty()) {
    Json labels = Json::array();
    for (const std::string& label : series.labels) labels.push_back(plain(label));
    trace["text"] = labels;
    hover += "%{text}<br>";
  }
  trace["meta"] = Json::array({plain(figure.x.label.empty() ? "x" : figure.x.label),
                               plain(figure.y.label.empty() ? "y" : figure.y.label)});
  hover += "%{meta[0]}: %{x}<br>%{meta[1]}: %{y}";
  if (!series.low.empty()) {
    Json ends = Json::array();
    for (std::size_t i = 0; i < series.low.size(); ++i)
      ends.push_back(plain(fmt::format("{:.4g} to {:.4g}", series.low[i], series.high[i])));
    trace["customdata"] = ends;
    hover += "<br>band: %{customdata}";
  }
  trace["hovertemplate"] = hover + "<extra></extra>";
  if (series.mark == Series::Mark::points && !series.low.empty()) {
    Json up = Json::array(), down = Json::array();
    for (std::size_t i = 0; i < series.low.size(); ++i) {
      const bool both =
          shows(figure.y, series.y[i]) && shows(figure.y, series.low[i]) && shows(figure.y, series.high[i]);
      up.push_back(both ? series.high[i] - series.y[i] : 0);
      down.push_back(both ? series.y[i] - series.low[i] : 0);
    }
    trace["error_y"] = {{"type", "data"},     {"symmetric", false}, {"array", up},
                        {"arrayminus", down}, {"thickness", 1.3},   {"width", 3}};
  }
  return trace;
}

Json axis_json(const Axis& axis) {
  const bool log = axis.scale == Axis::Scale::log;
  Json json{{"title", {{"text", plain(axis.label)}, {"standoff", 8}}},
            {"type", log ? "log" : "linear"},
            {"automargin", true},
            {"zeroline", false},
            {"ticks", "outside"},
            {"hoverformat", ".5~g"},
            {"exponentformat", "power"},
            {"separatethousands", true}};
  if (axis.whole) json["whole"] = true;
  if (log) json["minor"] = {{"ticks", "outside"}, {"ticklen", 3}, {"showgrid", false}};
  if (axis.range)
    json["range"] = log ? Json::array({std::log10(axis.range->first), std::log10(axis.range->second)})
                        : Json::array({axis.range->first, axis.range->second});
  return json;
}

Json curves_json(const Figure& figure) {
  Json data = Json::array();
  const std::vector<int> colors = resolve_colors(figure.series);
  const auto add = [&](Json trace, std::size_t i) {
    trace["colorIndex"] = colors[i] % series_color_count;
    trace["legendgroup"] = std::to_string(i);  // a band goes with its curve
    data.push_back(std::move(trace));
  };
  for (std::size_t i = 0; i < figure.series.size(); ++i)
    if (!figure.series[i].low.empty() && figure.series[i].mark != Series::Mark::points)
      add(band_trace(figure, figure.series[i]), i);
  for (std::size_t i = 0; i < figure.series.size(); ++i)
    add(curve_trace(figure, figure.series[i], colors[i]), i);
  Json layout{{"xaxis", axis_json(figure.x)}, {"yaxis", axis_json(figure.y)}};
  if (figure.equal_axes && figure.x.scale == figure.y.scale) {
    layout["yaxis"]["scaleanchor"] = "x";
    layout["yaxis"]["scaleratio"] = 1;
    // The plot takes the shape of what it shows, instead of showing empty sides.
    layout["xaxis"]["constrain"] = layout["yaxis"]["constrain"] = "domain";
  }
  std::size_t named = 0;
  for (const Series& series : figure.series) named += series.name.empty() ? 0 : 1;
  layout["showlegend"] = named > 0;
  return Json{{"data", data}, {"layout", layout}};
}

// Cells are placed by their index: equal names would fall into one. z is the step of the color; the script writes the
// numbers of "text" into the cells, because Plotly's own choice of their color is hard to read on middle steps.
Json heatmap_json(const Figure& figure) {
  const Heatmap& map = *figure.heatmap;
  Json z = Json::array(), text = Json::array(), names = Json::array();
  const auto steps = heat_steps_of(map);
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    Json line = Json::array(), words = Json::array(), hover = Json::array();
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const double value = map.values[r][c];
      line.push_back(steps[r][c] < 0 ? Json() : Json(steps[r][c]));
      words.push_back(plain(heat_number(value, map.digits)));
      hover.push_back(fmt::format("{}, {}<br><b>{}</b>", plain(map.rows[r]), plain(map.columns[c]),
                                  std::isnan(value) ? "no value" : plain(fmt::format("{:.6g}", value))));
    }
    z.push_back(line);
    text.push_back(words);
    names.push_back(hover);
  }
  const auto indices = [](std::size_t count) {
    Json list = Json::array();
    for (std::size_t i = 0; i < count; ++i) list.push_back(i);
    return list;
  };
  const auto labels = [](const std::vector<std::string>& words) {
    Json list = Json::array();
    for (const std::string& word : words) list.push_back(plain(word));
    return list;
  };
  const auto axis = [&](const Axis& of, const std::vector<std::string>& words) {
    return Json{{"title", {{"text", plain(of.label)}, {"standoff", 8}}},
                {"tickmode", "array"},
                {"tickvals", indices(words.size())},
                {"ticktext", labels(words)},
                {"automargin", true},
                {"showgrid", false},
                {"zeroline", false},
                {"ticks", ""}};
  };
  Json shapes = Json::array();
  for (const auto& [r, c] : map.marked) {
    const auto x = static_cast<double>(c), y = static_cast<double>(r);
    shapes.push_back({{"type", "rect"},
                      {"x0", x - 0.48},
                      {"x1", x + 0.48},
                      {"y0", y - 0.46},
                      {"y1", y + 0.46},
                      {"line", {{"width", 2.5}}}});
  }
  Json layout{{"xaxis", axis(figure.x, map.columns)},
              {"yaxis", axis(figure.y, map.rows)},
              {"shapes", shapes},
              {"showlegend", false}};
  layout["yaxis"]["autorange"] = "reversed";
  Json trace{{"type", "heatmap"},
             {"role", "heatmap"},
             {"x", indices(map.columns.size())},
             {"y", indices(map.rows.size())},
             {"z", z},
             {"zmin", 0},
             {"zmax", heat_steps - 1},
             {"text", text},
             {"customdata", names},
             {"hovertemplate", "%{customdata}<extra></extra>"},
             {"showscale", false},
             {"xgap", 2},
             {"ygap", 2}};
  return Json{{"data", Json::array({trace})}, {"layout", layout}};
}

}  // namespace

std::string plotly_json(const Figure& figure) {
  figure.validate();
  return dump(figure.heatmap ? heatmap_json(figure) : curves_json(figure));
}

}  // namespace attmirror

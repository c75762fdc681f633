#include "base/utf8.hpp"
#include "report/markup.hpp"
#include "report/svg_drawing.hpp"
#include "report/typeset.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/table.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

std::string_view anchor_word(Anchor anchor) {
  switch (anchor) {
    case Anchor::start:
      return "start";
    case Anchor::middle:
      return "middle";
    case Anchor::end:
      break;
  }
  return "end";
}

// The color of a class on a light screen.
Color light_color(std::string_view kind) {
  const Surface& on = surface(Theme::light);
  if (kind == "quiet" || kind == "tick") return on.quiet_text;
  if (kind == "background" || kind == "empty-cell") return on.background;
  if (kind == "grid") return on.grid;
  if (kind == "frame") return on.frame;
  const auto step = [&](std::string_view prefix) {
    return std::stoi(std::string(kind.substr(prefix.size())));
  };
  if (kind.starts_with("heat-text-")) return heat_text_color(step("heat-text-"), Theme::light);
  if (kind.starts_with("heat-")) return heat_color(step("heat-"), Theme::light);
  return on.text;
}

}  // namespace

void SvgOptions::validate() const {
  const auto check = [](const char* name, int value) {
    if (value < 200 || value > 10000)
      throw bad_input(fmt::format("{} of a drawing is {}: expected 200 to 10000", name, value));
  };
  check("width", width);
  check("height", height);
}

double text_width(std::string_view text, double font_size) {
  return 0.56 * font_size * static_cast<double>(display_width(text));
}

std::string fit_text(std::string_view text, double width, double font_size) {
  if (text_width(text, font_size) <= width) return std::string(text);
  std::string cut;
  while (!text.empty()) {
    const Letter letter = first_letter(text);
    if (text_width(cut, font_size) + 2 * 0.56 * font_size > width) break;
    cut += text.substr(0, letter.bytes);
    text.remove_prefix(letter.bytes);
  }
  return cut + "…";
}

std::vector<std::string> label_lines(std::string_view label, double width, double font_size) {
  if (label.empty()) return {};
  if (text_width(label, font_size) <= width) return {std::string(label)};
  // At the last space that leaves the first line short enough.
  std::size_t at = std::string_view::npos;
  for (std::size_t space = label.find(' '); space != std::string_view::npos;
       space = label.find(' ', space + 1))
    if (text_width(label.substr(0, space), font_size) <= width) at = space;
  if (at == std::string_view::npos) return {fit_text(label, width, font_size)};
  return {std::string(label.substr(0, at)), fit_text(label.substr(at + 1), width, font_size)};
}

std::string svg_number(double value) {
  // Far outside of the picture is outside: renderers count in single precision.
  std::string text = fmt::format("{:.2f}", std::clamp(value, -1e5, 1e5));
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string fill_of(std::string_view kind) {
  return fmt::format("class=\"{}\" fill=\"{}\"", kind, to_hex(light_color(kind)));
}

std::string series_stroke(int color) {
  return fmt::format("class=\"stroke-{}\" fill=\"none\" stroke=\"{}\"", color % series_color_count,
                     to_hex(series_color(color, Theme::light)));
}

std::string series_fill(int color) {
  return fmt::format("class=\"fill-{}\" fill=\"{}\"", color % series_color_count,
                     to_hex(series_color(color, Theme::light)));
}

void SvgDrawing::text(const SvgText& place, std::string_view words) {
  const std::string x = svg_number(place.x), y = svg_number(place.y);
  body_ +=
      fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" font-size=\"{}\"{} {}>{}</text>\n", x, y,
                  anchor_word(place.anchor), svg_number(place.size),
                  place.turn == 0 ? "" : fmt::format(" transform=\"rotate({} {} {})\"", place.turn, x, y),
                  fill_of(place.kind), typeset_svg(words, place.size));
}

void SvgDrawing::line(double x1, double y1, double x2, double y2, std::string_view kind) {
  body_ += fmt::format("<path d=\"M{} {}L{} {}\" class=\"{}\" stroke=\"{}\"/>\n", svg_number(x1),
                       svg_number(y1), svg_number(x2), svg_number(y2), kind, to_hex(light_color(kind)));
}

void SvgDrawing::rectangle(double x, double y, double width, double height, std::string_view kind,
                           std::string_view more) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}{}{}/>\n", svg_number(x),
                       svg_number(y), svg_number(width), svg_number(height), fill_of(kind),
                       more.empty() ? "" : " ", more);
}

std::string SvgDrawing::finish(const Figure& figure, const SvgOptions& options, double width,
                               double height) const {
  const bool alone = options.colors == SvgOptions::Colors::standalone;
  const std::string w = svg_number(width), h = svg_number(height);
  // Ids are unique in the page because those of figures are.
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{} {} {} {}\" width=\"{}\" height=\"{}\"{} "
      "role=\"img\" "
      "aria-labelledby=\"svg_{}_title svg_{}_desc\" font-family=\"system-ui, -apple-system, 'Segoe UI', "
      "Roboto, "
      "'Helvetica Neue', Arial, sans-serif\">\n<title id=\"svg_{}_title\">{}</title>\n<desc "
      "id=\"svg_{}_desc\">{}</desc>\n",
      0, alone ? "0" : svg_number(svg_title_strip), w, alone ? h : svg_number(height - svg_title_strip), w,
      alone ? h : svg_number(height - svg_title_strip),
      alone ? "" : fmt::format(" data-whole=\"0 0 {} {}\"", w, h), figure.id, figure.id, figure.id,
      escape_markup(figure.title), figure.id, escape_markup(figure.description));
  if (alone) svg += "<style>" + svg_dark_style() + "</style>\n";
  SvgDrawing top;
  top.rectangle(0, 0, width, height, "background");
  top.text({.x = width / 2, .y = 23, .anchor = Anchor::middle, .kind = "title", .size = 16},
           fit_text(figure.title, width - 20, 16));
  return svg + top.body_ + body_ + "</svg>\n";
}

std::string svg_dark_style() {
  const Surface& on = surface(Theme::dark);
  std::string css = "@media (prefers-color-scheme:dark){";
  css += fmt::format(
      ".text,.title{{fill:{0}}}.quiet{{fill:{1}}}.background,.empty-cell{{fill:{2}}}.grid{{stroke:{3}}}"
      ".frame{{stroke:{4}}}.tick{{stroke:{1}}}.mark{{stroke:{5}}}",
      to_hex(on.text), to_hex(on.quiet_text), to_hex(on.background), to_hex(on.grid), to_hex(on.frame),
      to_hex(series_color(mark_color, Theme::dark)));
  for (int i = 0; i < series_color_count; ++i)
    css += fmt::format(".stroke-{0}{{stroke:{1}}}.fill-{0}{{fill:{1}}}", i,
                       to_hex(series_color(i, Theme::dark)));
  for (int i = 0; i < heat_steps; ++i)
    css += fmt::format(".heat-{0}{{fill:{1}}}.heat-text-{0}{{fill:{2}}}", i,
                       to_hex(heat_color(i, Theme::dark)), to_hex(heat_text_color(i, Theme::dark)));
  return css + "}";
}

std::string to_svg(const Figure& figure, const SvgOptions& options) {
  figure.validate();
  options.validate();
  return figure.heatmap ? heatmap_svg(figure, options) : curves_svg(figure, options);
}

}  // namespace attmirror

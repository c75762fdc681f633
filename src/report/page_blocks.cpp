#include "base/json.hpp"
#include "base/utf8.hpp"
#include "report/markup.hpp"
#include "report/page_html.hpp"
#include "report/patch_maps.hpp"
#include "report/plotly.hpp"
#include "report/token_maps.hpp"
#include "report/typeset.hpp"
#include <attmirror/report/svg.hpp>
#include <attmirror/report/table_files.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace attmirror {

namespace {

std::string html_of(const Paragraph& paragraph, Drawing) {
  return "<p>" + inline_markup(paragraph.text) + "</p>\n";
}

std::string html_of(const CodeBlock& code, Drawing) {
  return "<div class=\"code\"><pre tabindex=\"0\"><code>" + escape_markup(code.text) +
         "</code></pre><button type=\"button\" class=\"copy needs-script\">Copy</button></div>\n";
}

std::string html_of(const Facts& facts, Drawing) {
  std::string html = "<div class=\"facts\">";
  if (!facts.title.empty()) html += "<h3>" + typeset_html(facts.title) + "</h3>";
  html += "<dl>\n";
  for (const auto& [name, value] : facts.entries)
    html += "<div><dt>" + typeset_html(name) + "</dt><dd>" + inline_markup(value) + "</dd></div>\n";
  return html + "</dl></div>\n";
}

std::string_view cell_class(const Column& column, std::string_view text, bool marked) {
  if (marked) return " class=\"marked\"";
  if (column.align == Align::right)
    return text.size() <= 24 ? " class=\"number short\"" : " class=\"number\"";
  return text.size() > 48 ? " class=\"long\"" : "";
}

// What the marks mean, for those that the table has.
std::string legend_html(const TableBlock& block) {
  std::string html;
  for (const auto& [tone, meaning] : block.legend)
    if (std::ranges::find(block.tones, tone) != block.tones.end())
      html += fmt::format("<li><span class=\"verdict {}\">{}</span>{}</li>\n", tone_class(tone),
                          tone_mark(tone), inline_markup(meaning));
  return html.empty() ? html : "<ul class=\"legend\" aria-label=\"Marks\">\n" + html + "</ul>\n";
}

// Many columns are set smaller, and their numbers may break before ±.
std::string_view table_class(const TableBlock& block) {
  constexpr std::size_t few = 7;
  return block.cards ? " cards" : block.table.columns.size() > few ? " many" : "";
}

std::string html_of(const TableBlock& block, Drawing) {
  const Table& table = block.table;
  const std::string title = table.title.empty() ? block.id : table.title;
  std::string html = fmt::format(
      "<div class=\"table{2}\" id=\"table_{0}\" data-name=\"{0}\">\n<div class=\"above\"><h3 "
      "id=\"table_{0}_title\">{1}</h3></div>\n{3}<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-labelledby=\"table_{0}_title\">\n<table><thead><tr>",
      block.id, typeset_html(title), table_class(block), legend_html(block));
  for (const Column& column : table.columns)
    html += fmt::format("<th scope=\"col\"{}>{}</th>",
                        column.align == Align::right ? " class=\"number\"" : "", typeset_html(column.name));
  html += "</tr></thead>\n<tbody>\n";
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const Tone tone = block.tones.empty() ? Tone::none : block.tones[r];
    html += "<tr>";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const std::string text = typeset_html(table.rows[r][c]);
      const bool marked = tone != Tone::none && c == block.tone_column;
      html += fmt::format("<td{}", cell_class(table.columns[c], table.rows[r][c], marked));
      // Cards show it before the cell; an empty one is left out of them.
      if (block.cards) html += fmt::format(" data-label=\"{}\"", escape_markup(table.columns[c].name));
      html += ">";
      if (marked)
        html += verdict_span(tone, text);
      else
        html += text;
      html += "</td>";
    }
    html += "</tr>\n";
  }
  html += "</tbody></table></div>\n";
  // The files themselves, so that they can be had from the page alone.
  const Json files{{"csv", to_csv(table)}, {"tex", valid_utf8(to_latex(table))}};
  return html + fmt::format(
                    "<script type=\"application/json\" class=\"files\">{1}</script>\n"
                    "<p class=\"actions needs-script\"><button type=\"button\" class=\"save\" "
                    "data-kind=\"csv\" aria-label=\"Download table {0} as CSV\">CSV</button><button "
                    "type=\"button\" class=\"save\" data-kind=\"tex\" aria-label=\"Download table {0} as "
                    "LaTeX\">LaTeX</button></p></div>\n",
                    escape_markup(title), json_inside_script(dump(files)));
}

std::string html_of(const Figure& figure, Drawing drawing) {
  const std::string title = escape_markup(figure.title);
  std::string html = fmt::format(
      "<figure id=\"figure_{0}\" data-name=\"{0}\" aria-labelledby=\"figure_{0}_title\">\n"
      "<h3 id=\"figure_{0}_title\">{1}</h3>\n",
      figure.id, typeset_html(figure.title));
  html += "<div class=\"static\" tabindex=\"0\" role=\"group\" aria-label=\"Drawing: " + title + "\">\n" +
          to_svg(figure, {.colors = SvgOptions::Colors::page}) + "</div>\n";
  if (drawing == Drawing::interactive)
    html += fmt::format(
        "<div class=\"plot\" role=\"group\" aria-label=\"Interactive figure: {}\" "
        "aria-describedby=\"figure_{}_words\" hidden></div>\n<script type=\"application/json\" "
        "class=\"plotly\">{}</script>\n",
        title, figure.id, json_inside_script(plotly_json(figure)));
  html += "<figcaption>";
  if (!figure.caption.empty()) html += "<p>" + inline_markup(figure.caption) + "</p>";
  html += fmt::format(
      "<div class=\"actions\"><details class=\"words\"><summary>In words</summary><p "
      "id=\"figure_{}_words\">{}</p></details><button type=\"button\" class=\"save needs-script\" "
      "data-kind=\"svg\" aria-label=\"Download figure {} as SVG\">SVG</button></div></figcaption></figure>\n",
      figure.id, typeset_html(figure.description), title);
  return html;
}

std::string html_of(const TokenMaps& maps, Drawing) { return html_of(maps); }
std::string html_of(const PatchMaps& maps, Drawing) { return html_of(maps); }

std::string html_of(const Folded& folded, Drawing drawing) {
  std::string html =
      "<details class=\"folded\"><summary>" + typeset_html(folded.title) + "</summary>\n<div>\n";
  for (const PlainBlock& block : folded.blocks)
    html += std::visit([drawing](const auto& one) { return html_of(one, drawing); }, block);
  return html + "</div></details>\n";
}

}  // namespace

std::string_view tone_class(Tone tone) {
  switch (tone) {
    case Tone::good:
      return "good";
    case Tone::bad:
      return "bad";
    case Tone::caution:
      return "caution";
    case Tone::neutral:
      return "neutral";
    case Tone::open:
      return "open";
    case Tone::none:
      break;
  }
  return "plain";
}

std::string tone_mark(Tone tone) {
  const auto mark = [&](std::string_view symbol) {
    return fmt::format("<span class=\"mark\" role=\"img\" aria-label=\"{}\">{}</span>", tone_class(tone),
                       symbol);
  };
  switch (tone) {
    case Tone::good:
      return mark("✓");
    case Tone::bad:
      return mark("✗");
    case Tone::caution:
      return mark("!");
    case Tone::neutral:
      return mark("•");
    case Tone::open:
      return mark("?");
    case Tone::none:
      break;
  }
  return "";
}

std::string verdict_span(Tone tone, std::string_view html) {
  const std::string mark = tone_mark(tone);
  // In a narrow column the mark stays in the line of the first word.
  return fmt::format("<span class=\"verdict {}\">{}{}{}</span>", tone_class(tone), mark,
                     mark.empty() ? "" : "\u00A0", html);
}

std::string block_html(const PageBlock& block, Drawing drawing) {
  return std::visit([drawing](const auto& one) { return html_of(one, drawing); }, block);
}

}  // namespace attmirror

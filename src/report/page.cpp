#include "base/atomic_file.hpp"
#include "base/json.hpp"
#include "base/utf8.hpp"
#include "report/cited_papers.hpp"
#include "report/embedded.hpp"
#include "report/markup.hpp"
#include "report/page_html.hpp"
#include "report/palette.hpp"
#include "report/svg_drawing.hpp"
#include "report/token_maps.hpp"
#include "report/typeset.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/report/svg.hpp>
#include <attmirror/report/table_files.hpp>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>
#include <system_error>

#include <fmt/format.h>

namespace attmirror {

namespace {

// Nothing may be asked of any network, whatever a name or a cell says. Styles and scripts are in the page itself;
// pictures that Plotly makes for download are data of the page.
constexpr std::string_view security_policy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; "
    "form-action 'none'";

// Ids name files too, and on some disks A.csv is a.csv.
class Ids {
 public:
  explicit Ids(const char* what) : what_(what) {}
  void add(const std::string& id) {
    if (!is_page_id(id))
      throw bad_input(
          fmt::format("{} id is \"{}\": expected letters, digits and dashes", what_, valid_utf8(id)));
    std::string folded = id;
    std::ranges::transform(folded, folded.begin(), [](unsigned char c) { return std::tolower(c); });
    if (!seen_.insert(folded).second) throw bad_input(fmt::format("{} id {} occurs twice", what_, id));
  }

 private:
  const char* what_;
  std::set<std::string> seen_;
};

void check(const TableBlock& block) {
  block.table.validate();
  if (!block.tones.empty() && block.tones.size() != block.table.rows.size())
    throw bad_input(fmt::format("table {} has {} tones and {} rows", block.id, block.tones.size(),
                                block.table.rows.size()));
  if (block.tone_column >= block.table.columns.size())
    throw bad_input(fmt::format("tone_column of table {} is {}: there are {} columns", block.id,
                                block.tone_column, block.table.columns.size()));
}

std::string contents_html(const Page& page) {
  std::string html =
      "<nav class=\"contents\" aria-label=\"Contents\"><details open><summary>Contents</summary><ol>\n";
  for (const Section& section : page.sections)
    html += fmt::format("<li><a href=\"#{}\">{}<span class=\"verdict {}\">{}</span></a></li>\n", section.id,
                        typeset_html(section.title), tone_class(section.badge_tone),
                        tone_mark(section.badge_tone));
  return html + "</ol></details></nav>\n";
}

std::string section_html(const Section& section, Drawing drawing) {
  std::string html = fmt::format(
      "<section id=\"{0}\" aria-labelledby=\"section_{0}\">\n<h2 id=\"section_{0}\">{1} <a "
      "class=\"anchor\" href=\"#{0}\" aria-label=\"Link to this section\">#</a></h2>\n",
      section.id, typeset_html(section.title));
  if (!section.badge.empty())
    html += fmt::format("<p class=\"badge\">{}</p>\n",
                        verdict_span(section.badge_tone, typeset_html(section.badge)));
  for (const PageBlock& block : section.blocks) html += block_html(block, drawing);
  return html + "</section>\n";
}

// P1 to P4 by their authors and titles, where the page mentions them.
std::string papers_html(const Page& page) {
  const std::vector<CitedPaper> papers = papers_cited_by(page);
  if (papers.empty()) return "";
  std::string html = "<dl class=\"papers\" aria-label=\"Papers\">\n";
  for (const CitedPaper& paper : papers)
    html += fmt::format(
        "<div><dt>{}</dt><dd>{}: <a href=\"{}\" rel=\"noopener noreferrer\">{}</a> ({})</dd></div>\n",
        paper.id, escape_markup(paper.authors), paper.address, escape_markup(paper.title), paper.year);
  return html + "</dl>\n";
}

// One set of names, three sets of values: the screen's own wish, the reader's button, and paper.
std::string theme_css() {
  const std::string light = css_colors(Theme::light) + "color-scheme:light;",
                    dark = css_colors(Theme::dark) + "color-scheme:dark;";
  return ":root{" + light + "}\n@media (prefers-color-scheme:dark){:root:not([data-theme=light]){" + dark +
         "}}\n:root[data-theme=dark]{" + dark + "}\n@media print{:root:root:root{" + light + "}}\n";
}

// Colors of the drawings by class, which beat the attributes that files need.
std::string drawing_css() {
  std::string css =
      ".static .text,.static .title{fill:var(--text)}.static .quiet{fill:var(--quiet)}.static .background,"
      ".static .empty-cell{fill:var(--background)}.static .grid{stroke:var(--grid)}.static "
      ".frame{stroke:var(--frame)}"
      ".static .tick{stroke:var(--quiet)}.static .mark{stroke:var(--mark)}";
  for (int i = 0; i < series_color_count; ++i)
    css += fmt::format(".stroke-{0}{{stroke:var(--series-{0})}}.fill-{0}{{fill:var(--series-{0})}}", i);
  for (int i = 0; i < heat_steps; ++i)
    css += fmt::format(".heat-{0}{{fill:var(--heat-{0})}}.heat-text-{0}{{fill:var(--heat-text-{0})}}", i);
  return css + "\n" + token_css();
}

template <class Block>
bool has_block(const Page& page) {
  return std::ranges::any_of(page.sections, [](const Section& section) {
    return std::ranges::any_of(section.blocks,
                               [](const PageBlock& block) { return std::holds_alternative<Block>(block); });
  });
}

std::string head_html(const Page& page) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "http-equiv=\"Content-Security-Policy\" content=\"{}\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, "
      "initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" "
      "content=\"attmirror {}\">\n<link rel=\"icon\" "
      "href=\"data:,\">\n<title>{}</title>\n<style>\n{}{}{}</style>\n</head>\n",
      security_policy, version(), escape_markup(page.title), theme_css(), drawing_css(), page_css());
}

}  // namespace

void Page::validate() const {
  if (title.empty()) throw bad_input("the page has no title");
  Ids section_ids("section"), figure_ids("figure"), table_ids("table"), maps_ids("maps");
  for (const Section& section : sections) {
    section_ids.add(section.id);
    if (section.title.empty()) throw bad_input(fmt::format("section {} has no title", section.id));
    for (const PageBlock& block : section.blocks)
      if (const auto* maps = std::get_if<TokenMaps>(&block)) {
        maps->validate();
        maps_ids.add(maps->id);
      } else if (const auto* patches = std::get_if<PatchMaps>(&block)) {
        patches->validate();
        maps_ids.add(patches->id);
      }
  }
  for_each_item(*this, [&](const auto& item) {
    if constexpr (std::is_same_v<std::decay_t<decltype(item)>, Figure>) {
      item.validate();
      figure_ids.add(item.id);
    } else {
      table_ids.add(item.id);
      check(item);
    }
  });
}

bool has_plotly() { return !plotly_source().empty(); }

std::string page_html(const Page& page, std::string_view plotly) {
  page.validate();
  std::size_t figures = 0;
  for_each_item(page, [&](const auto& item) {
    if constexpr (std::is_same_v<std::decay_t<decltype(item)>, Figure>) ++figures;
  });
  const Drawing drawing = plotly.empty() ? Drawing::fixed : Drawing::interactive;
  const bool contents = page.sections.size() > 2;

  std::string html = head_html(page);
  html += fmt::format("<body class=\"{}\">\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n",
                      contents ? "with-contents" : "");
  html += "<header><div><h1>" + typeset_html(page.title) + "</h1>";
  if (!page.subtitle.empty()) html += "<p class=\"subtitle\">" + inline_markup(page.subtitle) + "</p>";
  html +=
      "</div><button type=\"button\" id=\"theme\" class=\"needs-script\" "
      "aria-pressed=\"false\">Dark</button></header>\n";
  if (contents) html += contents_html(page);
  html += "<main id=\"main\" tabindex=\"-1\">\n";
  if (!page.conclusion.empty())
    html += "<p class=\"conclusion\">" + inline_markup(page.conclusion) + "</p>\n";
  html += papers_html(page);
  if (figures > 0 && plotly.empty())
    html +=
        "<p class=\"notice\">The figures are static drawings: this attmirror was built without Plotly.</p>\n";
  else if (figures > 0)
    html += "<noscript><p class=\"notice\">Without scripts the figures are static drawings.</p></noscript>\n";
  for (const Section& section : page.sections) html += section_html(section, drawing);
  html += "</main>\n<footer>" + inline_markup(page.footer) + "</footer>\n";
  if (figures > 0 && !plotly.empty()) html += "<script>" + inside_script(plotly) + "</script>\n";
  // What a drawing lacks as a file of its own.
  if (figures > 0)
    html += "<script type=\"application/json\" id=\"dark-style\">" +
            json_inside_script(dump(svg_dark_style())) + "</script>\n";
  if (has_block<PatchMaps>(page)) html += "<script>" + inside_script(patch_maps_js()) + "</script>\n";
  if (has_block<TokenMaps>(page)) html += "<script>" + inside_script(token_maps_js()) + "</script>\n";
  html += "<script>" + inside_script(page_js()) + "</script>\n</body>\n</html>\n";
  return html;
}

std::string to_html(const Page& page) { return page_html(page, plotly_source()); }

// By the lines that every page of ours has near its beginning.
std::optional<std::string> page_title(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string head(2048, '\0');
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  constexpr std::string_view generator = "<meta name=\"generator\" content=\"attmirror", open = "<title>";
  const std::size_t ours = head.find(generator), begin = head.find(open, ours);
  if (ours == std::string::npos) return std::nullopt;
  if (begin == std::string::npos) return std::string();
  return head.substr(begin + open.size(), head.find("</title>", begin) - begin - open.size());
}

namespace {

// report.html has figures/ and tables/ beside it, other.html other-figures/ and other-tables/: pages may share
// a folder.
std::filesystem::path folder_beside(const std::filesystem::path& page, const std::string& name) {
  const std::string stem = page.stem().string();
  return page.parent_path() / (stem == "report" ? name : stem + "-" + name);
}

}  // namespace

std::vector<std::filesystem::path> page_files(const Page& page, const std::filesystem::path& path) {
  page.validate();
  std::vector<std::filesystem::path> files{path};
  for_each_item(page, [&](const auto& item) {
    if constexpr (std::is_same_v<std::decay_t<decltype(item)>, Figure>) {
      files.push_back(folder_beside(path, "figures") / (item.id + ".svg"));
    } else {
      files.push_back(folder_beside(path, "tables") / (item.id + ".csv"));
      files.push_back(folder_beside(path, "tables") / (item.id + ".tex"));
    }
  });
  return files;
}

std::vector<std::filesystem::path> write_page(const Page& page, const std::filesystem::path& path) {
  const std::vector<std::filesystem::path> files = page_files(page, path);
  const std::string html = to_html(page);
  for (const auto& file : files) {
    if (file == path) continue;
    std::error_code error;
    std::filesystem::create_directory(file.parent_path(), error);
    if (error)
      throw environment_error(
          fmt::format("cannot make folder {}: {}", file.parent_path().string(), error.message()));
  }
  auto file = files.begin() + 1;
  for_each_item(page, [&](const auto& item) {
    if constexpr (std::is_same_v<std::decay_t<decltype(item)>, Figure>) {
      write_file_atomically(*file++, to_svg(item));
    } else {
      write_file_atomically(*file++, to_csv(item.table));
      write_file_atomically(*file++, valid_utf8(to_latex(item.table)));
    }
  });
  // The page last: where it is, its files are too.
  write_file_atomically(path, html);
  return files;
}

}  // namespace attmirror

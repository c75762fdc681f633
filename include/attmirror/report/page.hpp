// A report: one HTML page that needs nothing else, with zoomable figures; each figure also as an SVG file,
// each table as CSV and LaTeX.
//
// A Page is plain data in reading order. The page works offline and loads nothing from the network. Plotly
// draws the interactive figures if it was available when attmirror was built; the static SVG is in the page
// in any case, for readers without scripts, for print, and for builds without Plotly, which say so.
#pragma once

#include <attmirror/base/figure.hpp>
#include <attmirror/base/table.hpp>
#include <attmirror/report/patch_maps.hpp>
#include <attmirror/report/token_maps.hpp>

#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace attmirror {

// A paragraph of text.
struct Paragraph {
  std::string
      text;  // plain; `code` between backticks; links as [text](#section) within the page or to https://
};

// Lines to be shown as they are.
struct CodeBlock {
  std::string text;  // a command to repeat something; the page has a button to copy it
};

// Name and value, one per line: a configuration, versions, seeds.
struct Facts {
  std::string title;
  std::vector<std::pair<std::string, std::string>> entries;
};

// How a row of a table is meant; shown as a mark next to the text of `tone_column` (✓ ✗ ! • ?),
// never by color alone.
enum class Tone { none, good, bad, caution, neutral, open };

// A table, with a color for its verdicts.
struct TableBlock {
  std::string id;                // letters, digits and dashes: the name of its files
  Table table;                   // its title is the caption
  std::vector<Tone> tones = {};  // one per row, or none at all
  std::size_t tone_column = 0;
  // What the marks mean, written above the table for those that occur in it.
  std::vector<std::pair<Tone, std::string>> legend = {};
  // On a narrow screen each row becomes a card with the names of the columns in it, the marked cell first; otherwise
  // the table scrolls sideways.
  bool cards = false;
};

// What a section may hold.
using PlainBlock = std::variant<Paragraph, CodeBlock, Facts, TableBlock, Figure>;

// Hidden until opened: details that most readers skip.
struct Folded {
  std::string title;
  std::vector<PlainBlock> blocks;
};

// What a section may hold, parts that are folded away included.
using PageBlock = std::variant<Paragraph, CodeBlock, Facts, TableBlock, Figure, Folded, TokenMaps, PatchMaps>;

// A part of a page, with a heading.
struct Section {
  std::string id;  // letters, digits and dashes: #id is a link to it
  std::string title;
  std::string badge = {};  // a word next to the title ("12 reproduced, 1 artefact"), with its tone
  Tone badge_tone = Tone::none;
  std::vector<PageBlock> blocks;
};

// An HTML page as data.
struct Page {
  std::string title;
  std::string subtitle = {};
  // What came out, in one sentence that a reader can repeat, computed from what the page shows; stands first.
  std::string conclusion = {};
  std::vector<Section> sections;  // listed in a table of contents if there are more than two
  std::string footer = {};        // version, commit, when

  // Throws Error (bad input) for anything that is not well formed, including duplicate ids.
  void validate() const;
};

// Whether Plotly is built in.
bool has_plotly();

// The page as one HTML file that needs no other.
std::string to_html(const Page& page);

// What write_page() would write, the page first.
std::vector<std::filesystem::path> page_files(const Page& page, const std::filesystem::path& path);

// `path` and, in folders next to it, figures/ID.svg, tables/ID.csv and tables/ID.tex (NAME-figures and
// NAME-tables for a page NAME.html that is not report.html), each written atomically. Returns all files
// written, the page first.
std::vector<std::filesystem::path> write_page(const Page& page, const std::filesystem::path& path);

}  // namespace attmirror

#include "report/cited_papers.hpp"

#include <algorithm>
#include <string>

namespace attmirror {

namespace {

bool is_word_letter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// "P1" as a word; "P10" and "MP1" are others.
bool mentions(std::string_view text, std::string_view id) {
  for (std::size_t at = text.find(id); at != std::string_view::npos; at = text.find(id, at + 1)) {
    const std::size_t end = at + id.size();
    if ((at == 0 || !is_word_letter(text[at - 1])) && (end == text.size() || !is_word_letter(text[end])))
      return true;
  }
  return false;
}

// Calls look(text) for everything that a reader sees in the block.
template <class Look>
void read(const Paragraph& block, const Look& look) {
  look(block.text);
}
template <class Look>
void read(const CodeBlock&, const Look&) {}
template <class Look>
void read(const Facts& block, const Look& look) {
  look(block.title);
  for (const auto& [name, value] : block.entries) {
    look(name);
    look(value);
  }
}
template <class Look>
void read(const TableBlock& block, const Look& look) {
  look(block.table.title);
  for (const Column& column : block.table.columns) look(column.name);
  for (const auto& row : block.table.rows)
    for (const std::string& cell : row) look(cell);
}
template <class Look>
void read(const Figure& block, const Look& look) {
  for (const std::string* text :
       {&block.title, &block.caption, &block.description, &block.x.label, &block.y.label})
    look(*text);
  for (const Series& series : block.series) look(series.name);
}
template <class Look>
void read(const TokenMaps& block, const Look& look) {
  look(block.title);
  look(block.caption);
}
template <class Look>
void read(const PatchMaps& block, const Look& look) {
  look(block.title);
  look(block.caption);
}
template <class Look>
void read(const Folded& block, const Look& look) {
  look(block.title);
  for (const PlainBlock& inner : block.blocks)
    std::visit([&look](const auto& one) { read(one, look); }, inner);
}

}  // namespace

std::vector<CitedPaper> papers_cited_by(const Page& page) {
  std::array<bool, cited_papers.size()> cited{};
  const auto look = [&](const std::string& text) {
    for (std::size_t i = 0; i < cited.size(); ++i) cited[i] = cited[i] || mentions(text, cited_papers[i].id);
  };
  look(page.title);
  look(page.subtitle);
  look(page.conclusion);
  for (const Section& section : page.sections) {
    look(section.title);
    for (const PageBlock& block : section.blocks)
      std::visit([&look](const auto& one) { read(one, look); }, block);
  }
  std::vector<CitedPaper> papers;
  for (std::size_t i = 0; i < cited.size(); ++i)
    if (cited[i]) papers.push_back(cited_papers[i]);
  return papers;
}

}  // namespace attmirror

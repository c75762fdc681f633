// How a page becomes HTML. Internal.
#pragma once

#include <attmirror/report/page.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace attmirror {

// to_html() with this Plotly, or without where it is empty: tests make both pages with one build.
std::string page_html(const Page& page, std::string_view plotly);

// The title of the page that lies at `path`, as it stands in the HTML; none where the file is no page that
// attmirror wrote.
std::optional<std::string> page_title(const std::filesystem::path& path);

// page_blocks.cpp. `interactive`: the figure has what Plotly needs as well.
enum class Drawing { fixed, interactive };
std::string block_html(const PageBlock& block, Drawing drawing);

// A mark that does not need color: "✓", "✗", "!", "•", "?", each with its word for those who listen.
std::string tone_mark(Tone tone);
std::string_view tone_class(Tone tone);  // "good"
// A text, which is HTML already, behind its mark and in its color.
std::string verdict_span(Tone tone, std::string_view html);

// Calls visit(const Figure&) or visit(const TableBlock&) for each in the page, folded ones included, in their order.
template <class Visit>
void for_each_item(const Page& page, Visit visit) {
  const auto look = [&visit](const auto& block) {
    using Block = std::decay_t<decltype(block)>;
    if constexpr (std::is_same_v<Block, Figure> || std::is_same_v<Block, TableBlock>) visit(block);
  };
  for (const Section& section : page.sections)
    for (const PageBlock& block : section.blocks)
      if (const auto* folded = std::get_if<Folded>(&block))
        for (const PlainBlock& inner : folded->blocks) std::visit(look, inner);
      else
        std::visit(look, block);
}

}  // namespace attmirror

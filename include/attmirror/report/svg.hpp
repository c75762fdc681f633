// A figure as a static SVG drawing: for papers, for print, and for readers without scripts.
#pragma once

#include <attmirror/base/figure.hpp>

#include <string>

namespace attmirror {

struct SvgOptions {
  int width = 720, height = 440;  // of the drawing; a heatmap takes the height it needs
  // Colors by class names and CSS variables of the page, or written out, for a file that stands alone (with a rule for
  // dark screens).
  enum class Colors { standalone, page } colors = Colors::standalone;

  void validate() const;
};

// Well-formed XML with <title> and <desc>. Same figure, same bytes.
std::string to_svg(const Figure& figure, const SvgOptions& options = {});

}  // namespace attmirror

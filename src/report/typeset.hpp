// Mathematics as texts have it in the source and in a terminal ("W_mm", "(log k)^-a", "K Q^T", "-0.08"), set with real
// subscripts, superscripts and minus signs where a page or a figure shows it. Internal.
//
// A subscript is one to three letters or digits after a single letter, a bracket or a bar: file names and words with
// underscores stay as they are. A superscript is what follows ^: a number, a word, or anything within brackets. A minus
// is a hyphen before a number ("-0.08 to 0.43") or between a number or a letter and something else ("1 - cos", "T - 1");
// those of words, names, dates and exponents ("md-1.1", "2026-01-02", "1e-05") stay hyphens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

enum class Level { line, lower, upper };

struct TypesetPiece {
  Level level = Level::line;
  std::string text;
};

std::vector<TypesetPiece> typeset(std::string_view text);

// Escaped, with <sub> and <sup>.
std::string typeset_html(std::string_view text);

// Escaped, with <tspan> raised and lowered; `size` is that of the letters on the line.
std::string typeset_svg(std::string_view text, double size);

}  // namespace attmirror

// Tables for other programs: CSV for spreadsheets and pandas, LaTeX (booktabs) for papers.
#pragma once

#include <attmirror/base/table.hpp>

#include <string>

namespace attmirror {

// RFC 4180: a line of names, lines end with CR LF, cells with commas, quotes or line ends are in quotes.
std::string to_csv(const Table& table);

// A table environment with tabular and booktabs rules; the title is the caption. Special characters are escaped, and
// the letters of our tables that LaTeX lacks in text (‖, ℓ, Greek, ±, ≤, superscripts) become their math.
std::string to_latex(const Table& table);

}  // namespace attmirror

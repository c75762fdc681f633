// The table of which-margin in words, as a table and as a page. Internal.
#pragma once

#include <attmirror/base/table.hpp>
#include <attmirror/report/page.hpp>
#include <attmirror/sweep/which_margin.hpp>

#include <string>
#include <utility>
#include <vector>

namespace attmirror {

// From this share of the largest margin on, a row counts as maximizing it.
inline constexpr double maximizing_share = 0.95;

enum class Lettering {
  plain,
  typeset
};  // l1.75 and md:1.1 for terminals; ℓ1.75 and "ℓ1.1 mirror descent" for pages

// One sentence: what a reader who reads nothing else should take away.
std::string which_margin_conclusion(const WhichMargin& table, Lettering lettering);

// Shares by row and norm. The predicted norm has a *, a row that is not near its limit a !, and a cell
// without a certificate says so.
Table which_margin_table(const WhichMargin& table, Lettering lettering);

// What the marks mean, for those that occur, and the remarks on rows; a sentence each.
std::vector<std::string> which_margin_notes(const WhichMargin& table, Lettering lettering);

// `facts` say where the rows come from: data, starts, steps, the rule of the step sizes.
Page which_margin_page(const WhichMargin& table, std::vector<std::pair<std::string, std::string>> facts);

}  // namespace attmirror

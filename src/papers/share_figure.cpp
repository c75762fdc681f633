#include "papers/share_figure.hpp"

#include <utility>

#include <fmt/format.h>

namespace attmirror {

Figure share_figure(const ShareTable& table, std::string title, std::string caption) {
  Heatmap map;
  map.digits = 2;
  map.columns = table.columns;
  std::string outcome;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const ShareTable::Row& row = table.rows[r];
    map.rows.push_back(row.name);
    map.values.push_back(row.shares);
    if (!row.predicted) continue;
    map.marked.emplace_back(r, *row.predicted);
    outcome += fmt::format("{}{}: {:.3f} in {}", outcome.empty() ? "" : "; ", row.name,
                           row.shares[*row.predicted], table.columns[*row.predicted]);
  }
  return {.id = "which-margin",
          .title = std::move(title),
          .caption = std::move(caption),
          .description = "A table of shares as colors, one row an optimizer, one column a norm." +
                         (outcome.empty() ? "" : " In the outlined cells: " + outcome + "."),
          .x = {.label = "norm in which the margin is measured"},
          .y = {.label = "optimizer"},
          .heatmap = std::move(map)};
}

}  // namespace attmirror

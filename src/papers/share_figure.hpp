// The figure of margins in several norms, as shares of the largest possible: one row an optimizer, one column
// a norm. Internal.
#pragma once

#include <attmirror/base/figure.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace attmirror {

struct ShareTable {
  struct Row {
    std::string name;
    std::vector<double> shares;              // NaN: none
    std::optional<std::size_t> predicted{};  // the column that theory predicts
  };
  std::vector<std::string> columns;
  std::vector<Row> rows;
};

// Its id is which-margin. The description says the shares in the outlined cells.
Figure share_figure(const ShareTable& table, std::string title, std::string caption);

}  // namespace attmirror

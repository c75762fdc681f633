// A table on a screen that is narrower than it. Internal.
#pragma once

#include <attmirror/base/table.hpp>

#include <cstddef>
#include <string>

namespace attmirror {

// to_text() for a screen of `width` columns: a table that is wider is folded, that is, its columns are shown
// in parts one below the other, each of which begins with the first `kept` columns. A part that has one
// column more than those may still be wider.
struct Fold {
  std::size_t width = 80;
  std::size_t kept = 1;
};
std::string to_text(const Table& table, const Fold& fold);

}  // namespace attmirror

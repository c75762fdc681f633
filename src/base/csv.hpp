// One cell of comma-separated values, as RFC 4180 has it. Internal.
#pragma once

#include <string>
#include <string_view>

namespace attmirror {

// In quotes if it holds a comma, a quote or a line end, or a blank at either end, which only quotes save from
// all readers.
void append_csv_cell(std::string& line, std::string_view text);

}  // namespace attmirror

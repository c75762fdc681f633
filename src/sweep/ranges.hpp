// Ranges: axes that are too long to write down.
//
//   "1:100"          1, 2, ..., 100
//   "1:100:5"        1, 6, ..., 96
//   "lin:0:1:5"      0, 0.25, 0.5, 0.75, 1
//   "log:1e-3:1:7"   seven numbers with equal quotients, from 0.001 to 1
//
// The numbers between the ends of lin and log are rounded to twelve significant digits, so that 0.01 is 0.01 and the
// same file means the same runs on every machine; whole-number settings round them to whole numbers. Internal.
#pragma once

#include "base/toml_document.hpp"
#include "sweep/settings.hpp"

#include <string>

namespace attmirror {

bool takes_ranges(const Setting& setting);

// How many values, and which. Both throw Error (bad input) beginning with `place` for a text that is not a range of
// this setting.
double range_size(const std::string& text, const Setting& setting, const std::string& place);
TomlArray expand_range(const std::string& text, const Setting& setting, const std::string& place);

}  // namespace attmirror

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

#include <cstdint>
#include <string>

namespace attmirror {

bool takes_ranges(const Setting& setting);

// A range that has been read: `count` values, each made when it is asked for, so that ten million take no memory.
// Throws Error (bad input) beginning with `place` for a text that is not a range of this setting.
class ValueRange {
 public:
  ValueRange(const std::string& text, const Setting& setting, const std::string& place);

  std::uint64_t count() const { return count_; }
  TomlValue at(std::uint64_t i) const;

 private:
  enum class Kind { counted, linear, logarithmic } kind_ = Kind::counted;
  const Setting* setting_;
  std::int64_t start_ = 0, step_ = 1;  // of `counted`
  double first_ = 0, last_ = 0;        // of the others
  std::uint64_t count_ = 0;
};

}  // namespace attmirror

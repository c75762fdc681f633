// Values of TOML files as fields of options take them. Internal.
#pragma once

#include "base/fields.hpp"
#include "base/toml_document.hpp"

namespace attmirror {

// By the kind of the field: 1 is 1.0 where a number is asked for, and 2e4 a whole number. Throws Error (bad input)
// for a value of another type, out of range or not listed: "p is 0.9: expected a finite number greater than 1".
FieldValue read_toml(const FieldInfo& info, const TomlValue& value);

}  // namespace attmirror

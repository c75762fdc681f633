// JSON as every file and answer of attmirror has it: keys in the order in which they were put, numbers that are not
// finite as null, bytes that are not UTF-8 replaced. Internal.
#pragma once

#include <cmath>
#include <string>

#include <nlohmann/json.hpp>

namespace attmirror {

using Json = nlohmann::ordered_json;

inline Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

// On one line, or with `indent` spaces a level.
inline std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace attmirror

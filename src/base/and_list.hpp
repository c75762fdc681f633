// Names in a sentence. Internal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace attmirror {

// "a", "a and b", "a, b and c"
inline std::string and_list(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

}  // namespace attmirror

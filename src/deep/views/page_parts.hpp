// What the pages of this folder share. Internal.
#pragma once

#include "deep/views/view_pages.hpp"

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace attmirror::deep {

inline std::string_view label_name(std::int32_t label) { return label == 1 ? "positive" : "negative"; }

// "1 text", "2 texts".
inline std::string counted(std::size_t count, std::string_view singular, std::string_view plural) {
  return fmt::format("{} {}", count, count == 1 ? singular : plural);
}

Section attention_section(const AttentionView& view);

}  // namespace attmirror::deep

// What the pages of this folder share. Internal.
#pragma once

#include "deep/views/view_pages.hpp"

#include <string_view>

namespace attmirror::deep {

inline std::string_view label_name(std::int32_t label) { return label == 1 ? "positive" : "negative"; }

Section attention_section(const AttentionView& view);

}  // namespace attmirror::deep

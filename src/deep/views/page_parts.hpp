// What the pages of this folder share. Internal.
#pragma once

#include <attmirror/deep/view_pages.hpp>

#include <string_view>

namespace attmirror::torch {

inline std::string_view label_name(std::int32_t label) { return label == 1 ? "positive" : "negative"; }

Section attention_section(const AttentionView& view);

}  // namespace attmirror::torch

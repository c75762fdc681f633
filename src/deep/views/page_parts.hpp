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

// "0.4387 ± 0.0310"; without an error where there is one case, "–" where there is none.
inline std::string mean_text(const ScoreMean& mean, int digits = 4) {
  if (mean.count == 0) return "–";
  if (mean.count == 1) return fmt::format("{:.{}f}", mean.mean, digits);
  return fmt::format("{:.{}f} ± {:.{}f}", mean.mean, digits, mean.standard_error, digits);
}

Section attention_section(const AttentionView& view);

// How to read and use attention maps of texts.
Paragraph attention_help();

}  // namespace attmirror::deep

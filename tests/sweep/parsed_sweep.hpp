// A sweep from its text, without a file.
#pragma once

#include <attmirror/sweep/plan.hpp>

#include <filesystem>
#include <string_view>

namespace attmirror::test {

inline SweepPlan parsed_sweep(std::string_view text, const std::filesystem::path& folder = ".") {
  return parse_sweep(text, "sweep.toml", folder);
}

}  // namespace attmirror::test

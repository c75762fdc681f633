// Which attmirror this is. Runs record it, so that you can trace a number to the code that produced it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

std::string_view version();  // "0.1.0"
std::string_view commit();   // "1a2b3c4d5e6f", with "-dirty" after uncommitted changes; "unknown" outside git
std::string_view compiler();    // "GNU 12.2.0"
std::string_view build_type();  // "Release"

// The parts that were switched on when it was built; "core" is always the first.
const std::vector<std::string>& components();

// "attmirror 0.1.0 (commit 1a2b3c4d5e6f), avx512, components: core", with the instruction set in use now.
std::string version_line();

// The same and how it was built: "..., built by GNU 12.2.0 as Release".
std::string version_report();

}  // namespace attmirror

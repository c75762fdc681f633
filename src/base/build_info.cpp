#include <attmirror/base/build_info.hpp>
#include <attmirror/base/isa.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

// Both are made by cmake/AttmirrorBuildInfo.cmake. The commit has a header of its own, so that a new one
// compiles only this file again.
#include "attmirror_build_commit.hpp"
#include "attmirror_build_config.hpp"

namespace attmirror {

std::string_view version() { return build_config::version; }
std::string_view commit() { return build_config::commit; }
std::string_view compiler() { return build_config::compiler; }
std::string_view build_type() { return build_config::build_type; }

const std::vector<std::string>& components() {
  static const std::vector<std::string> names(build_config::components.begin(),
                                              build_config::components.end());
  return names;
}

std::string version_line() {
  return fmt::format("attmirror {} (commit {}), {}, components: {}", version(), commit(),
                     to_string(active_isa()), fmt::join(components(), ", "));
}

std::string version_report() {
  return fmt::format("{}, built by {} as {}", version_line(), compiler(), build_type());
}

}  // namespace attmirror

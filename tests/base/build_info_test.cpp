#include <attmirror/base/build_info.hpp>
#include <attmirror/base/isa.hpp>

#include <regex>
#include <string>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

TEST(BuildInfo, EachPartIsThere) {
  EXPECT_TRUE(std::regex_match(std::string(version()), std::regex("[0-9]+\\.[0-9]+\\.[0-9]+"))) << version();
  EXPECT_TRUE(std::regex_match(std::string(commit()), std::regex("unknown|[0-9a-f]{12,40}(-dirty)?")))
      << commit();
  EXPECT_TRUE(
      std::regex_match(std::string(compiler()), std::regex("(GNU|Clang|AppleClang|IntelLLVM) [0-9.]+")))
      << compiler();
  EXPECT_FALSE(build_type().empty());
  ASSERT_FALSE(components().empty());
  EXPECT_EQ(components().front(), "core");
}

TEST(BuildInfo, TheVersionLineHasVersionCommitInstructionSetAndComponents) {
  const std::string expected = "attmirror " + std::string(version()) + " (commit " + std::string(commit()) +
                               "), " + std::string(to_string(active_isa())) + ", components: core";
  EXPECT_EQ(version_line().substr(0, expected.size()), expected);
  EXPECT_EQ(version_line().find('\n'), std::string::npos);
  EXPECT_EQ(version_report(),
            version_line() + ", built by " + std::string(compiler()) + " as " + std::string(build_type()));
}

}  // namespace
}  // namespace attmirror

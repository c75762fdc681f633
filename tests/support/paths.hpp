// Where things lie. Folders of this machine are compiled into paths.cpp alone, once for all test programs: so a
// compiler cache serves the other sources of every checkout.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace attmirror::test {

std::filesystem::path source_folder();  // the top of the repository

inline std::filesystem::path fixture(std::string_view name) {
  return source_folder() / "tests/fixtures" / name;
}

// The programs; empty where this build has none.
std::filesystem::path command_path();
std::filesystem::path example_models_path();
std::filesystem::path mpirun_path();  // also empty where attmirror was built without gloo
std::filesystem::path cmake_path();   // which unpacks archives of every kind: cmake -E tar xf FILE

// A file or folder of ../shared, or of the folder that the environment's ATTMIRROR_SHARED names. These are too large
// for the repository. Without them a test is skipped, each for what it lacks:
//   const SharedFile golden("golden/md_joint.npz");
//   if (golden.is_absent()) GTEST_SKIP() << golden.absence();
class SharedFile {
 public:
  explicit SharedFile(std::string_view name);
  bool is_absent() const { return !std::filesystem::exists(path_); }
  std::string absence() const { return "there is no " + path_.string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace attmirror::test

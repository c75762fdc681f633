// A folder for what readers want as files: in memory where the machine has such a place, since a fuzzer writes
// thousands.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace attmirror::fuzz {

class ScratchFolder {
 public:
  ScratchFolder() {
    std::error_code ignored;
    const std::filesystem::path memory = "/dev/shm";
    const auto place =
        std::filesystem::is_directory(memory, ignored) ? memory : std::filesystem::temp_directory_path();
    std::string pattern = (place / "attmirror-fuzz-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) std::abort();
    path_ = pattern;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace attmirror::fuzz

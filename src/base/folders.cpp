#include "base/folders.hpp"

#include <attmirror/base/error.hpp>

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace attmirror {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

std::vector<fs::path> make_folders(const fs::path& path) {
  std::vector<fs::path> made;
  std::error_code error;
  for (fs::path folder = fs::absolute(path, error).lexically_normal();
       !folder.empty() && folder != folder.root_path() && !is_there(folder); folder = folder.parent_path())
    made.push_back(folder);
  fs::create_directories(path, error);
  if (!error && !fs::is_directory(path)) error = std::make_error_code(std::errc::not_a_directory);
  if (error)
    throw environment_error(fmt::format("cannot make the folder {}: {}", path.string(), error.message()));
  return made;
}

void remove_empty(const std::vector<fs::path>& folders) noexcept {
  std::error_code ignored;
  for (const fs::path& folder : folders) fs::remove(folder, ignored);
}

int lock_folder(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return -1;
  if (::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(file);
    throw environment_error(fmt::format("{} is in use: another process trains in it", path.string()));
  }
  return file;
}

}  // namespace attmirror

#include "sweep/file_use.hpp"

#include <attmirror/base/error.hpp>

#include <cerrno>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace attmirror {
namespace {

namespace fs = std::filesystem;

struct Entry {
  int connections = 0;
  int fd = -1;  // of the writer, or of one that was
  bool writing = false;
};

struct Registry {
  std::mutex mutex;
  std::map<std::pair<dev_t, ino_t>, Entry> files;
};

// Never destroyed: databases may be closed by destructors of static objects.
Registry& registry() {
  static auto& instance = *std::make_unique<Registry>().release();
  return instance;
}

Error failure(const char* what, const fs::path& path, int error) {
  return environment_error(
      fmt::format("cannot {} {}: {}", what, path.string(), std::generic_category().message(error)));
}

// The process that holds flock(2) on the file, as Linux lists it: "7: FLOCK  ADVISORY  WRITE 4711 fe:01:131 0 EOF". None
// where there is no such list, or the process is invisible from this container.
std::optional<long> holder_of(const struct stat& status) {
  const std::string file =
      fmt::format("{:02x}:{:02x}:{}", major(status.st_dev), minor(status.st_dev), status.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, advisory, access, place;
    long pid = 0;
    if (words >> number >> kind >> advisory >> access >> pid >> place && kind == "FLOCK" && place == file &&
        pid > 0)
      return pid;
  }
  return std::nullopt;
}

Error in_use(const fs::path& path, std::optional<long> pid) {
  return environment_error(fmt::format("{} is being written by another process{}", path.string(),
                                       pid ? fmt::format(" (pid {})", *pid) : std::string()));
}

int open_to_write(const fs::path& path, int flags) {
  int fd = -1;
  do fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0666);
  while (fd < 0 && errno == EINTR);
  return fd;
}

}  // namespace

FileUse FileUse::to_read(const fs::path& path) {
  struct stat status {};
  const auto refuse = [&](int error) {
    return bad_input(
        fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(error)));
  };
  if (::stat(path.c_str(), &status) != 0) throw refuse(errno);
  if (S_ISDIR(status.st_mode)) throw refuse(EISDIR);
  if (!S_ISREG(status.st_mode))
    throw bad_input(fmt::format("cannot read {}: it is not a regular file", path.string()));
  if (::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0) throw refuse(errno);
  FileUse use;
  const std::scoped_lock lock(registry().mutex);
  use.id_ = {status.st_dev, status.st_ino};
  ++registry().files[use.id_].connections;
  use.held_ = true;
  return use;
}

FileUse FileUse::to_write(const fs::path& path, Missing missing) {
  // Somebody may remove or replace the file between opening and locking it: then the lock is on a file without a name.
  // One more round finds the new one; who loses this race ten times has a stranger problem.
  for (int round = 0; round < 10; ++round) {
    FileUse use;  // before the lock, so that it is released after it: release() locks, too
    const std::scoped_lock lock(registry().mutex);
    auto& files = registry().files;
    struct stat status {};
    const bool exists = ::stat(path.c_str(), &status) == 0;
    if (!exists && errno != ENOENT) throw failure("write", path, errno);
    if (exists && S_ISDIR(status.st_mode)) throw failure("write", path, EISDIR);
    if (exists && !S_ISREG(status.st_mode))
      throw bad_input(fmt::format("cannot write {}: it is not a regular file", path.string()));
    if (const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
        ::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
      throw failure("write", path, errno);  // the log lies beside the file
    if (!exists && missing == Missing::refuse)
      throw bad_input(fmt::format("cannot resume {}: there is no such file", path.string()));

    if (const auto known = files.find({status.st_dev, status.st_ino}); exists && known != files.end()) {
      if (known->second.writing) throw in_use(path, ::getpid());
      use.fd_ = known->second.fd;
    }
    if (use.fd_ < 0) {
      use.fd_ = open_to_write(path, exists ? 0 : O_CREAT);
      if (use.fd_ < 0 && exists && errno == ENOENT) continue;
      if (use.fd_ < 0) throw failure("write", path, errno);
      use.made_ = !exists;
    }
    if (::fstat(use.fd_, &status) != 0) throw failure("write", path, errno);
    use.id_ = {status.st_dev, status.st_ino};
    Entry& entry = files[use.id_];
    entry.fd = use.fd_;
    ++entry.connections;
    use.held_ = true;

    int locked = -1;
    do locked = ::flock(use.fd_, LOCK_EX | LOCK_NB);
    while (locked != 0 && errno == EINTR);
    if (locked != 0)
      throw errno == EWOULDBLOCK ? in_use(path, holder_of(status)) : failure("lock", path, errno);
    use.writing_ = entry.writing = true;
    struct stat now {};
    if (::stat(path.c_str(), &now) == 0 && Id{now.st_dev, now.st_ino} == use.id_) return use;
  }
  throw failure("write", path, ESTALE);
}

FileUse::FileUse(FileUse&& other) noexcept
    : id_(other.id_),
      fd_(other.fd_),
      held_(std::exchange(other.held_, false)),
      writing_(other.writing_),
      made_(other.made_) {}

FileUse& FileUse::operator=(FileUse&& other) noexcept {
  if (this == &other) return *this;
  release();
  id_ = other.id_;
  fd_ = other.fd_;
  held_ = std::exchange(other.held_, false);
  writing_ = other.writing_;
  made_ = other.made_;
  return *this;
}

FileUse::~FileUse() { release(); }

void FileUse::release() noexcept {
  if (!held_) return;
  held_ = false;
  const std::scoped_lock lock(registry().mutex);
  const auto found = registry().files.find(id_);
  Entry& entry = found->second;
  if (writing_) {
    entry.writing = false;
    ::flock(entry.fd, LOCK_UN);
  }
  if (--entry.connections > 0) return;
  if (entry.fd >= 0) ::close(entry.fd);
  registry().files.erase(found);
}

}  // namespace attmirror

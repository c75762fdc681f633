// Atomic writes: temporary file, fsync, rename, fsync of the folder.
//
// Each step is there for one accident. The temporary file lies in the folder of the target, since rename(2)
// is only atomic within a file system. fsync before the rename: else a power cut may keep the new name and
// lose the bytes. fsync of the folder after it: else the rename itself may be lost. close(2) is checked, as
// network file systems report a full disk there.
#include "base/atomic_file.hpp"

#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <new>
#include <random>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace attmirror {
namespace {

namespace fs = std::filesystem;

Error write_error(const fs::path& path, int error) {
  return environment_error(
      fmt::format("cannot write {}: {}", path.string(), std::generic_category().message(error)));
}

// A file that the caller named and that cannot be opened is the caller's mistake; a machine without memory,
// file handles or a working disk is not.
Error read_error(const fs::path& path, int error) {
  const std::string message =
      fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(error));
  switch (error) {
    case EIO:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ESTALE:
      return environment_error(message);
    default:
      return bad_input(message);
  }
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  // Returns errno of close(2), or 0. EINTR counts as closed: Linux has released the descriptor by then.
  int close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd) == 0 || errno == EINTR ? 0 : errno;
  }

 private:
  int fd_;
};

int open_retrying(const char* path, int flags, mode_t mode = 0) {
  int fd = -1;
  do fd = ::open(path, flags | O_CLOEXEC, mode);
  while (fd < 0 && errno == EINTR);
  return fd;
}

int fsync_retrying(int fd) {
  int result = -1;
  do result = ::fsync(fd);
  while (result != 0 && errno == EINTR);
  return result;
}

// Returns errno, or 0. A write that is cut short by a full disk fails on the next round.
int write_all(int fd, std::span<const std::byte> content) {
  while (!content.empty()) {
    // The kernel writes at most 2 GiB a call; a gigabyte at a time stays clear of that.
    const std::size_t chunk = std::min<std::size_t>(content.size(), std::size_t{1} << 30);
    const ssize_t written = ::write(fd, content.data(), chunk);
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    content = content.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

// Removes the temporary file unless it has become the target.
class TemporaryName {
 public:
  explicit TemporaryName(fs::path path) : path_(std::move(path)) {}
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  ~TemporaryName() {
    if (!kept_) ::unlink(path_.c_str());
  }
  const fs::path& path() const { return path_; }
  const char* c_str() const { return path_.c_str(); }
  void keep() { kept_ = true; }

 private:
  fs::path path_;
  bool kept_ = false;
};

fs::path folder_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

fs::path temporary_path(const fs::path& target) {
  // A long name is cut so that name and suffix stay within NAME_MAX, 255 bytes.
  const std::string name = target.filename().string().substr(0, 200);
  std::random_device device;
  const std::uint64_t random = (std::uint64_t{device()} << 32) | device();
  return folder_of(target) / fmt::format(".{}.tmp-{}-{:016x}", name, ::getpid(), random);
}

// What stands at the end of all links. A link to nothing yields the file that it would create.
fs::path follow_links(fs::path path) {
  constexpr int most_links = 40;  // the limit of the Linux kernel
  for (int i = 0; i < most_links; ++i) {
    std::error_code error;
    const fs::path target = fs::read_symlink(path, error);
    if (error) return path;
    path = target.is_absolute() ? target : folder_of(path) / target;
  }
  throw write_error(path, ELOOP);
}

// Asks for the effective user, the one that open(2) will ask for; errno says why not.
bool may_access(const fs::path& path, int mode) {
  return ::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0;
}

struct Target {
  fs::path path;
  bool exists = false;
  struct stat status {};
};

// Looks at the target and throws for everything that can be known before writing.
Target examine(const fs::path& path) {
  if (!path.has_filename()) throw write_error(path, path.empty() ? ENOENT : EISDIR);
  Target target;
  // /dev/stdout is a link into /proc whose text is no path when the output is a pipe: ask what the path leads
  // to before reading links.
  if (::stat(path.c_str(), &target.status) == 0) {
    target.exists = true;
    if (S_ISDIR(target.status.st_mode)) throw write_error(path, EISDIR);
    if (!may_access(path, W_OK)) throw write_error(path, errno);
    if (!S_ISREG(target.status.st_mode)) {
      target.path = path;
      return target;
    }
  } else if (errno != ENOENT) {
    throw write_error(path, errno);
  }
  target.path = follow_links(path);
  if (!may_access(folder_of(target.path), W_OK | X_OK)) throw write_error(path, errno);
  return target;
}

// A new file beside the target, under a name that nobody has. There is memory for all of it before the file is made, so
// that nothing can fail between making the file and knowing that it must be removed.
struct NewFile {
  explicit NewFile(fs::path path)
      : name(std::move(path)), file(open_retrying(name.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666)) {
    if (file.get() >= 0) return;
    error = errno;
    name.keep();  // it is not ours
  }
  TemporaryName name;
  Descriptor file;
  int error = 0;
};
std::unique_ptr<NewFile> make_temporary(const fs::path& target, const fs::path& path) {
  for (;;) {
    auto made = std::make_unique<NewFile>(temporary_path(target));
    if (made->error == 0) return made;
    if (made->error != EEXIST) throw write_error(path, made->error);
  }
}

}  // namespace

struct AtomicFile::State {
  explicit State(const fs::path& file) : path(file), target(examine(file)) {
    if (target.exists && !S_ISREG(target.status.st_mode)) {
      direct = std::make_unique<Descriptor>(open_retrying(path.c_str(), O_WRONLY));
      if (direct->get() < 0) throw write_error(path, errno);
    } else {
      made = make_temporary(target.path, path);
    }
  }
  Descriptor& file() { return made ? made->file : *direct; }

  fs::path path;
  Target target;
  std::unique_ptr<Descriptor> direct;  // what cannot be replaced
  std::unique_ptr<NewFile> made;
};

AtomicFile::AtomicFile(const fs::path& path) : state_(std::make_unique<State>(path)) {}
AtomicFile::~AtomicFile() = default;

bool AtomicFile::is_replaced() const { return state_->made != nullptr; }
const fs::path& AtomicFile::temporary() const {
  return state_->made ? state_->made->name.path() : state_->path;
}

void AtomicFile::write(std::span<const std::byte> piece) {
  if (const int error = write_all(state_->file().get(), piece)) throw write_error(state_->path, error);
}
void AtomicFile::write(std::string_view piece) { write(std::as_bytes(std::span(piece))); }

void AtomicFile::commit() {
  const fs::path& path = state_->path;
  Descriptor& written = state_->file();
  if (!state_->made) {
    if (const int error = written.close()) throw write_error(path, error);
    return;
  }
  TemporaryName& temporary = state_->made->name;
  // A library that was given the name may have put another file there.
  Descriptor file(open_retrying(temporary.c_str(), O_WRONLY));
  if (file.get() < 0) throw write_error(path, errno);
  const Target& target = state_->target;
  if (target.exists && ::fchmod(file.get(), target.status.st_mode & 07777) != 0)
    throw write_error(path, errno);
  if (fsync_retrying(file.get()) != 0) throw write_error(path, errno);
  if (const int error = file.close()) throw write_error(path, error);
  if (const int error = written.close()) throw write_error(path, error);
  if (::rename(temporary.c_str(), target.path.c_str()) != 0) throw write_error(path, errno);
  temporary.keep();

  Descriptor folder(open_retrying(folder_of(target.path).c_str(), O_RDONLY | O_DIRECTORY));
  // A folder that may be written but not read cannot be opened, and some file systems know no fsync of
  // folders: the file is in place all the same.
  if (folder.get() < 0) return;
  if (fsync_retrying(folder.get()) != 0 && errno != EINVAL && errno != ENOTSUP)
    throw write_error(path, errno);
}

void write_file_atomically(const fs::path& path, std::span<const std::byte> content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  write_file_atomically(path, std::as_bytes(std::span(content)));
}

void check_writable(const fs::path& path) { examine(path); }

void refuse_link(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_symlink(path, ignored)) return;
  const fs::file_status status = fs::status(path, ignored);
  if (!fs::exists(status) || fs::is_regular_file(status) || fs::is_directory(status))
    throw bad_input(fmt::format(
        "{} is a symbolic link: give the file itself, as attmirror does not write through links here",
        path.string()));
}

namespace {

// What is not a regular file may never end. Nobody types 64 MiB, and no device that is worth reading has as much.
constexpr std::size_t most_of_device = std::size_t{64} << 20;
// A pipe without a writer is given this long to find one.
constexpr std::chrono::seconds writer_patience{2};

Error endless(const fs::path& path, std::size_t most) {
  return bad_input(fmt::format("cannot read {}: it is not a regular file and has not ended after {} MiB",
                               path.string(), most >> 20));
}

// A file that is open for reading. Opening a named pipe waits until somebody writes to it, possibly for ever: it is
// opened without waiting, and asked for a writer for a while.
class Input {
 public:
  explicit Input(const fs::path& path) : path_(path), file_(open_without_waiting(path)) {
    if (file_.get() < 0) throw read_error(path, errno);
    if (::fstat(file_.get(), &status_) != 0) throw read_error(path, errno);
    if (S_ISDIR(status_.st_mode)) throw read_error(path, EISDIR);
  }
  const struct stat& status() const { return status_; }
  bool is_regular() const { return S_ISREG(status_.st_mode); }

  // How many bytes came, 0 at the end.
  std::size_t read(void* into, std::size_t room) {
    for (;;) {
      const ssize_t got = ::read(file_.get(), into, std::min<std::size_t>(room, std::size_t{1} << 30));
      if (got > 0) had_writer_ = true;
      if (got > 0 || (got == 0 && !lacks_writer())) return static_cast<std::size_t>(got);
      if (got == 0) {
        if (std::chrono::steady_clock::now() - opened_ > writer_patience)
          throw bad_input(fmt::format("cannot read {}: it is a pipe that nobody writes to", path_.string()));
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      } else if (errno == EAGAIN) {  // somebody is about to write
        had_writer_ = true;
        struct pollfd wait {
          file_.get(), POLLIN, 0
        };
        ::poll(&wait, 1, -1);
      } else if (errno != EINTR) {
        throw read_error(path_, errno);
      }
    }
  }

 private:
  static int open_without_waiting(const fs::path& path) {
    struct stat status {};
    const bool is_pipe = ::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
    return open_retrying(path.c_str(), is_pipe ? O_RDONLY | O_NONBLOCK : O_RDONLY);
  }
  bool lacks_writer() const { return S_ISFIFO(status_.st_mode) && !had_writer_; }

  const fs::path& path_;
  Descriptor file_;
  struct stat status_ {};
  bool had_writer_ = false;
  std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
};

template <class Buffer>
Buffer read_into(const fs::path& path, std::size_t most_of_pipe) try {
  Input file(path);
  const std::size_t most = file.is_regular()                 ? std::numeric_limits<std::size_t>::max()
                           : S_ISFIFO(file.status().st_mode) ? most_of_pipe
                                                             : most_of_device;

  // A regular file says how long it is; one byte more makes the read that meets the end fit too. Pipes, and
  // files of /proc that claim length 0, are read in growing pieces.
  constexpr std::size_t least = 4096;
  Buffer content;
  content.resize(std::max(least, static_cast<std::size_t>(file.status().st_size) + 1));
  std::size_t filled = 0;
  for (;;) {
    if (filled > most) throw endless(path, most);
    if (filled == content.size()) content.resize(2 * content.size());
    const std::size_t got = file.read(content.data() + filled, content.size() - filled);
    if (got == 0) break;
    filled += got;
  }
  content.resize(filled);
  return content;
} catch (const std::bad_alloc&) {
  throw read_error(path, ENOMEM);
} catch (const std::length_error&) {
  throw read_error(path, ENOMEM);
}

}  // namespace

std::vector<std::byte> read_file(const fs::path& path) {
  return read_into<std::vector<std::byte>>(path, std::size_t{4} << 30);
}
std::string read_text_file(const fs::path& path) {
  return read_into<std::string>(path, std::size_t{256} << 20);
}

std::string beginning_of_file(const fs::path& path, std::size_t bytes) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return {};
  std::string beginning(bytes, '\0');
  std::ifstream stream(path, std::ios::binary);
  stream.read(beginning.data(), static_cast<std::streamsize>(bytes));
  beginning.resize(static_cast<std::size_t>(stream.gcount()));
  return beginning;
}

}  // namespace attmirror

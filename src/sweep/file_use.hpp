// Who uses a database file: one writer on the machine, and what this process has open. Internal.
//
// The writer holds flock(2) on a descriptor of its own. flock belongs to the open file, so it ends with the process
// however that ends, and it does not meet the byte-range locks by which SQLite coordinates readers and writers.
//
// Those belong to the process, and closing ANY descriptor of a file drops all that the process has on it: another
// connection would go on without its locks and could ruin the file. So the descriptor that was opened here stays open
// until the last connection of this process to the file is closed, and before a file is opened here it is asked, by
// stat(2), whether that has been done already.
#pragma once

#include <filesystem>
#include <utility>

#include <sys/types.h>

namespace attmirror {

class FileUse {
 public:
  FileUse() = default;
  // To read. Throws Error (bad input) if there is no such file, or it is none that holds data.
  static FileUse to_read(const std::filesystem::path& path);
  // To write: throws Error (environment) if another writes, in this process or elsewhere, or the file or its folder may
  // not be written. `make` creates an empty file where there is none.
  enum class Missing { make, refuse };
  static FileUse to_write(const std::filesystem::path& path, Missing missing);

  FileUse(FileUse&& other) noexcept;
  FileUse& operator=(FileUse&& other) noexcept;
  ~FileUse();

  bool made() const { return made_; }     // the file was not there before
  int descriptor() const { return fd_; }  // of a writer; to look at the file without opening it again

 private:
  using Id = std::pair<dev_t, ino_t>;
  void release() noexcept;

  Id id_{};
  int fd_ = -1;
  bool held_ = false, writing_ = false, made_ = false;
};

}  // namespace attmirror

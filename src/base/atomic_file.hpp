// Whole files, written so that nobody ever sees half of one.
//
// A training that is killed, a disk that fills up and a reader that comes at the wrong moment all find either
// the old content or the new. The new content goes into a temporary file in the same folder, reaches the
// disk, and takes the place of the old by rename(2), which is atomic on POSIX systems.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// Replaces the content of `path`, or creates it. A symbolic link is followed and stays a link; the
// permissions of an existing file stay. Something that is not a regular file (a pipe, /dev/stdout) cannot be
// replaced and is written to directly. Throws Error (environment): "cannot write out/run.npz: No space left
// on device".
//
// On an error, and on any exception, the temporary file is gone. A process killed in between leaves one
// behind, named ".NAME.tmp-PID-RANDOM".
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> content);
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// The same for content that is made piece by piece, or by a library that writes files itself.
//
//   AtomicFile file("results.csv");
//   for (...) file.write(line);
//   file.commit();
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();  // without commit() everything stays as it was
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> piece);
  void write(std::string_view piece);

  // Where the new content lies until commit(), for a library that wants a name; it may replace the file of this name.
  // What is no regular file has no such place: then it is the path itself, see is_replaced().
  const std::filesystem::path& temporary() const;
  bool is_replaced() const;

  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// For commands: fail before an hour of computing, not after. Throws what write_file_atomically() would throw
// now if the folder is missing or not writable, or if `path` is a folder or a write-protected file.
void check_writable(const std::filesystem::path& path);

// For files that commands name or replace: the folder may have come from somebody else, and a link in it may lead to
// any file of the user's. Throws Error (bad input) if `path` is a symbolic link to a file, to a folder or to nothing;
// a link to something else, as /dev/stdout is, can be written to.
void refuse_link(const std::filesystem::path& path);

// The whole of a file. Throws Error: bad input if the file is missing, is a folder or may not be read
// ("cannot read data.npz: No such file or directory"); environment if the machine fails while reading. What is not a
// regular file need not end: a pipe is read up to 4 GiB, as text up to 256 MiB, and /dev/zero up to 64 MiB; more is
// refused, and so is a named pipe that nobody writes to.
std::vector<std::byte> read_file(const std::filesystem::path& path);
std::string read_text_file(const std::filesystem::path& path);

// The first bytes of a regular file, by which its kind is told; none of anything else, which would lose them.
std::string beginning_of_file(const std::filesystem::path& path, std::size_t bytes);

}  // namespace attmirror

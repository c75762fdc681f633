// The real program, run as a user runs it: arguments in, exit code and two streams out.
#pragma once

#include "support/files.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace attmirror::test {

using Words = std::vector<std::string>;

inline Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct Outcome {
  int code = -1;  // exit code, or 128 + signal
  std::string out, err;
  long peak_kib = 0;  // the most memory that it had
};

struct CommandOptions {
  std::filesystem::path stdout_to{};  // instead of a file of ours, e.g. /dev/full
  long file_size_limit = -1;          // bytes, as `ulimit -f`; a full disk that every user can have
};

// A process under way; killed, if it still is, at the end of its scope.
class RunningCommand {
 public:
  explicit RunningCommand(const std::vector<std::string>& arguments, const CommandOptions& options = {});
  ~RunningCommand();
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  void signal(int number);
  bool ended();
  bool catches(int signal) const;  // whether it has set a handler by now
  double cpu_seconds() const;      // that it has used by now, which tells work from waiting for a processor
  Outcome wait();

  // Waits until `condition` holds, the process ends or a minute has passed. Returns whether it holds.
  template <class Condition>
  bool wait_until(Condition condition) {
    for (int i = 0; i < 60'000; ++i) {
      if (condition()) return true;
      if (ended()) return condition();
      pause();
    }
    return false;
  }

 private:
  static void pause();

  TemporaryFolder folder_;
  CommandOptions options_;
  pid_t pid_ = -1;
  int status_ = 0;
  long peak_kib_ = 0;
  bool reaped_ = false;
  bool reap(int flags);
};

// Counts the versions of a file that another process replaces or appends to, as far as one looks often enough.
class FileChanges {
 public:
  explicit FileChanges(std::filesystem::path path) : path_(std::move(path)), last_(version()) {}
  int seen();

 private:
  struct Version {
    ino_t inode = 0;
    off_t size = 0;
    long seconds = 0, nanoseconds = 0;
    friend bool operator==(const Version&, const Version&) = default;
  };
  std::optional<Version> version() const;

  std::filesystem::path path_;
  std::optional<Version> last_;
  int seen_ = 0;
};

Outcome attmirror_command(const std::vector<std::string>& arguments, const CommandOptions& options = {});

// Expects exit code `code`, nothing on stdout, and one line on stderr, "attmirror: ...", that holds all of `words`.
void expect_refusal(const std::vector<std::string>& arguments, int code,
                    std::initializer_list<std::string_view> words);

std::string file_text(const std::filesystem::path& path);

// A dataset of `generate`, and its path.
std::string small_data(const TemporaryFolder& folder);

}  // namespace attmirror::test

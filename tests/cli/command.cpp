#include "cli/command.hpp"

#include "base/atomic_file.hpp"
#include "support/paths.hpp"

#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace attmirror::test {

RunningCommand::RunningCommand(const std::vector<std::string>& arguments, const CommandOptions& options)
    : options_(options) {
  const std::string out = options.stdout_to.empty() ? (folder_ / "out").string() : options.stdout_to.string();
  const std::string err = (folder_ / "err").string();
  std::string program = command_path().string();
  std::vector<char*> argv{program.data()};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ > 0) return;
  // The child: only calls that are safe between fork and exec.
  if (options.file_size_limit >= 0) {
    const rlimit limit{static_cast<rlim_t>(options.file_size_limit),
                       static_cast<rlim_t>(options.file_size_limit)};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  const int in_fd = ::open("/dev/null", O_RDONLY);
  const int out_fd = ::open(out.c_str(), O_WRONLY | O_CREAT, 0666);
  const int err_fd = ::open(err.c_str(), O_WRONLY | O_CREAT, 0666);
  if (in_fd < 0 || out_fd < 0 || err_fd < 0) ::_exit(99);
  ::dup2(in_fd, 0);
  ::dup2(out_fd, 1);
  ::dup2(err_fd, 2);
  ::execv(program.c_str(), argv.data());
  ::_exit(98);
}

RunningCommand::~RunningCommand() {
  if (ended()) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, &status_, 0);
}

void RunningCommand::signal(int number) {
  if (!ended()) ::kill(pid_, number);
}

bool RunningCommand::reap(int flags) {
  struct rusage usage {};
  if (!reaped_ && ::wait4(pid_, &status_, flags, &usage) == pid_) {
    reaped_ = true;
    peak_kib_ = usage.ru_maxrss;
  }
  return reaped_;
}

bool RunningCommand::ended() { return reap(WNOHANG); }

bool RunningCommand::catches(int signal) const {
  // SigCgt is a mask in hexadecimal, signal 1 in its lowest bit.
  std::ifstream status(fmt::format("/proc/{}/status", pid_));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigCgt:"))
      return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  return false;
}

double RunningCommand::cpu_seconds() const {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

void RunningCommand::pause() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

Outcome RunningCommand::wait() {
  reap(0);
  Outcome outcome;
  outcome.peak_kib = peak_kib_;
  outcome.code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  // Killed at once, it has not opened them.
  const auto said = [&](const char* name) {
    return std::filesystem::exists(folder_ / name) ? file_text(folder_ / name) : std::string();
  };
  if (options_.stdout_to.empty()) outcome.out = said("out");
  outcome.err = said("err");
  return outcome;
}

std::optional<FileChanges::Version> FileChanges::version() const {
  struct stat found {};
  if (::stat(path_.c_str(), &found) != 0) return std::nullopt;
  return Version{found.st_ino, found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec};
}

int FileChanges::seen() {
  if (const auto now = version(); now && now != last_) {
    last_ = now;
    ++seen_;
  }
  return seen_;
}

Outcome attmirror_command(const std::vector<std::string>& arguments, const CommandOptions& options) {
  return RunningCommand(arguments, options).wait();
}

void expect_refusal(const std::vector<std::string>& arguments, int code,
                    std::initializer_list<std::string_view> words) {
  const Outcome outcome = attmirror_command(arguments);
  EXPECT_EQ(outcome.code, code) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("attmirror: ")) << outcome.err;
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << "expected one line: " << outcome.err;
  for (const auto word : words)
    EXPECT_NE(outcome.err.find(word), std::string::npos) << "'" << word << "' is not in: " << outcome.err;
}

std::string file_text(const std::filesystem::path& path) { return read_text_file(path); }

std::string small_data(const TemporaryFolder& folder) {
  const std::string path = (folder / "data.npz").string();
  const Outcome outcome = attmirror_command({"generate", "-o", path});
  if (outcome.code != 0) throw std::runtime_error("cannot generate data: " + outcome.err);
  return path;
}

}  // namespace attmirror::test

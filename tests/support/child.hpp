// Tests that need another process: one to be killed, to hold a lock, to run out of disk.
#pragma once

#include <csignal>
#include <cstddef>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace attmirror::test {

class Pipe {
 public:
  Pipe() {
    if (::pipe(ends_) != 0) throw std::runtime_error("cannot make a pipe");
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close(0);
    close(1);
  }
  void close_reading() { close(0); }
  void close_writing() { close(1); }
  void put(const void* data, std::size_t size) const {
    if (::write(ends_[1], data, size) != static_cast<ssize_t>(size)) ::_exit(98);
  }
  void signal() const { put("x", 1); }
  // Waits for so many bytes; false at the end.
  bool get(void* data, std::size_t size) const {
    auto* to = static_cast<char*>(data);
    while (size > 0) {
      const ssize_t got = ::read(ends_[0], to, size);
      if (got <= 0) return false;
      to += got;
      size -= static_cast<std::size_t>(got);
    }
    return true;
  }
  bool wait() const {
    char byte = 0;
    return get(&byte, 1);
  }

 private:
  void close(int end) {
    if (ends_[end] >= 0) ::close(ends_[end]);
    ends_[end] = -1;
  }
  int ends_[2] = {-1, -1};
};

// A process that runs `action` and ends; killed at the end of this object if it still runs. It must not touch what the
// test's own process has open.
class Child {
 public:
  explicit Child(const std::function<void()>& action) : pid_(::fork()) {
    if (pid_ < 0) throw std::runtime_error("cannot fork");
    if (pid_ > 0) return;
    int code = 0;
    try {
      action();
    } catch (const std::exception& error) {
      static_cast<void>(!::write(2, error.what(), std::string(error.what()).size()));
      code = 97;
    }
    ::_exit(code);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { kill(); }

  pid_t pid() const { return pid_; }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  // The exit code; -1 if it was killed.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_;
};

// Runs `action` in a process of its own, where limits, mounts and users may be changed. What it returns comes back:
// empty if all went well.
inline std::string in_child(const std::function<std::string()>& action) {
  Pipe pipe;
  Child child([&] {
    std::string answer;
    try {
      answer = action();
    } catch (const std::exception& error) {
      answer = std::string("threw: ") + error.what();
    }
    pipe.put(answer.data(), answer.size());
  });
  pipe.close_writing();
  std::string answer;
  for (char c = 0; pipe.get(&c, 1);) answer += c;
  const int code = child.wait();
  return code == 0 ? answer : answer + " (the process ended with " + std::to_string(code) + ")";
}

}  // namespace attmirror::test

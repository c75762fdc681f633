// The one exception type of the library.
//
// A message is one sentence that names the field, the index and the value: "labels[17] is 0: expected -1 or
// +1". The kind says whose fault it is; the command turns it into its exit code.
#pragma once

#include <stdexcept>
#include <string>

namespace attmirror {

enum class ErrorKind {
  bad_input,    // what the caller gave cannot be used (exit code 2)
  environment,  // the machine failed: disk full, unreadable device, out of memory (exit code 3)
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

// Shorthands for throwing: `throw bad_input(fmt::format("p is {}: expected a number greater than 1", p));`
inline Error bad_input(const std::string& message) { return Error(ErrorKind::bad_input, message); }
inline Error environment_error(const std::string& message) { return Error(ErrorKind::environment, message); }

}  // namespace attmirror

// The one exception type of the library.
//
// A message is one sentence that names the field, the index and the value: "labels[17] is 0: expected -1 or +1".
// The kind says whose fault it is; the command turns it into its exit code.
//
// A field has one name in C++ and may be spelled differently where a user meets it: `entropy_beta` in a sweep
// file is --entropy-beta on the command line. So messages mark the fields they name (field_name()); what()
// spells them as in C++, and message() as the front end asks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace attmirror {

// Whose fault an error is.
enum class ErrorKind {
  bad_input,    // the caller's input cannot be used (exit code 2)
  environment,  // the machine failed: disk full, unreadable device, out of memory (exit code 3)
};

// How a front end spells a field.
using FieldSpelling = std::function<std::string(std::string_view field)>;

// The field that an error is about; empty if it is about none in particular.
struct ErrorPlace {
  std::string field;
  std::optional<std::int64_t> index{};
  std::string value;  // as text
};

// The exception that every function of the library throws.
class Error : public std::runtime_error {
 public:
  // The message may contain names marked by field_name().
  Error(ErrorKind kind, const std::string& message, ErrorPlace place = {});

  ErrorKind kind() const noexcept { return kind_; }
  const std::string& field() const noexcept { return details_->place.field; }
  std::optional<std::int64_t> index() const noexcept { return details_->place.index; }
  const std::string& value() const noexcept { return details_->place.value; }

  std::string message(const FieldSpelling& spelling) const;

  // The same error, with "context: " before its message.
  Error in(std::string_view context) const;

 private:
  struct Details {
    std::string marked;
    ErrorPlace place;
  };
  ErrorKind kind_;
  std::shared_ptr<const Details> details_;  // shared, since copying an exception must not throw
};

// The name of an option inside a message, so that front ends can spell it.
std::string field_name(std::string_view field);

// Shorthands for throwing: `throw bad_input(fmt::format("{} has no rows", path.string()));`
Error bad_input(const std::string& message);
Error environment_error(const std::string& message);

// "p is 0.9: expected a number greater than 1", of an option.
Error bad_value(std::string_view field, double value, std::string_view expected);
Error bad_value(std::string_view field, std::int64_t value, std::string_view expected);
Error bad_value(std::string_view field, std::string_view word, std::string_view expected);  // in quotes

// "labels[17] is 0: expected -1 or +1", of an array.
Error bad_entry(std::string_view array, std::int64_t index, double value, std::string_view expected);

}  // namespace attmirror

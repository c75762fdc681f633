// A TOML file as plain values in the order of the file, each with its line. Internal.
//
// toml++ sorts the keys of a table; here they stand in the order of the file, which may mean something to the reader.
// It is restored from the positions that the parser notes. The one source that includes toml++ is toml_document.cpp:
// it is slow to compile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace attmirror {

struct TomlValue;
struct TomlEntry;
using TomlArray = std::vector<TomlValue>;
using TomlTable = std::vector<TomlEntry>;

// A date or a time: none of our files has a use for one.
struct TomlDate {};

struct TomlValue {
  std::variant<bool, std::int64_t, double, std::string, TomlDate, TomlArray, TomlTable> value;
  std::int64_t line = 0;  // 0: not known

  template <class T>
  const T* as() const {
    return std::get_if<T>(&value);
  }
};

struct TomlEntry {
  std::string key;
  TomlValue value;
};

// Throws Error (bad input): "name: line 12: ...".
TomlTable parse_toml(std::string_view text, const std::string& name);

// What stands there, for messages: 0.9, "abc", a list, a table.
std::string to_text(const TomlValue& value);

// Text of a file in quotes, on one line and short enough for a message.
std::string in_double_quotes(std::string_view text);

}  // namespace attmirror

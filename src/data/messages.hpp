// Words that the readers of this room share in their error messages. Internal.
#pragma once

#include <attmirror/base/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace attmirror {

// A name or word from a file, made fit for a message: in quotes, on one line, and not longer than a screen.
inline std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 80;
  std::string result = "'";
  for (const char c : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    // Bytes outside ASCII may be half a character or an order to the terminal.
    if (byte < 32 || byte > 126)
      result += fmt::format("\\x{:02x}", byte);
    else
      result += c;
  }
  return result + (text.size() > longest ? "...'" : "'");
}

// bad_entry() for whole numbers, which a double may not hold.
inline Error bad_whole_entry(std::string_view array, std::size_t index, std::int64_t value,
                             std::string_view expected) {
  return Error(ErrorKind::bad_input, fmt::format("{}[{}] is {}: expected {}", array, index, value, expected),
               {.field = std::string(array),
                .index = static_cast<std::int64_t>(index),
                .value = fmt::format("{}", value)});
}

inline Error out_of_memory(std::string_view name) {
  return environment_error(fmt::format("{}: not enough memory to hold the arrays", name));
}

}  // namespace attmirror

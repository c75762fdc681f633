// What every parser owes, whatever it is given: a value or an Error, never another exception; and a value
// that survives being written and read again.
#pragma once

#include <attmirror/base/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

namespace attmirror::fuzz {

// Another exception than Error leaves this function and ends the fuzzer, and so does abort().
template <class Parse, class Format>
void check_parser(std::span<const std::byte> file, Parse parse, Format format) {
  try {
    const auto value = parse(file);
    const auto written = format(value);
    if (!(parse(written) == value)) std::abort();
  } catch (const Error& error) {
    // One sentence, on one line.
    const std::string_view message = error.what();
    if (message.empty() || message.find('\n') != std::string_view::npos) std::abort();
  }
}

inline std::span<const std::byte> as_file(const std::uint8_t* data, std::size_t size) {
  return std::as_bytes(std::span(data, size));
}

}  // namespace attmirror::fuzz

// Fuzzes parse_safetensors(): the JSON header and the layout it describes.
#include "check_parser.hpp"
#include <attmirror/data/safetensors.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attmirror;
  fuzz::check_parser(
      fuzz::as_file(data, size),
      [](std::span<const std::byte> file) { return parse_safetensors(file, "file"); },
      [](const Safetensors& content) { return format_safetensors(content); });
  return 0;
}

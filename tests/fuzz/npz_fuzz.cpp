// Fuzzes parse_npz(): the directory of the archive, its sizes, inflation, and the arrays inside.
#include "check_parser.hpp"
#include <attmirror/data/npz.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attmirror;
  // Honest archives of a few kilobytes inflate to at most a few megabytes; the limit keeps a round short.
  const NpzLimits limits{.max_bytes = 1 << 20};
  fuzz::check_parser(
      fuzz::as_file(data, size),
      [&limits](std::span<const std::byte> file) { return parse_npz(file, "file", limits); },
      [](const NamedArrays& arrays) { return format_npz(arrays); });
  return 0;
}

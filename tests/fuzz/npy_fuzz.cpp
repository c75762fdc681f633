// Fuzzes parse_npy(): the reader of the Python dict, the shapes, the transposition.
#include "check_parser.hpp"
#include "data/npy.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attmirror;
  for (const MemoryOrder order : {MemoryOrder::c, MemoryOrder::fortran})
    fuzz::check_parser(
        fuzz::as_file(data, size), [](std::span<const std::byte> file) { return parse_npy(file, "file"); },
        [order](const Array& array) { return format_npy(array, {.order = order}); });
  return 0;
}

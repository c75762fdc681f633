// Fuzzes what stands in the cells of a sweep's results.
#include "database_checks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attmirror::fuzz::check_database(attmirror::fuzz::as_file(data, size));
  return 0;
}

// Fuzzes the readers of the texts that results consist of: configurations, results, metrics, reproductions.
#include "result_checks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attmirror::fuzz::check_results(attmirror::fuzz::as_file(data, size));
  return 0;
}

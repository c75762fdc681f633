// Fuzzes what reads .npz files: checkpoints, weights, traces, paths, max-margin solutions, datasets.
#include "array_checks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attmirror::fuzz::check_arrays(attmirror::fuzz::as_file(data, size));
  return 0;
}

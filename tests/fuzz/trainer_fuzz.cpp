// Fuzzes the configuration of attmirror deep train: TOML, and config.json of a training.
#include "trainer_checks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attmirror::fuzz::check_trainer(attmirror::fuzz::as_file(data, size));
  return 0;
}

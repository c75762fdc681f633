// Fuzzes the reader of token files.
#include "corpus_checks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attmirror::fuzz::check_tokens(attmirror::fuzz::as_file(data, size));
  return 0;
}

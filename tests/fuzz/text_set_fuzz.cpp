// Fuzzes the readers of .tsv files, packed or not.
#include "corpus_checks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attmirror::fuzz::check_text_set(attmirror::fuzz::as_file(data, size));
  return 0;
}

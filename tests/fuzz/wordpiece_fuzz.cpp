// Fuzzes WordPiece: both engines give the same ids.
#include "corpus_checks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attmirror::fuzz::check_wordpiece(attmirror::fuzz::as_file(data, size));
  return 0;
}

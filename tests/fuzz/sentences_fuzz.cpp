// Fuzzes parse_sentences(): lines, words, UTF-8, where collocations come from, and what to_text() writes.
#include "check_parser.hpp"
#include "sentence_words.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attmirror::fuzz;
  check_parser(as_file(data, size), read_sentence_words, text_of);
  return 0;
}

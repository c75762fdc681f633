// What a text of sentences says, free of the numbers that its words happen to have: collocations and sentences in
// words, with their weights. A text and what to_text() makes of it must say the same.
#pragma once

#include <attmirror/base/error.hpp>
#include <attmirror/next_token/partial_order.hpp>
#include <attmirror/next_token/sentence_text.hpp>

#include <cstddef>
#include <cstdlib>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror::fuzz {

struct SentenceWords {
  std::map<std::vector<std::string>, double> collocations, sentences;
  std::string text;  // what to_text() makes of it
  friend bool operator==(const SentenceWords& a, const SentenceWords& b) {
    return a.collocations == b.collocations && a.sentences == b.sentences;
  }
};

inline SentenceWords in_words(const SentenceText& file) {
  SentenceWords result;
  const auto word = [&file](Token x) { return file.vocabulary.word(x); };
  for (Token x = 0; x < file.vocabulary.size(); ++x)
    for (const Collocations::Successor& y : file.collocations.successors(x))
      result.collocations[{word(x), word(y.token)}] += y.weight;
  for (std::ptrdiff_t i = 0; i < file.sentences.count(); ++i) {
    std::vector<std::string> line;
    for (const Token x : file.sentences.tokens(i)) line.push_back(word(x));
    line.push_back(word(file.sentences.label(i)));
    // Each is there once.
    if (!result.sentences.emplace(line, file.sentences.weight(i)).second) std::abort();
  }
  result.text = to_text(file.vocabulary, file.collocations, file.sentences);
  return result;
}

// Reads the text with every source of collocations, looks for cycles, and returns what the automatic choice says.
inline SentenceWords read_sentence_words(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  using enum CollocationSource;
  for (const CollocationSource source : {lines, copy, bigrams}) {
    try {
      if (parse_sentences(text, "s.txt", {.collocations = source}).source != source) std::abort();
    } catch (const Error&) {
    }
  }
  const SentenceText file = parse_sentences(text, "s.txt");
  if (file.lines.size() != static_cast<std::size_t>(file.sentences.count())) std::abort();
  const PartialOrders orders(file.sentences, file.collocations);
  if (const auto cycle = orders.find_cycle())
    if (to_string(*cycle, file.vocabulary, file.lines).find('\n') != std::string::npos) std::abort();
  return in_words(file);
}

inline std::span<const std::byte> text_of(const SentenceWords& words) {
  return std::as_bytes(std::span(words.text));
}

}  // namespace attmirror::fuzz

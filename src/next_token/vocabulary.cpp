#include <attmirror/base/error.hpp>
#include <attmirror/next_token/sentences.hpp>

#include <fmt/format.h>

namespace attmirror {

Vocabulary::Vocabulary(std::vector<std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].empty()) throw bad_input(fmt::format("word {} of the vocabulary is empty", i));
    if (const auto known = find(words[i]))
      throw bad_input(fmt::format("words {} and {} of the vocabulary are both \"{}\"", *known, i, words[i]));
    add(words[i]);
  }
}

Vocabulary Vocabulary::numbered(std::ptrdiff_t size) {
  Vocabulary vocabulary;
  for (std::ptrdiff_t i = 0; i < size; ++i) vocabulary.add(fmt::format("w{}", i));
  return vocabulary;
}

std::optional<Token> Vocabulary::find(std::string_view word) const {
  const auto found = tokens_.find(word);
  if (found == tokens_.end()) return std::nullopt;
  return found->second;
}

Token Vocabulary::add(std::string_view word) {
  const auto [position, is_new] = tokens_.try_emplace(std::string(word), static_cast<Token>(words_.size()));
  if (is_new) words_.emplace_back(word);
  return position->second;
}

}  // namespace attmirror

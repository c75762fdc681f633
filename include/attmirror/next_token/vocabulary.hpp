// The words of a language and their numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace attmirror {

// A word's number in its vocabulary, from 0.
using Token = std::int32_t;
inline constexpr Token no_token = -1;

class Vocabulary {
 public:
  Vocabulary() = default;
  // Throws Error (bad input) that names an empty word or one that is there twice.
  explicit Vocabulary(std::vector<std::string> words);
  // w0, w1, ...: the words of generated data.
  static Vocabulary numbered(std::ptrdiff_t size);

  std::ptrdiff_t size() const { return static_cast<std::ptrdiff_t>(words_.size()); }
  const std::string& word(Token token) const { return words_[static_cast<std::size_t>(token)]; }
  const std::vector<std::string>& words() const { return words_; }
  std::optional<Token> find(std::string_view word) const;
  Token add(std::string_view word);  // its number, new or old

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::vector<std::string> words_;
  std::unordered_map<std::string, Token, Hash, std::equal_to<>> tokens_;
};

}  // namespace attmirror

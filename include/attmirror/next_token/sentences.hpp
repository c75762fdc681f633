// What next-token prediction learns from (P4): sentences, each with the token that follows it, and collocations.
//
//   sentence      x_1 ... x_L -> y      the query is its last token x_L; weight pi(X, y) = how often it occurs
//   collocation   x -> n(x)             the token's own successor, a sentence of one token
//
// Plain arrays of token numbers; memory is linear in the number of tokens. A sentence that occurs with
// several labels (a soft label) is stored once for each of them, with their weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace attmirror {

// The words of a language and their numbers.

// A word's number in its vocabulary, from 0.
using Token = std::int32_t;
// What stands for a word that the vocabulary does not have.
inline constexpr Token no_token = -1;

// Words and their numbers.
class Vocabulary {
 public:
  Vocabulary() = default;
  // Throws Error (bad input) that names an empty or duplicate word.
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

// Sentences of different lengths, as numbers of words, each with its next token and its weight.
class Sentences {
 public:
  Sentences() = default;
  explicit Sentences(std::ptrdiff_t vocabulary_size) : vocabulary_size_(vocabulary_size) {}

  // Throws Error (bad input) for no token, a token or label outside the vocabulary, or a weight that is not
  // finite and > 0. The sentences are then unchanged.
  void add(std::span<const Token> tokens, Token label, double weight = 1);

  std::ptrdiff_t vocabulary_size() const { return vocabulary_size_; }
  std::ptrdiff_t count() const { return static_cast<std::ptrdiff_t>(labels_.size()); }
  bool empty() const { return labels_.empty(); }
  std::ptrdiff_t total_tokens() const { return static_cast<std::ptrdiff_t>(tokens_.size()); }
  std::ptrdiff_t max_length() const { return max_length_; }

  // Sentence i has the tokens first(i) to first(i + 1) - 1 of all_tokens().
  std::ptrdiff_t first(std::ptrdiff_t i) const { return offsets_[static_cast<std::size_t>(i)]; }
  std::span<const Token> tokens(std::ptrdiff_t i) const {
    return all_tokens().subspan(static_cast<std::size_t>(first(i)),
                                static_cast<std::size_t>(first(i + 1) - first(i)));
  }
  std::span<const Token> all_tokens() const { return tokens_; }
  Token query(std::ptrdiff_t i) const { return tokens_[static_cast<std::size_t>(first(i + 1) - 1)]; }
  Token label(std::ptrdiff_t i) const { return labels_[static_cast<std::size_t>(i)]; }
  double weight(std::ptrdiff_t i) const { return weights_[static_cast<std::size_t>(i)]; }  // as given
  double total_weight() const { return total_weight_; }

  std::uint64_t fingerprint() const;  // of all numbers

 private:
  std::ptrdiff_t vocabulary_size_ = 0, max_length_ = 0;
  double total_weight_ = 0;
  std::vector<std::int64_t> offsets_{0};
  std::vector<Token> tokens_, labels_;
  std::vector<double> weights_;
};

// x -> n(x). A token may have several successors with weights (a soft collocation), or none: a token that
// occurs only as a label.
class Collocations {
 public:
  // A token that may follow, and how often it does.
  struct Successor {
    Token token = no_token;
    double weight = 1;
  };

  Collocations() = default;
  explicit Collocations(std::ptrdiff_t vocabulary_size)
      : successors_(static_cast<std::size_t>(vocabulary_size)) {}
  static Collocations hard(std::span<const Token> successor);    // n(x) of x = 0, 1, ...; no_token: none
  static Collocations identity(std::ptrdiff_t vocabulary_size);  // n(x) = x: attention copies a token

  // Adds to the weight if the successor exists already. Throws Error (bad input) like Sentences::add().
  void add(Token token, Token successor, double weight = 1);

  std::ptrdiff_t vocabulary_size() const { return static_cast<std::ptrdiff_t>(successors_.size()); }
  std::span<const Successor> successors(Token token) const {
    return successors_[static_cast<std::size_t>(token)];
  }
  bool is_hard() const;                              // no token has more than one successor
  bool follows(Token successor, Token token) const;  // is it one of the token's successors?
  // n(x), the heaviest (ties go to the first added) if there are several; no_token if there is none.
  Token successor(Token token) const;
  std::ptrdiff_t count() const;  // tokens that have a successor

  std::uint64_t fingerprint() const;

 private:
  std::vector<std::vector<Successor>> successors_;
  // The position of a pair in its list, so that a token with very many successors needs no search.
  std::unordered_map<std::uint64_t, std::uint32_t> positions_;
};

}  // namespace attmirror

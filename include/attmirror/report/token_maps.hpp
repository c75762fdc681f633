// Attention on texts, to be looked at in a page: every token in the color of the attention it gets.
//
// Several models stand side by side over the same tokens. The reader chooses block, head and the token that asks;
// without scripts, and on paper, the page shows the last block, the mean over heads and the first token's row, as
// P1's figures do. Numbers are always there besides the colors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace attmirror {

// What one model does with one text.
struct TokenAttention {
  std::int64_t blocks = 0, heads = 0;
  // Rows that are held: one for each token, or 1, the first token's alone.
  std::int64_t rows = 0;
  // Softmax probabilities [blocks][heads][rows][tokens]; a row is the attention that one token pays.
  std::vector<float> probabilities = {};
  std::string answer = {};  // what the model says of the text: "positive, 0.93"
  enum class Verdict { unknown, right, wrong } verdict = Verdict::unknown;
};

struct TokenText {
  std::string title = {};
  std::vector<std::string> tokens = {};     // pieces; "##ly" is written to the one before it
  std::vector<std::size_t> marked = {};     // tokens to look for: those of the pivotal word
  std::vector<TokenAttention> models = {};  // one for each of TokenMaps::models
};

struct TokenMaps {
  std::string id;  // letters, digits and dashes
  std::string title;
  std::string caption = {};
  std::string marked_name = "marked";  // what marked tokens are called: "pivotal word"
  std::vector<std::string> models;     // their names
  std::vector<TokenText> texts;

  // Throws Error (bad input), naming text and model: nothing to show, sizes that do not fit, a mark beyond the
  // tokens, a probability that is not from 0 to 1 (a little above it counts as rounding).
  void validate() const;
};

// The attention that the page shows at first: the last block, mean over heads, the first token's row.
std::vector<double> first_row(const TokenAttention& attention, std::size_t tokens);

// (s - least) / (most - least), as P1 shows it; all 0 where the numbers are equal.
std::vector<double> min_max(std::vector<double> numbers);

}  // namespace attmirror

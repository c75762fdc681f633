// Attention on texts, for a page: every token in the color of the attention it gets.
//
// Several models are shown side by side over the same tokens. The reader chooses the block, the head and the
// attending token; without scripts, and on paper, the page shows the last block, the mean over heads and the
// first token's row, like P1's figures. Numbers are always shown along with the colors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace attmirror {

// What one model does with one text.
struct TokenAttention {
  std::int64_t blocks = 0, heads = 0;
  // Number of rows: one for each token, or 1, only the first token's.
  std::int64_t rows = 0;
  // Softmax probabilities [blocks][heads][rows][tokens]; a row is the attention that one token pays.
  std::vector<float> probabilities = {};
  std::string answer = {};  // what the model says about the text: "positive, 0.93"
  // Whether the network's answer was right.
  enum class Verdict { unknown, right, wrong } verdict = Verdict::unknown;
  std::string note = {};  // what else is said beside the model's name: "score 0.93"
};

// One text, with the attention that its tokens get.
struct TokenText {
  std::string title = {};
  std::vector<std::string> tokens = {};     // pieces; "##ly" is joined to the one before it
  std::vector<std::size_t> marked = {};     // tokens to look for: those of the pivotal word
  std::vector<TokenAttention> models = {};  // one for each of TokenMaps::models
};

// Attention maps of some texts by some networks, as a block of a page.
struct TokenMaps {
  std::string id;  // letters, digits and dashes
  std::string title;
  std::string caption = {};
  std::string marked_name = "marked";  // what marked tokens are called: "pivotal word"
  std::vector<std::string> models;     // their names
  std::vector<TokenText> texts;

  // Throws Error (bad input), naming text and model, for nothing to show, sizes that do not fit, a mark
  // beyond the tokens, or a probability outside 0 to 1 (slightly above counts as rounding).
  void validate() const;
};

// The attention that the page shows at first: the last block, mean over heads, the first token's row.
std::vector<double> first_row(const TokenAttention& attention, std::size_t tokens);

// (s - smallest) / (largest - smallest), as P1 shows it; all 0 if the numbers are equal.
std::vector<double> min_max(std::vector<double> numbers);

}  // namespace attmirror

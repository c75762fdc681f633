// What a network for texts attends to in one text.
//
// A view needs three things that belong together: the weights, the vocabulary they were trained with, and the text. A
// mismatch is refused and both sides are named, because a network would happily read the ids of another vocabulary.
#pragma once

#include <attmirror/deep/encoder_classifier.hpp>
#include <attmirror/deep/wordpiece.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror::deep {

// A trained network for texts, with the name that pages give it.
struct TextModel {
  std::string name;  // in pages and messages
  std::shared_ptr<EncoderClassifier> network;
};

// `vocabulary_name` is the name of the vocabulary in messages. Throws Error (bad input), naming the file, for
// weights of another kind or another vocabulary ("model has a vocabulary of 30522 words, vocab.txt 1000").
TextModel load_text_model(const std::filesystem::path& path, const WordPiece& vocabulary,
                          std::string_view vocabulary_name);

// The same checks for a network that already exists.
void check_vocabulary(const TextModel& model, const WordPiece& vocabulary, std::string_view vocabulary_name);

// A text as all `models` can read it: cut to the shortest of their lengths.
struct ViewedPieces {
  std::vector<TextPiece> pieces;
  bool cut = false;  // there was more
};
// Throws Error (bad input) for a text without a word; `name` is its name in the message.
ViewedPieces viewed_pieces(std::span<const TextModel> models, const WordPiece& vocabulary,
                           std::string_view text, std::string_view name);

// Rows of attention to keep: those of all tokens, or the first token's, which the answer reads.
enum class AttentionRows { all, first };

// Where the heads of a network look in one text.
struct TextAttention {
  std::int64_t blocks = 0, heads = 0, rows = 0, tokens = 0;
  std::vector<float> probabilities;  // [blocks][heads][rows][tokens]
  double probability = 0;            // of label 1

  // The mean over heads of the first token's row in the last block: what P1 looks at.
  std::vector<double> answering_row() const;
};

// Throws Error (bad input), naming the model, if its numbers are not finite, as after a training that
// diverged.
TextAttention text_attention(const TextModel& model, std::span<const TextPiece> pieces, AttentionRows rows);

// (sum |s|)^2 / sum s^2: the number of entries that a vector with equal entries and the same norms would
// have. It ranges from 1 (all on one token) to the number of tokens.
double effective_count(std::span<const double> numbers);

}  // namespace attmirror::deep

// What a network for texts attends to in one text.
//
// A view needs three things that belong together: the weights, the vocabulary they were trained with, and the text.
// What does not fit is refused with both sides named, since a network happily reads the ids of another vocabulary.
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

// `vocabulary_name` is what messages call the vocabulary. Throws Error (bad input), naming the file: weights of another
// kind, or of another vocabulary ("model has a vocabulary of 30522 words, vocab.txt 1000").
TextModel load_text_model(const std::filesystem::path& path, const WordPiece& vocabulary,
                          std::string_view vocabulary_name);

// The same checks for a network that is there already.
void check_vocabulary(const TextModel& model, const WordPiece& vocabulary, std::string_view vocabulary_name);

// A text as all of `models` can read it: cut to the shortest of their lengths.
struct ViewedPieces {
  std::vector<TextPiece> pieces;
  bool cut = false;  // there was more
};
// Throws Error (bad input) for a text without a word; `name` is what the message calls it.
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

// Throws Error (bad input), naming the model, where its numbers are not finite: what is left of a training
// that diverged.
TextAttention text_attention(const TextModel& model, std::span<const TextPiece> pieces, AttentionRows rows);

// (sum |s|)^2 / sum s^2: how many entries a vector of equal entries and the same norms would have. From 1, all on one
// token, to the number of tokens.
double effective_count(std::span<const double> numbers);

}  // namespace attmirror::deep

// A vocabulary of some thirty pieces, reviews, and small networks over them: for the tests of views and of the command.
#pragma once

#include <attmirror/deep/encoder_classifier.hpp>
#include <attmirror/deep/text_set.hpp>
#include <attmirror/deep/vit.hpp>
#include <attmirror/deep/wordpiece.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>

namespace attmirror::view_tests {

inline std::vector<std::string> example_pieces() {
  return {"[PAD]", "[UNK]", "[CLS]",  "[SEP]",   "the",    "movie", "was",       "fantastic", "i",
          "hated", "plot",  "boring", "over",    "##heat", "##s",   "projector", "enjoyed",   "great",
          "well",  "-",     "kept",   "theater", "is",     "it",    "'",         "."};
}

inline const WordPiece& example_vocabulary() {
  static const WordPiece words(example_pieces());
  return words;
}

// One of each fate in P1's score: kept, split, absent; and a word of several words.
inline std::vector<PivotalSentence> example_sentences() {
  return {{1, "fantastic", "The movie was fantastic"}, {0, "hated", "I hated the movie"},
          {0, "boring", "The plot was boring."},       {0, "overheats", "The projector overheats"},
          {1, "great", "I enjoyed the movie"},         {1, "well-kept", "The theater is well-kept"}};
}
inline std::string example_sentences_tsv() {
  std::string text = "label\tpivotal\tsentence\n";
  for (const PivotalSentence& one : example_sentences())
    text += std::to_string(one.label) + "\t" + one.pivotal + "\t" + one.sentence + "\n";
  return text;
}

struct ExampleSize {
  std::int64_t blocks = 2, heads = 2, length = 12, vocabulary = 0;  // 0: that of the example
  double sharpness = 1;  // Q and K are multiplied by it: initial weights attend to all tokens alike
};

inline std::shared_ptr<deep::EncoderClassifier> example_encoder(std::uint64_t seed,
                                                                const ExampleSize& size = {}) {
  deep::EncoderOptions options;
  options.vocabulary =
      size.vocabulary > 0 ? size.vocabulary : static_cast<std::int64_t>(example_pieces().size());
  options.length = size.length;
  options.width = 12;
  options.blocks = size.blocks;
  options.heads = size.heads;
  options.hidden = 16;
  const auto network = std::make_shared<deep::EncoderClassifier>(options, seed);
  const at::NoGradGuard no_gradients;
  for (const deep::Projection& projection : network->projections())
    if (projection.map != 'V') at::Tensor(projection.weight).mul_(size.sharpness);
  return network;
}

inline std::shared_ptr<deep::VisionTransformer> example_vit() {
  deep::VitOptions options;
  options.image = 8;
  options.width = 12;
  options.blocks = 1;
  options.heads = 2;
  options.head_width = 6;
  options.hidden = 16;
  return std::make_shared<deep::VisionTransformer>(options, 1);
}

}  // namespace attmirror::view_tests

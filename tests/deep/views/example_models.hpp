// A vocabulary of some thirty pieces, reviews, images, and small networks over them: for the tests of views and of
// the command.
#pragma once

#include <attmirror/deep/encoder_classifier.hpp>
#include <attmirror/deep/image_set.hpp>
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

struct ExampleVit {
  std::int64_t image = 8, patch = 4, channels = 3, classes = 10, blocks = 1, heads = 2;
  double sharpness = 1;  // as above
};

inline std::shared_ptr<deep::VisionTransformer> example_vit(std::uint64_t seed = 1,
                                                            const ExampleVit& size = {}) {
  deep::VitOptions options;
  options.image = size.image;
  options.patch = size.patch;
  options.channels = size.channels;
  options.classes = size.classes;
  options.width = 12;
  options.blocks = size.blocks;
  options.heads = size.heads;
  options.head_width = 6;
  options.hidden = 16;
  const auto network = std::make_shared<deep::VisionTransformer>(options, seed);
  const at::NoGradGuard no_gradients;
  for (const deep::Projection& projection : network->projections())
    if (projection.map != 'V') at::Tensor(projection.weight).mul_(size.sharpness);
  return network;
}

// Five images of many colors, of the classes 3, 0, 9, 3, 1.
inline ImageSet example_images() {
  ImageSet images;
  images.labels = {3, 0, 9, 3, 1};
  for (std::int64_t i = 0; i < images.count() * images.image_bytes(); ++i)
    images.pixels.push_back(static_cast<std::uint8_t>(i * i / 7 % 251 + i % 5));
  return images;
}
// As CIFAR-10 keeps them; the first label may be another.
inline std::string example_images_bin(char first_label = 3) {
  const ImageSet images = example_images();
  std::string bytes;
  for (std::int64_t i = 0; i < images.count(); ++i) {
    bytes += static_cast<char>(i == 0 ? first_label : images.labels[static_cast<std::size_t>(i)]);
    const auto begin = images.pixels.begin() + i * images.image_bytes();
    bytes.append(begin, begin + images.image_bytes());
  }
  return bytes;
}

}  // namespace attmirror::view_tests

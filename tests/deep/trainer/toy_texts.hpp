// A language in which a review is good if it says 7 and bad if it says 8, among words that mean nothing.
#pragma once

#include "base/random.hpp"
#include <attmirror/deep/token_set.hpp>
#include <attmirror/deep/trainer.hpp>

#include <cstdint>

namespace attmirror::trainer_tests {

inline TokenSet toy_texts(std::int64_t rows, std::uint64_t seed) {
  const CounterRandom random(seed, RandomStream::sentences);
  std::uint64_t next = 0;
  TokenSet tokens;
  tokens.vocabulary = 40;
  tokens.length = 12;
  tokens.vocabulary_fingerprint = "toy";
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto label = static_cast<std::int32_t>(random.below(2, next++));
    const auto length = static_cast<std::int64_t>(3 + random.below(9, next++));
    const auto place =
        static_cast<std::int64_t>(1 + random.below(static_cast<std::uint64_t>(length - 1), next++));
    for (std::int64_t t = 0; t < length; ++t)
      tokens.ids.push_back(t == 0       ? 1
                           : t == place ? 8 - label
                                        : static_cast<std::int32_t>(10 + random.below(30, next++)));
    tokens.offsets.push_back(static_cast<std::int64_t>(tokens.ids.size()));
    tokens.labels.push_back(label);
  }
  return tokens;
}

inline deep::TrainData toy_data() {
  deep::TrainData data;
  data.train_texts = toy_texts(200, 1);
  data.test_texts = toy_texts(60, 2);
  return data;
}

inline TrainConfig toy_config() {
  TrainConfig config;
  config.data.length = 12;
  config.model.width = 16;
  config.model.blocks = 2;
  config.model.heads = 2;
  config.model.dropout = 0.1;
  config.optimizer.lr = 3e-3;
  config.train.epochs = 3;
  config.train.batch = 16;
  config.train.threads = 1;
  config.train.stop_train_accuracy = 2;
  return config;
}

}  // namespace attmirror::trainer_tests

// From what [data] names to token sets and image sets.
#include "deep/corpus/rows.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/text_set.hpp>
#include <attmirror/deep/token_cache.hpp>
#include <attmirror/deep/tokenize.hpp>
#include <attmirror/deep/trainer.hpp>
#include <attmirror/deep/wordpiece.hpp>

#include <optional>

#include <fmt/format.h>

namespace attmirror::deep {

namespace {

// "data.train" is part of every message, besides the file that its reader names.
template <class Read>
auto naming_key(const char* key, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", key, error.what()));
  }
}

class TextReader {
 public:
  explicit TextReader(const TrainConfig& config) : config_(config) {}

  TokenSet read(const char* key, const std::filesystem::path& path) {
    if (path.empty()) throw bad_input(fmt::format("{} is missing: expected a file or folder of texts", key));
    if (path.extension() == ".safetensors")
      return naming_key(key, [&] { return shortened(load_token_set(path), config_.data.length); });
    const WordPiece& wordpiece = vocabulary();
    const TextColumns columns = parse_text_columns(config_.data.columns);
    const int threads = static_cast<int>(config_.train.threads);
    return naming_key(key, [&] {
      if (config_.data.cache.empty())
        return make_token_set(read_text_set(path, {.columns = columns}), wordpiece, config_.data.length,
                              threads);
      TokenCacheOptions options;
      options.length = config_.data.length;
      options.columns = columns;
      options.threads = threads;
      return cached_token_set(path, wordpiece, config_.data.cache, options).tokens;
    });
  }

 private:
  const WordPiece& vocabulary() {
    if (wordpiece_) return *wordpiece_;
    if (config_.data.vocabulary.empty())
      throw bad_input("data.vocabulary is missing: expected the file of WordPieces, one a line");
    wordpiece_ = naming_key("data.vocabulary", [&] { return load_wordpiece(config_.data.vocabulary); });
    return *wordpiece_;
  }

  const TrainConfig& config_;
  std::optional<WordPiece> wordpiece_;
};

ImageSet read_images(const char* key, const std::filesystem::path& place, const char* part) {
  if (place.empty())
    throw bad_input(fmt::format("{} is missing: expected a .bin file of CIFAR-10 or its folder", key));
  return naming_key(key, [&] { return load_cifar10(cifar10_files(place, part)); });
}

}  // namespace

TrainData load_train_data(const TrainConfig& config) {
  TrainData data;
  if (config.data.kind == "text") {
    TextReader reader(config);
    data.train_texts = reader.read("data.train", config.data.train);
    data.test_texts = reader.read("data.test", config.data.test);
  } else {
    data.train_images = read_images("data.train", config.data.train, "train");
    data.test_images = read_images("data.test", config.data.test, "test");
  }
  return data;
}

}  // namespace attmirror::deep

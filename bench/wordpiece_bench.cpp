// How many reviews a second WordPiece turns into ids on one core: all 50,000 of IMDb.
//
//   attmirror_bench_wordpiece [--rounds N] [--plain-every K] [--data FOLDER]
//
// FOLDER holds data/imdb/{train,test}.tsv.xz and tokenizer/bert-base-uncased-vocab.txt; by default it is the folder
// shared beside the checkout. In each round the two engines take their turns, so that a busy machine disturbs both
// alike; the plain one on every K-th review. The table has the best round, which is what the code costs when nobody
// is in its way, and the median. Prints the SHA-256 of the ids and the seconds that reading and unpacking took, which
// are not counted.
#include <attmirror/base/error.hpp>
#include <attmirror/deep/tokenize.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

namespace attmirror {
namespace {

template <class F>
double seconds(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TextSet every(const TextSet& set, std::size_t step) {
  TextSet some;
  for (std::size_t i = 0; i < set.texts.size(); i += step) {
    some.texts.push_back(set.texts[i]);
    some.labels.push_back(set.labels[i]);
  }
  return some;
}

int run(int rounds, std::size_t plain_every, const std::filesystem::path& folder) {
  const std::filesystem::path words = folder / "tokenizer/bert-base-uncased-vocab.txt";
  std::vector<TextSet> sets(2);
  const double reading = seconds([&] {
    sets[0] = read_text_set(folder / "data/imdb/train.tsv.xz");
    sets[1] = read_text_set(folder / "data/imdb/test.tsv.xz");
  });
  WordPiece fast = load_wordpiece(words), plain = load_wordpiece(words, {.engine = WordPieceEngine::plain});
  const double loading = seconds([&] { fast = load_wordpiece(words); });
  std::printf("reading and unpacking %.2f s, vocabulary %.3f s\n", reading, loading);
  std::vector<TextSet> some;
  for (const TextSet& set : sets) some.push_back(every(set, plain_every));

  std::vector<double> fast_rates, plain_rates;
  std::vector<TokenSet> tokens(2);
  for (int round = 0; round < rounds; ++round) {
    for (const bool is_fast : {true, false}) {
      const std::vector<TextSet>& texts = is_fast ? sets : some;
      double rows = 0;
      const double time = seconds([&] {
        for (std::size_t s = 0; s < texts.size(); ++s) {
          TokenSet made = make_token_set(texts[s], is_fast ? fast : plain, 512);
          rows += static_cast<double>(made.rows());
          if (is_fast) tokens[s] = std::move(made);
        }
      });
      (is_fast ? fast_rates : plain_rates).push_back(rows / time);
    }
  }
  for (std::size_t s = 0; s < sets.size(); ++s)
    std::printf("%-5s %lld rows, %zu ids, sha256 %s\n", s == 0 ? "train" : "test",
                static_cast<long long>(tokens[s].rows()), tokens[s].ids.size(),
                ids_sha256(tokens[s]).c_str());
  std::printf("%-6s %22s %22s %14s\n", "engine", "best reviews/s", "median reviews/s", "50,000 in s");
  for (const bool is_fast : {true, false}) {
    std::vector<double>& rates = is_fast ? fast_rates : plain_rates;
    std::sort(rates.begin(), rates.end());
    std::printf("%-6s %22.0f %22.0f %14.2f\n", is_fast ? "fast" : "plain", rates.back(),
                rates[rates.size() / 2], 50'000 / rates.back());
  }
  return 0;
}

}  // namespace
}  // namespace attmirror

int main(int count, char** words) {
  int rounds = 3;
  std::size_t plain_every = 10;
  std::filesystem::path folder = ATTMIRROR_SHARED;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view option = words[i];
    if (option == "--rounds") rounds = std::max(1, std::atoi(words[i + 1]));
    if (option == "--plain-every")
      plain_every = static_cast<std::size_t>(std::max(1, std::atoi(words[i + 1])));
    if (option == "--data") folder = words[i + 1];
  }
  try {
    return attmirror::run(rounds, plain_every, folder);
  } catch (const attmirror::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}

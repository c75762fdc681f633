// What one gradient costs on data that do not fit in the caches, beside the least it could cost: reading the
// tokens once.
//
//   attmirror_bench_large [--rounds N] [--only n,T,d] [--threads K]
//
// A row per shape and number of threads. In each round everything takes its turn (the read, the gradient on either
// path, the gradient with tokens stored as floats), so that a busy machine disturbs all alike; the table has medians
// over the rounds, and the median of the ratio gradient / read within a round. The read is the fastest we know: eight
// independent sums of whole vectors, and the same threads and division as the gradient's.
#include "base/random.hpp"
#include <attmirror/attention/gradient.hpp>
#include <attmirror/base/isa.hpp>
#include <attmirror/data/dataset.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include <immintrin.h>

namespace attmirror {
namespace {

// The sum of `size` doubles, a multiple of 64: what a reader of all data has to do at least.
[[gnu::target("avx512f")]] double read_avx512(const double* x, std::ptrdiff_t size) {
  __m512d sum[8];
  for (auto& s : sum) s = _mm512_setzero_pd();
  for (std::ptrdiff_t j = 0; j < size; j += 64)
    for (int k = 0; k < 8; ++k) sum[k] = sum[k] + _mm512_loadu_pd(x + j + 8 * k);
  for (int k = 1; k < 8; ++k) sum[0] = sum[0] + sum[k];
  double lanes[8];
  _mm512_storeu_pd(lanes, sum[0]);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3] + lanes[4] + lanes[5] + lanes[6] + lanes[7];
}

[[gnu::target("avx2")]] double read_avx2(const double* x, std::ptrdiff_t size) {
  __m256d sum[8];
  for (auto& s : sum) s = _mm256_setzero_pd();
  for (std::ptrdiff_t j = 0; j < size; j += 32)
    for (int k = 0; k < 8; ++k) sum[k] = sum[k] + _mm256_loadu_pd(x + j + 4 * k);
  for (int k = 1; k < 8; ++k) sum[0] = sum[0] + sum[k];
  return sum[0][0] + sum[0][1] + sum[0][2] + sum[0][3];
}

double read_sse2(const double* x, std::ptrdiff_t size) {
  __m128d sum[8];
  for (auto& s : sum) s = _mm_setzero_pd();
  for (std::ptrdiff_t j = 0; j < size; j += 16)
    for (int k = 0; k < 8; ++k) sum[k] = sum[k] + _mm_loadu_pd(x + j + 2 * k);
  for (int k = 1; k < 8; ++k) sum[0] = sum[0] + sum[k];
  return sum[0][0] + sum[0][1];
}

double read_once(const double* x, std::ptrdiff_t size, ThreadPool& pool) {
  const Chunking parts = fixed_chunks(size, 64 * 1024, 32);
  double sums[32] = {};
  pool.run(parts.count, [&](std::ptrdiff_t c) {
    const std::ptrdiff_t from = parts.begin(c), count = (parts.end(c) - from) / 64 * 64;
    switch (active_isa()) {
      case Isa::avx512:
        sums[c] = read_avx512(x + from, count);
        break;
      case Isa::avx2:
        sums[c] = read_avx2(x + from, count);
        break;
      case Isa::sse2:
        sums[c] = read_sse2(x + from, count);
        break;
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

// Tokens of size one and random labels; cheap numbers, because half a gigabyte of them is wanted.
Dataset draw(std::ptrdiff_t n, std::ptrdiff_t T, std::ptrdiff_t d) {
  const CounterRandom random(1, RandomStream::lengths);
  std::uint64_t next = 0;
  const auto uniform = [&] { return random.uniform(next++) - 0.5; };
  DatasetArrays arrays;
  arrays.tokens =
      Matrix::NullaryExpr(n * T, d, [&] { return uniform() * std::sqrt(12.0 / static_cast<double>(d)); });
  arrays.queries = Matrix::NullaryExpr(n, d, uniform);
  arrays.decoder = Vector::NullaryExpr(d, uniform);
  arrays.lengths.assign(static_cast<std::size_t>(n), T);
  for (std::ptrdiff_t i = 0; i < n; ++i) arrays.labels.push_back(uniform() < 0 ? -1 : 1);
  return Dataset(arrays);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

template <class F>
double milliseconds(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// One gradient engine that takes turns with the others.
struct Contestant {
  GradientEngine engine;
  Gradient gradient = engine.make_gradient();
  std::vector<double> times{}, ratios{};
  Contestant(const Attention& model, EngineOptions options, ThreadPool& pool)
      : engine(model, options, pool) {}
};

void compare(const Dataset& data, int threads, int rounds) {
  const Attention model(data);
  ThreadPool pool(threads);
  ParameterBlocks weights(model.blocks());
  Parameters at = model.zero_parameters();
  const CounterRandom random(2, RandomStream::init_W);
  std::uint64_t next = 0;
  at.W = Matrix::NullaryExpr(data.dim(), data.dim(), [&] { return random.uniform(next++) - 0.5; });
  weights.assign(at);

  Contestant contestants[] = {{model, {.path = DataPath::stream}, pool},
                              {model, {.path = DataPath::stream, .storage = TokenStorage::float32}, pool},
                              {model, {.path = DataPath::block}, pool},
                              {model, {.path = DataPath::block, .storage = TokenStorage::float32}, pool}};
  std::vector<double> reads;
  volatile double sink = 0;
  for (int round = -1; round < rounds; ++round) {  // the first one warms up
    const double read = milliseconds(
        [&] { sink = sink + read_once(data.all_tokens().data, data.all_tokens().flat_size(), pool); });
    if (round >= 0) reads.push_back(read);
    for (Contestant& contestant : contestants) {
      const double time = milliseconds([&] { contestant.engine.evaluate(weights, contestant.gradient); });
      if (round < 0) continue;
      contestant.times.push_back(time);
      contestant.ratios.push_back(time / read);
    }
  }
  GradientEngine automatic(model, EngineOptions{}, pool);
  std::printf("| %td | %td | %td | %d | %.3g", data.samples(), data.max_length(), data.dim(), threads,
              median(reads));
  for (const Contestant& contestant : contestants)
    std::printf(" | %.3g (%.2f)", median(contestant.times), median(contestant.ratios));
  std::printf(" | %s |\n", std::string(to_string(automatic.path())).c_str());
  std::fflush(stdout);
}

struct Size {
  long n, T, d;
};

}  // namespace
}  // namespace attmirror

int main(int count, char** words) {
  using namespace attmirror;
  int rounds = 15, threads = 0;
  std::vector<Size> sizes = {{4096, 128, 128}, {4096, 64, 64},  {1024, 64, 64},  {256, 32, 64},
                             {64, 32, 64},     {16384, 32, 32}, {32768, 16, 16}, {65536, 8, 10},
                             {32, 4096, 64},   {512, 1024, 10}};
  for (int k = 1; k + 1 < count; k += 2) {
    const std::string_view option = words[k];
    Size only{};
    if (option == "--rounds") {
      rounds = std::max(1, std::atoi(words[k + 1]));
    } else if (option == "--threads") {
      threads = std::atoi(words[k + 1]);
    } else if (option == "--only" &&
               std::sscanf(words[k + 1], "%ld,%ld,%ld", &only.n, &only.T, &only.d) == 3) {
      sizes = {only};
    } else {
      std::fprintf(stderr,
                   "attmirror_bench_large: what is %s %s? Options: --rounds N, --only n,T,d, --threads K\n",
                   words[k], words[k + 1]);
      return 2;
    }
  }
  std::printf("milliseconds per gradient of W (times one read of the tokens), medians of %d rounds, %s\n",
              rounds, std::string(to_string(active_isa())).c_str());
  std::puts("| n | T | d | threads | read | stream | stream, float32 | block | block, float32 | auto is |");
  std::puts("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |");
  for (const Size& size : sizes) {
    const Dataset data = draw(size.n, size.T, size.d);
    for (const int with : {1, 2})
      if (threads == 0 || threads == with) compare(data, with, rounds);
  }
}

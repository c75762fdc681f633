// What a step of next-token prediction costs: the loss and gradient of each stage, for one-hot and Gaussian embeddings.
//
//   attmirror_bench_next_token [--vocabulary V] [--sentences N] [--rounds R] [--threads K]
//
// A table with seconds per evaluation (medians), seconds of all processors together (least of the rounds: on a busy
// machine the number to look at, divided by the threads), and the memory that the process has taken so far at most.
// The target: 2,000 words and 100,000 sentences in less than a minute per hundred steps on two cores, 0.6 s each.
// Then small problems, in microseconds, and the matrix product that Gaussian embeddings live on.
#include "base/matrix_product.hpp"
#include "base/random.hpp"
#include <attmirror/base/isa.hpp>
#include <attmirror/next_token/model.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include <sys/resource.h>

namespace attmirror {
namespace {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

template <class F>
double seconds(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Time that all threads of this process have worked.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

struct Data {
  Collocations collocations;
  Sentences sentences;
};

// Sentences of 4 to 6 random tokens, dealt to the queries in turn; the label follows one of the tokens.
Data draw(std::ptrdiff_t vocabulary, std::ptrdiff_t sentences) {
  const CounterRandom random(1, RandomStream::lengths);
  std::uint64_t next = 0;
  const auto below = [&](std::ptrdiff_t bound) {
    return static_cast<Token>(random.uniform(next++) * static_cast<double>(bound));
  };
  Data data{Collocations(vocabulary), Sentences(vocabulary)};
  for (Token x = 0; x < vocabulary; ++x) data.collocations.add(x, below(vocabulary));
  for (std::ptrdiff_t i = 0; i < sentences; ++i) {
    std::vector<Token> tokens(static_cast<std::size_t>(4 + below(3)));
    for (Token& token : tokens) token = below(vocabulary);
    tokens.back() = static_cast<Token>(i % vocabulary);
    const Token best = tokens[static_cast<std::size_t>(below(static_cast<std::ptrdiff_t>(tokens.size())))];
    data.sentences.add(tokens, data.collocations.successor(best));
  }
  return data;
}

Parameters random_weights(const NextTokenModel& model) {
  const CounterRandom random(2, RandomStream::init_W);
  std::uint64_t next = 0;
  Parameters at = model.zero_parameters();
  for (const Block& name : {NextTokenBlock::W_ov, NextTokenBlock::W_kq})
    if (const auto found = at.matrices.find(name); found != at.matrices.end())
      found->second = Matrix::NullaryExpr(found->second.rows(), found->second.cols(),
                                          [&] { return random.uniform(next++) - 0.5; });
  return at;
}

struct Cost {
  double seconds = 0;    // median over rounds of one evaluation with gradient
  double processor = 0;  // least
};

Cost step(const NextTokenModel& model, int threads, int rounds) {
  ThreadPool pool(threads);
  NextTokenEngine engine(model, pool);
  ParameterBlocks weights(model.blocks());
  weights.assign(random_weights(model));
  Gradient gradient = engine.make_gradient();
  engine.evaluate(weights, gradient);
  std::vector<double> times, processor;
  for (int round = 0; round < rounds; ++round) {
    const double before = processor_seconds();
    times.push_back(seconds([&] { engine.evaluate(weights, gradient); }));
    processor.push_back(processor_seconds() - before);
  }
  return {median(times), std::ranges::min(processor)};
}

constexpr Stage stages[] = {Stage::collocation, Stage::attention, Stage::joint};

void large(std::ptrdiff_t vocabulary, std::ptrdiff_t sentences, int rounds, int only_threads) {
  const Data data = draw(vocabulary, sentences);
  const EmbeddingOptions embeddings[] = {{.kind = EmbeddingKind::one_hot},
                                         {.kind = EmbeddingKind::gaussian, .dim = 256},
                                         {.kind = EmbeddingKind::gaussian, .dim = vocabulary}};
  std::printf("seconds per step, %td words, %td sentences, medians of %d rounds, %s\n", vocabulary, sentences,
              rounds, std::string(to_string(active_isa())).c_str());
  std::puts("| embedding | d | stage | threads | seconds | processor seconds | peak MB |");
  std::puts("| --- | ---: | --- | ---: | ---: | ---: | ---: |");
  for (const EmbeddingOptions& options : embeddings) {
    const Embedding embedding = make_embedding(vocabulary, options);
    for (const Stage stage : stages) {
      const NextTokenModel model({&embedding, &data.collocations, &data.sentences}, stage);
      for (const int threads : {1, 2}) {
        if (only_threads != 0 && threads != only_threads) continue;
        const Cost cost = step(model, threads, rounds);
        std::printf("| %s | %td | %s | %d | %.3f | %.3f | %.0f |\n",
                    std::string(to_string(options.kind)).c_str(), embedding.dim(),
                    std::string(to_string(stage)).c_str(), threads, cost.seconds, cost.processor,
                    peak_megabytes());
        std::fflush(stdout);
      }
    }
  }
}

void small() {
  const Data data = draw(20, 100);
  std::puts("\nmicroseconds per step, 20 words, 100 sentences, 1 thread");
  std::puts("| embedding | stage | microseconds |\n| --- | --- | ---: |");
  for (const EmbeddingKind kind : {EmbeddingKind::one_hot, EmbeddingKind::gaussian}) {
    const Embedding embedding = make_embedding(20, {.kind = kind});
    for (const Stage stage : stages) {
      const NextTokenModel model({&embedding, &data.collocations, &data.sentences}, stage);
      std::printf("| %s | %s | %.1f |\n", std::string(to_string(kind)).c_str(),
                  std::string(to_string(stage)).c_str(), 1e6 * step(model, 1, 2001).seconds);
    }
  }
}

void products(int rounds) {
  std::puts(
      "\nmatrix products of size n x n\n| n | threads | A B, GFLOP/s | A^T B, GFLOP/s |\n| ---: | ---: | "
      "---: | ---: |");
  for (const std::ptrdiff_t n : {64, 256, 1000, 2000})
    for (const int threads : {1, 2}) {
      ThreadPool pool(threads);
      MatrixProduct product(pool);
      PaddedMatrix A(n, n), B(n, n), C(n, n);
      A.view().eigen().setConstant(0.5);
      B.view().eigen().setConstant(0.25);
      const auto speed = [&](auto&& multiply) {
        const int repeats = n < 500 ? 100 : 1;
        std::vector<double> times;
        for (int round = -1; round < rounds; ++round)
          times.push_back(seconds([&] {
            for (int k = 0; k < repeats; ++k) multiply();
          }));
        return 2e-9 * static_cast<double>(n * n * n) * repeats / median(times);
      };
      const auto b = one_panel(ConstMatrixView(B.view()));
      const double plain = speed([&] { product.multiply(A.view(), b, one_panel(C.view())); });
      const double transposed = speed([&] { product.multiply_transposed(A.view(), b, one_panel(C.view())); });
      std::printf("| %td | %d | %.1f | %.1f |\n", n, threads, plain, transposed);
    }
}

}  // namespace
}  // namespace attmirror

int main(int count, char** words) {
  using namespace attmirror;
  long vocabulary = 2000, sentences = 100'000;
  int rounds = 5, threads = 0;
  for (int k = 1; k + 1 < count; k += 2) {
    const std::string_view option = words[k];
    const int value = std::atoi(words[k + 1]);
    if (option == "--vocabulary" && value > 1)
      vocabulary = value;
    else if (option == "--sentences" && value > 0)
      sentences = value;
    else if (option == "--rounds" && value > 0)
      rounds = value;
    else if (option == "--threads" && value > 0)
      threads = value;
    else {
      std::fprintf(
          stderr,
          "attmirror_bench_next_token: what is %s %s? Options: --vocabulary V, --sentences N, --rounds R, "
          "--threads K\n",
          words[k], words[k + 1]);
      return 2;
    }
  }
  large(vocabulary, sentences, rounds, threads);
  small();
  products(rounds);
}

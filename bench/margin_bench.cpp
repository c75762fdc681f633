// What max-margin problems cost: at the papers' size and at the size of a layer, many at once, many constraints, and as
// the data grow.
//
//   attmirror_bench_margin [--only sizes|batch|planted|growth] [--norm N] [--seeds N] [--seconds S] [--threads K]
//
//   sizes    microseconds per solve for each norm over many seeds, one thread
//   batch    10,000 problems of the papers' size, p = 1.75, 2, 3 in turn, through max_margins()
//   planted  n = 1000, T = 64, d = 64 (63,000 constraints), which random tokens would make infeasible: a hidden W with
//            normal entries selects the tokens, alpha_i = arg max_t x_t^T W z_i, so that a multiple of it separates
//   growth   the same plantation as n, T and d double, one at a time: processor time per constraint
//
// Every row says how many answers were certified, the worst gap and the median number of iterations: a fast
// answer that is not certified is none. Memory is the highest that the whole process had by then. Competitors are
// in bench/margin/compare.py.
#include "base/random.hpp"
#include <attmirror/base/isa.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/margin/max_margin.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/resource.h>

namespace attmirror {
namespace {

struct Size {
  std::ptrdiff_t n, T, d;
};

struct Settings {
  std::string only{}, norm{};
  int seeds = 200;
  double seconds = 10;  // that one row of `sizes` may take; it then has fewer seeds
  int threads = 1;      // of planted and growth
};

struct Problem {
  Dataset data;
  Selection tokens;
};

// The token of each query with the largest value of `score(tokens of its sequence, query)`.
template <class Score>
Problem select(Dataset data, Score&& score) {
  Selection tokens;
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i) {
    Eigen::Index best = 0;
    score(data.tokens(i).eigen(), i).maxCoeff(&best);
    tokens.tokens.push_back(best);
  }
  return {std::move(data), std::move(tokens)};
}

Dataset draw(const Size& size, std::uint64_t seed) {
  return generate(SphereData{.samples = size.n, .tokens = size.T, .dim = size.d, .seed = seed});
}

// Unit tokens and queries; the tokens of highest score y v^T x. Separable with probability 1 where d >= T - 1 and d
// >= n.
Problem highest_scores(const Size& size, std::uint64_t seed) {
  Dataset data = draw(size, seed);
  const Vector decoder = data.decoder().eigen().row(0);
  const std::vector<double> labels(data.labels().begin(), data.labels().end());
  return select(std::move(data), [&](const auto& tokens, std::ptrdiff_t i) -> Vector {
    return labels[static_cast<std::size_t>(i)] * (tokens * decoder);
  });
}

Problem planted(const Size& size, std::uint64_t seed) {
  const CounterRandom random(seed, RandomStream::init_W);
  std::uint64_t next = 0;
  const Matrix hidden = Matrix::NullaryExpr(size.d, size.d, [&] { return random.normal(next++); });
  Dataset data = draw(size, seed);
  const Matrix seen = data.queries().eigen() * hidden.transpose();  // row i: W z_i
  return select(std::move(data), [&](const auto& tokens, std::ptrdiff_t i) -> Vector {
    return tokens * seen.row(i).transpose();
  });
}

template <class T>
T median(std::vector<T> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Seconds by the clock on the wall, and those that a processor worked for us: on a busy machine the second is the one
// to look at, for one thread.
struct Times {
  double wall, busy;
};

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class F>
Times measure(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  const double busy = processor_seconds();
  f();
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
          processor_seconds() - busy};
}

// How good many answers are.
struct Tally {
  int certified = 0, infeasible = 0, stopped = 0;
  double worst_gap = 0;  // of those with a W
  std::vector<int> iterations{};

  void add(const MarginSolution& svm) {
    certified += svm.status == MarginStatus::certified;
    infeasible += svm.status == MarginStatus::infeasible;
    stopped += svm.status == MarginStatus::stopped;
    if (svm.status != MarginStatus::infeasible) worst_gap = std::max(worst_gap, svm.gap);
    iterations.push_back(svm.iterations);
  }
  std::string text() const {
    std::string result =
        std::to_string(certified) + " of " + std::to_string(iterations.size()) + " certified";
    if (infeasible > 0) result += ", " + std::to_string(infeasible) + " infeasible";
    if (stopped > 0) result += ", " + std::to_string(stopped) + " stopped";
    return result;
  }
};

long peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

// --- sizes
// ------------------------------------------------------------------------------------------------------------

void one_size(const Size& size, const Norm& norm, const Settings& settings) {
  Tally tally;
  std::vector<double> wall, busy;
  double total = 0;
  // The problems come first, so that drawing them disturbs no caches between solves.
  std::vector<Problem> problems;
  for (int seed = 1; seed <= settings.seeds; ++seed)
    problems.push_back(highest_scores(size, static_cast<std::uint64_t>(seed)));
  (void)max_margin(problems[0].data, problems[0].tokens, norm);  // warms up
  for (const Problem& problem : problems) {
    MarginSolution svm;
    const Times time = measure([&] { svm = max_margin(problem.data, problem.tokens, norm); });
    wall.push_back(time.wall);
    busy.push_back(time.busy);
    tally.add(svm);
    total += time.wall;
    if (total > settings.seconds) break;
  }
  std::printf("| %td | %td | %td | %s | %.0f | %.0f | %.0f | %s | %.1e | %d |\n", size.n, size.T, size.d,
              to_string(norm).c_str(), median(wall) * 1e6, median(busy) * 1e6, std::ranges::max(busy) * 1e6,
              tally.text().c_str(), tally.worst_gap, median(tally.iterations));
  std::fflush(stdout);
}

void sizes(const Settings& settings) {
  std::puts("\nmicroseconds per solve, one thread\n");
  std::puts("| n | T | d | norm | median | processor, median | slowest | status | worst gap | iterations |");
  std::puts("| ---: | ---: | ---: | --- | ---: | ---: | ---: | --- | ---: | ---: |");
  const char* norms[] = {"1.1",      "1.75",         "2",         "3", "10", "1", "inf", "nuclear",
                         "spectral", "schatten:1.5", "schatten:3"};
  for (const Size& size : {Size{6, 8, 10}, Size{50, 16, 64}})
    for (const char* norm : norms)
      if (settings.norm.empty() || settings.norm == norm) one_size(size, parse_norm(norm), settings);
}

// --- batch
// ------------------------------------------------------------------------------------------------------------

void batch() {
  constexpr int count = 10'000, distinct = 1000;  // the data repeat, the problems do not: p moves on by one
  const Norm norms[] = {Norm::l(1.75), Norm::l(2), Norm::l(3)};
  std::vector<Problem> problems;
  for (int seed = 1; seed <= distinct; ++seed)
    problems.push_back(highest_scores({6, 8, 10}, static_cast<std::uint64_t>(seed)));
  std::vector<MarginTask> tasks;
  for (int k = 0; k < count; ++k) {
    const Problem& problem = problems[static_cast<std::size_t>(k % distinct)];
    tasks.push_back({&problem.data, AttentionSvm{problem.tokens}, norms[(k + k / distinct) % 3]});
  }
  std::printf("\nbatch of %d problems, n = 6, T = 8, d = 10, p = 1.75, 2, 3 mixed\n\n", count);
  std::puts("| threads | seconds | processor | microseconds each | status | worst gap | iterations |");
  std::puts("| ---: | ---: | ---: | ---: | --- | ---: | ---: |");
  for (const int threads : {1, 2}) {
    std::vector<MarginSolution> answers;
    const Times time = measure([&] { answers = max_margins(tasks, {.threads = threads}); });
    Tally tally;
    for (const MarginSolution& svm : answers) tally.add(svm);
    std::printf("| %d | %.3f | %.3f | %.0f | %s | %.1e | %d |\n", threads, time.wall, time.busy,
                time.wall / count * 1e6, tally.text().c_str(), tally.worst_gap, median(tally.iterations));
    std::fflush(stdout);
  }
}

// --- planted, growth
// --------------------------------------------------------------------------------------------------

void one_planted(const Size& size, const Norm& norm, double tolerance, int threads) {
  const Problem problem = planted(size, 1);
  const long before = peak_megabytes();
  MarginOptions options{.threads = threads};
  options.tol = tolerance;
  MarginSolution svm;
  const Times time = measure([&] { svm = max_margin(problem.data, problem.tokens, norm, options); });
  const auto constraints = static_cast<double>(size.n * (size.T - 1));
  std::printf(
      "| %td | %td | %td | %.0f | %s | %d | %.4g | %.4g | %.2f | %s | %.1e | %d | %zu | %ld (%ld) | %s |\n",
      size.n, size.T, size.d, constraints, to_string(norm).c_str(), threads, time.wall, time.busy,
      time.busy / constraints * 1e6, std::string(to_string(svm.status)).c_str(), svm.gap, svm.iterations,
      svm.support.size(), peak_megabytes(), before, svm.method.c_str());
  std::fflush(stdout);
}

void planted_header(const char* title) {
  std::printf("\n%s\n\n", title);
  std::puts(
      "| n | T | d | constraints | norm | threads | seconds | processor | us / constraint | status | gap | "
      "iterations | "
      "support | "
      "peak MB (before) | method |");
  std::puts(
      "| ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | --- "
      "|");
}

void large(const Settings& settings) {
  planted_header("planted, to 1e-10 for p = 2 and to 1e-8 for p = 1.5");
  one_planted({1000, 64, 64}, Norm::frobenius(), 1e-10, settings.threads);
  one_planted({1000, 64, 64}, Norm::l(1.5), 1e-8, settings.threads);
}

void growth(const Settings& settings) {
  planted_header("growth, planted, to 1e-10");
  const Norm norm = settings.norm.empty() ? Norm::frobenius() : parse_norm(settings.norm);
  for (const Size& size :
       {// n
        Size{250, 16, 32}, Size{500, 16, 32}, Size{1000, 16, 32}, Size{2000, 16, 32}, Size{4000, 16, 32},
        // T
        Size{500, 32, 32}, Size{500, 64, 32}, Size{500, 128, 32},
        // d
        Size{500, 16, 8}, Size{500, 16, 16}, Size{500, 16, 64}})
    one_planted(size, norm, 1e-10, settings.threads);
}

bool read_option(std::string_view option, const char* value, Settings& settings) {
  if (option == "--only") {
    settings.only = value;
    return settings.only == "sizes" || settings.only == "batch" || settings.only == "planted" ||
           settings.only == "growth";
  }
  if (option == "--norm") {
    settings.norm = value;
  } else if (option == "--seeds") {
    settings.seeds = std::max(1, std::atoi(value));
  } else if (option == "--seconds") {
    settings.seconds = std::atof(value);
  } else if (option == "--threads") {
    settings.threads = std::max(1, std::atoi(value));
  } else {
    return false;
  }
  return true;
}

}  // namespace
}  // namespace attmirror

int main(int count, char** words) {
  using namespace attmirror;
  Settings settings;
  for (int k = 1; k < count; k += 2)
    if (k + 1 == count || !read_option(words[k], words[k + 1], settings)) {
      std::fprintf(
          stderr,
          "attmirror_bench_margin: what is %s? Options: --only sizes|batch|planted|growth, --norm N, "
          "--seeds N, --seconds S, --threads K\n",
          words[k]);
      return 2;
    }
  std::printf("instruction set %s\n", std::string(to_string(active_isa())).c_str());
  const auto wanted = [&](const char* section) { return settings.only.empty() || settings.only == section; };
  if (wanted("sizes")) sizes(settings);
  if (wanted("batch")) batch();
  if (wanted("planted")) large(settings);
  if (wanted("growth")) growth(settings);
}

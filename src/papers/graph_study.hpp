// Next-token prediction where the data contradict themselves: cyclic priorities and soft collocations, and how near
// training comes to W_fin + R W_dir. Internal; p4_graph.cpp tells the story.
#pragma once

#include <attmirror/descent/descend.hpp>
#include <attmirror/next_token/embedding.hpp>
#include <attmirror/next_token/graph_svm.hpp>
#include <attmirror/next_token/sentences.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace attmirror::graph_study {

constexpr std::ptrdiff_t vocabulary = 10, base_sentences = 50;

// Realizable sentences (linear extensions) of different tokens, one in five of them also with a second label that
// follows another of its tokens, half as often; one in ten with that label alone. And for each token one to three
// successors with weights 1 to 4.
struct ContradictoryData {
  Collocations hard, soft;
  Sentences sentences;
};
ContradictoryData contradictory_data(std::uint64_t seed);

// Where theory says that training goes.
struct Limit {
  FinitePart finite;
  MarginSolution direction;
  // Tokens in components of two or more (over queries), or with several successors.
  std::ptrdiff_t contradicting = 0;
  // Score differences that stay finite: under `looking`, of token a and token b.
  struct Contest {
    Token looking, a, b;
  };
  std::vector<Contest> contests;

  bool is_certain() const { return finite.converged && direction.status == MarginStatus::certified; }
};
Limit attention_limit(const Embedding& embedding, const ContradictoryData& data);
Limit collocation_limit(const Embedding& embedding, const ContradictoryData& data);

// A run beside its limit, record by record.
struct Curve {
  std::vector<double> step;
  std::vector<double> excess;        // loss above its floor
  std::vector<double> finite_error;  // largest error of a score difference that should be finite
  std::vector<double> R;             // of the nearest point of W_fin + R W_dir
  std::vector<double> angle;         // 1 - cos between W - W_fin and W_dir

  // The slope of y against log(step), and the exponent a of y ~ x^a: least squares over steps from `from` on.
  double slope(const std::vector<double>& y, double from) const;
  double exponent(const std::vector<double>& y, const std::vector<double>& x, double from) const;
  // The last y over the first from that step on.
  double fall(const std::vector<double>& y, double from) const;
};
enum class Weights { attention, collocation };  // W_kq or W_ov
Curve compare(const DescentRun& run, const Embedding& embedding, const Limit& limit, Weights weights);

// What is trained, and how.
struct Setting {
  Weights weights = Weights::attention;
  EmbeddingKind kind = EmbeddingKind::one_hot;
  enum class Steps { plain, normalized } steps = Steps::plain;

  std::string name() const;
  double lr() const;
};
constexpr double plain_lr = 4;
double normalized_lr();  // P4's of stage 2

struct Measured {
  Limit limit;
  Curve curve;
  RunStatus status = RunStatus::completed;
};
Measured measure(const Setting& setting, std::uint64_t seed, std::int64_t steps);

// P4's two stages with its step sizes on the sentences with cycles, one-hot, `first_steps` and `steps` long.
struct TwoStages {
  std::int64_t first_steps = 0;
  double norm = 0;             // of W_ov
  double excess = 0;           // loss above the floor of attention alone
  double largest_contest = 0;  // score difference within a component
  double angle = 0;            // 1 - cos(W_kq, W_dir)
};
TwoStages measure_stages(std::uint64_t seed, std::int64_t first_steps, std::int64_t steps);

}  // namespace attmirror::graph_study

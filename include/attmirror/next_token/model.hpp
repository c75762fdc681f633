// P4's model: one layer of attention that predicts the next token.
//
//   T(X) = softmax(W_ov X^T s),   s = softmax(X W_kq x_q),   X = rows E[x_1], ..., E[x_L],   x_q = E[x_L]
//
//   L0(W_ov)        = - mean over x of log softmax(W_ov x)_{n(x)}               the collocations alone
//   L(W_ov, W_kq)   = - sum over sentences of pi(X, y) log T(X)_y               weights pi sum to 1
//
// Algorithm 1 trains W_ov on L0, then W_kq on L with W_ov frozen. Joint training moves both on L + L0. Li et al.
// (2024) have no W_ov: their probability of y is the attention on the tokens that y follows (Readout::attention).
#pragma once

#include <attmirror/attention/gradient.hpp>
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/next_token/embedding.hpp>
#include <attmirror/next_token/sentences.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// The blocks of these models, as in run.last().matrix("W_kq").
struct NextTokenBlock {
  static constexpr Block W_ov{"W_ov"}, W_kq{"W_kq"};
};

// Which weights are trained.
enum class Stage {
  collocation,  // stage 1: trains W_ov on L0
  attention,    // stage 2: trains W_kq on L
  joint,        // both on L + L0
};
std::string_view to_string(Stage stage);  // "W_ov", "W_kq", "joint"

// From what the output is read.
enum class Readout {
  softmax,    // P4: softmax(W_ov X^T s)_y
  attention,  // Li et al.: the sum of s over the tokens with n(x) = y; there is no W_ov
};
std::string_view to_string(Readout readout);

// The data of a model, not owned: keep them alive. `sentences` may be empty in stage `collocation`.
struct NextTokenData {
  const Embedding* embedding = nullptr;
  const Collocations* collocations = nullptr;
  const Sentences* sentences = nullptr;
};

// P4's layer on a set of sentences. It views the data, which must outlive it.
class NextTokenModel {
 public:
  // Throws Error (bad input) if vocabularies differ, there is nothing to train on, or the readout has no such stage.
  NextTokenModel(const NextTokenData& data, Stage stage, Readout readout = Readout::softmax);

  const Embedding& embedding() const { return *data_.embedding; }
  const Collocations& collocations() const { return *data_.collocations; }
  const Sentences& sentences() const { return *data_.sentences; }
  Stage stage() const { return stage_; }
  Readout readout() const { return readout_; }
  std::ptrdiff_t vocabulary_size() const { return embedding().vocabulary_size(); }
  std::ptrdiff_t dim() const { return embedding().dim(); }

  // W_ov is stored transposed (d rows of |V|), so that the logits of token x, x^T W_ov^T, are a sum of rows;
  // W_kq is stored transposed too, so that W_kq x_q is a sum of rows. All blocks means those that the stage
  // needs, trained or frozen.
  const std::vector<BlockShape>& blocks() const { return blocks_; }
  const std::vector<Block>& trained() const { return trained_; }
  Parameters zero_parameters() const;

 private:
  NextTokenData data_;
  Stage stage_;
  Readout readout_;
  std::vector<BlockShape> blocks_;
  std::vector<Block> trained_;
};

// Value and gradient of the stage's loss. All memory is set up once; evaluate() allocates nothing. The same
// bits for any number of threads.
struct NextTokenEvaluation {
  double loss = 0;
  // Share (by weight) of sentences (collocations in stage 1) whose most probable token is y; ties count as wrong.
  double accuracy = 0;
  // Mean (by weight) over sentences of the attention's largest probability; 1 in stage 1.
  double max_softmax = 0;
};

// How gradients go through the sentences.
enum class NextTokenPath {
  fast,   // vector kernels, products shared between sentences
  plain,  // one sentence after the other, as the formulas are written, for comparison
};

// Computes loss and gradient of the layer in memory that it allocates once.
class NextTokenEngine {
 public:
  // Uses the kernels of active_isa() at this moment. The model and the pool must outlive the engine.
  NextTokenEngine(const NextTokenModel& model, ThreadPool& pool, NextTokenPath path = NextTokenPath::fast);
  ~NextTokenEngine();
  NextTokenEngine(NextTokenEngine&&) noexcept;
  NextTokenEngine& operator=(NextTokenEngine&&) noexcept;

  // `parameters` holds all blocks of the model; `gradient` is made by make_gradient(), its blocks times e^log_scale.
  // A frozen W_ov is read again only after new_frozen_weights().
  NextTokenEvaluation evaluate(const ParameterBlocks& parameters, Gradient& gradient);
  NextTokenEvaluation evaluate(const ParameterBlocks& parameters);
  void new_frozen_weights();

  Gradient make_gradient() const;

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

// The most probable next token of each sentence; ties go to the first. Works for any sentences.
std::vector<Token> predict(const Sentences& sentences, const Embedding& embedding,
                           const Parameters& parameters, int threads = 1);
// The share, by weight, of sentences whose prediction is their label.
double accuracy(const Sentences& sentences, const Embedding& embedding, const Parameters& parameters,
                int threads = 1);

}  // namespace attmirror

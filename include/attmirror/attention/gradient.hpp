// Value and gradient of the loss, for loops that need many of them: all memory is set up once, and evaluate()
// allocates nothing.
//
// The queries are divided into chunks by their number and size alone. Each chunk computes its own sum, and
// chunks are added in order, so the result has the same bits for any number of threads.
#pragma once

#include <attmirror/attention/attention.hpp>
#include <attmirror/base/thread_pool.hpp>

#include <memory>
#include <string_view>
#include <vector>

namespace attmirror {

// How the derivative of the softmax is evaluated (src/attention/attention_steps.hpp has the formulas).
enum class Jacobian {
  safe,      // full relative accuracy for nearly one-hot attention, with a common factor kept as a logarithm
  textbook,  // s_t (gamma_t - s^T gamma), with the rounding of automatic differentiation: matches published
             // runs
};

std::string_view to_string(Jacobian jacobian);
Jacobian parse_jacobian(std::string_view name);

// How gradients go through the data. This affects only speed; results agree to rounding.
enum class DataPath {
  automatic,  // chosen by the size of the sequences
  block,      // step by step over blocks of short sequences
  stream,     // all steps of a query while its tokens are in the cache and the next ones are being fetched
};

std::string_view to_string(DataPath path);
DataPath parse_data_path(std::string_view name);

// How the engine stores the tokens. All arithmetic is in double precision.
enum class TokenStorage {
  float64,  // as in the dataset
  // A copy rounded to single precision, with half the bytes to read; exact if the tokens are floats already.
  float32,
};

std::string_view to_string(TokenStorage storage);
TokenStorage parse_token_storage(std::string_view name);

// How a gradient is computed: on how many threads, along which path through the data, in which precision.
struct EngineOptions {
  Jacobian jacobian = Jacobian::safe;            // accurate everywhere; textbook matches published runs
  DataPath path = DataPath::automatic;           // choose another only to compare them
  TokenStorage storage = TokenStorage::float64;  // exactly what the user gave

  // Throws Error (bad input) when a value is not one of its enumeration.
  void validate() const;
};

// What an evaluation yields besides the gradient.
struct Evaluation {
  double loss = 0;         // L
  double max_softmax = 0;  // mean over queries of the largest attention probability
};

// The gradient of block b is the stored numbers times e^log_scale[b]. Normalized descent needs only the
// direction, which stays exact when the gradient itself is far below the smallest double.
struct Gradient {
  ParameterBlocks blocks;  // the trained blocks of the model
  std::vector<double> log_scale;
};

// Computes loss and gradient again and again, in memory that it allocates once.
class GradientEngine {
 public:
  // Uses the kernels of active_isa() at this moment. The model and the pool must outlive the engine.
  // Throws Error (bad input) when tokens beyond the range of floats are to be stored in single precision.
  GradientEngine(const Attention& model, const EngineOptions& options, ThreadPool& pool);
  GradientEngine(const Attention& model, Jacobian jacobian, ThreadPool& pool);
  ~GradientEngine();
  GradientEngine(GradientEngine&&) noexcept;
  GradientEngine& operator=(GradientEngine&&) noexcept;

  // `parameters` is made from model.blocks(), `gradient` by make_gradient().
  Evaluation evaluate(const ParameterBlocks& parameters, Gradient& gradient);
  Evaluation evaluate(const ParameterBlocks& parameters);

  // Sets blocks of the last evaluated gradient, at `parameters`, to exactly 0 if they are zero to rounding,
  // that is, if no entry exceeds 2^-52 (N + T + d) times the sum of the absolute values of everything that was
  // added up to it, for N queries, T tokens in the longest sequence and dimension d. What remains of such a
  // sum is rounding error, and a normalized step would follow it. This applies only to W and p with a fixed v
  // (linear head, no penalty) under the safe Jacobian; the textbook form exists to reproduce rounding errors.
  void clear_rounding(const ParameterBlocks& parameters, Gradient& gradient) const;

  Gradient make_gradient() const;
  DataPath path() const;  // block or stream

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

// One value and gradient, if you do not need a loop. The gradient has the paper's orientation and scale;
// blocks that are not trained are empty.
struct LossAndGradient {
  double loss = 0;
  double max_softmax = 0;
  Parameters gradient;
};
LossAndGradient loss_and_gradient(const Attention& model, const Parameters& parameters,
                                  Jacobian jacobian = Jacobian::safe);

}  // namespace attmirror

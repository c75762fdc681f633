// Value and gradient of the loss, for loops that take many of them: all memory is set up once, and evaluate()
// allocates nothing.
//
// The queries are divided into chunks by their number and size alone; each chunk sums on its own and the
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
  textbook,  // s_t (gamma_t - s^T gamma), rounding as automatic differentiation does: parity with published
             // runs
};

std::string_view to_string(Jacobian jacobian);
Jacobian parse_jacobian(std::string_view name);

// How the data are gone through; a matter of speed only, results agree to rounding.
enum class DataPath {
  automatic,  // by the size of the sequences
  block,      // step by step over blocks of short sequences
  stream,  // all steps of a query while its tokens are in the cache and the next are on their way from memory
};

std::string_view to_string(DataPath path);
DataPath parse_data_path(std::string_view name);

// How the engine holds the tokens. All arithmetic is in double precision.
enum class TokenStorage {
  float64,  // the dataset's own
  // A copy rounded to single precision, half the bytes to read; exact for tokens that are floats already.
  float32,
};

std::string_view to_string(TokenStorage storage);
TokenStorage parse_token_storage(std::string_view name);

// How a gradient is computed: on how many threads, along which path through the data, in which precision.
struct EngineOptions {
  Jacobian jacobian = Jacobian::safe;   // accurate everywhere; textbook is for parity with published runs
  DataPath path = DataPath::automatic;  // another one only to compare them
  TokenStorage storage = TokenStorage::float64;  // what the user gave, to the last bit

  // Throws Error (bad input) when a value is none of its enumeration.
  void validate() const;
};

// What an evaluation yields besides the gradient.
struct Evaluation {
  double loss = 0;         // L
  double max_softmax = 0;  // mean over queries of the largest attention probability
};

// The gradient of block b is the stored numbers times e^log_scale[b]. Normalised descent needs the direction
// only, which stays exact when the gradient itself is far below the smallest double.
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

  // Blocks of the gradient that was evaluated last, at `parameters`, become exactly 0 where they are zero to rounding:
  // where no entry exceeds 2^-52 (N + T + d) times the sum of the absolute values of all that was added up to it, for
  // N queries, T tokens of the longest sequence and dimension d. What is left of such a sum is rounding errors, and
  // whoever normalizes it would walk along them. Of W and p with a fixed v (linear head, no penalty) and the safe
  // Jacobian only: the textbook form is there to follow rounding errors.
  void clear_rounding(const ParameterBlocks& parameters, Gradient& gradient) const;

  Gradient make_gradient() const;
  DataPath path() const;  // block or stream

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

// One value and gradient, for those who need no loop. The gradient is in the paper's orientation and scale;
// blocks that are not trained are empty.
struct LossAndGradient {
  double loss = 0;
  double max_softmax = 0;
  Parameters gradient;
};
LossAndGradient loss_and_gradient(const Attention& model, const Parameters& parameters,
                                  Jacobian jacobian = Jacobian::safe);

}  // namespace attmirror

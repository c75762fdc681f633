// What the training loop minimizes: a loss over named blocks of weights. The loop, its records, checkpoints, folders
// and descend_many() see a model only through this, so a model of your own gets all of them. It needs four functions:
//
//   class LogisticRegression final : public Objective {
//    public:
//     std::vector<BlockShape> blocks() const override { return {BlockShape::vector("w", X.cols())}; }
//     ModelFacts facts() const override { return {.kind = "logistic regression"}; }
//     std::uint64_t data_fingerprint() const override;
//     Evaluation evaluate(const ParameterBlocks& weights, Gradient& gradient) const override;
//   };
//
// examples/own_objective.cpp is a complete one.
#pragma once

#include <attmirror/attention/gradient.hpp>
#include <attmirror/data/array.hpp>
#include <attmirror/data/selection.hpp>
#include <attmirror/descent/record.hpp>
#include <attmirror/mirror/norm.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace attmirror {

struct DescentOptions;
struct Initialization;

// A setting or a size that determines what a model computes.
struct ModelFact {
  std::string name;
  std::variant<bool, std::int64_t, double, std::string> value;
};

std::string to_string(const ModelFact& fact);  // "samples 30"

// The kind of objectives that are attention layers, as files have it.
inline constexpr std::string_view attention_kind = "attention", next_token_kind = "next-token";

// What config.json of a run says about a model, and what must be equal when a run is resumed.
struct ModelFacts {
  // What the model is: one of the kinds above, or the name of a model of your own.
  std::string kind;
  // Goes under "data" and "model" in config.json; `path`, `fingerprint`, `kind` and `train` are added automatically.
  std::vector<ModelFact> data{}, model{};
};

// Evaluates the loss and its gradient again and again; evaluate() should allocate nothing.
class ObjectiveEngine {
 public:
  virtual ~ObjectiveEngine() = default;
  virtual Evaluation evaluate(const ParameterBlocks& weights, Gradient& gradient) = 0;
  // What a record contains besides loss, largest probability and norm, for the weights that were evaluated
  // last. The names are the same each time.
  virtual std::vector<Metric> metrics(const ParameterBlocks&) { return {}; }
};

// Stateless, so that several threads may train it at once.
class Objective {
 public:
  virtual ~Objective() = default;

  virtual std::vector<BlockShape> blocks() const = 0;  // all, in the order of their memory
  virtual ModelFacts facts() const = 0;
  // From all numbers that the loss depends on (base/fingerprint.hpp): resuming with other data is refused.
  virtual std::uint64_t data_fingerprint() const = 0;

  // Returns the loss at `weights` (view(b) is the b-th of blocks()) and fills in every number of `gradient` (view(b)
  // is the b-th of trained(); gradients near the smallest double keep a common factor in log_scale[b]). A model
  // without attention leaves max_softmax at 0. Models that need their own memory override make_engine() instead.
  virtual Evaluation evaluate(const ParameterBlocks& weights, Gradient& gradient) const;
  virtual std::vector<Metric> metrics(const ParameterBlocks&) const { return {}; }
  virtual std::unique_ptr<ObjectiveEngine> make_engine(const DescentOptions& options, Jacobian jacobian,
                                                       ThreadPool& pool) const;

  // The blocks that training moves, in the order of the gradient's. Default: all.
  virtual std::vector<Block> trained() const;
  // Equal for equal models; a checkpoint of a different model is refused. Made from the facts.
  virtual std::string description() const;
  // Whether the loss has the lower bound 0, at which Polyak's step aims.
  virtual bool has_lower_bound() const { return false; }

  // Trained blocks start as `initialization` says, the others at 0; given blocks replace both. Random numbers
  // are drawn by block and seed; `uniform` is within 1/sqrt(columns), or 1/sqrt(entries) for a vector. Throws
  // Error (bad input) when a given block does not fit.
  virtual Parameters initial_parameters(const Initialization& initialization) const;
  // The norm that records report, of the weights that the run is about. Default: the first trained
  // block.
  virtual double weight_norm(const Parameters& parameters, const Norm& norm) const;

  // The tokens that attention selects, empty if the question makes no sense; and those that it should select,
  // if that is known.
  virtual Selection selected(const Parameters&) const { return {}; }
  virtual std::optional<Selection> optimal(const Parameters&) const { return std::nullopt; }
  // The largest attention probability of each query, empty where there is no attention.
  virtual std::vector<double> largest_probabilities(const Parameters&) const { return {}; }
  // What final.npz contains besides the blocks.
  virtual NamedArrays final_arrays(const Selection&) const { return {}; }

  bool is_trained(const Block& block) const;
  std::vector<BlockShape> trained_blocks() const;
  Gradient make_gradient() const;

  // Throws Error (bad input) if blocks have no numbers or share a name, if nothing is trained, or if a
  // trained block is not one of the model's.
  void validate() const;
};

}  // namespace attmirror

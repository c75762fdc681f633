// What the training loop minimises: a loss over named blocks of weights. The loop, its records, checkpoints, folders
// and descend_many() know a model by this alone, so that a model of your own has them all. It needs four functions:
//
//   class LogisticRegression final : public Objective {
//    public:
//     std::vector<BlockShape> blocks() const override { return {BlockShape::vector("w", X.cols())}; }
//     ModelFacts facts() const override { return {.kind = "logistic regression"}; }
//     std::uint64_t data_fingerprint() const override;
//     Evaluation evaluate(const ParameterBlocks& weights, Gradient& gradient) const override;
//   };
//
// examples/own_objective.cpp is a whole one.
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

// A setting or a size that decides what a model computes.
struct ModelFact {
  std::string name;
  std::variant<bool, std::int64_t, double, std::string> value;
};

std::string to_string(const ModelFact& fact);  // "samples 30"

// The kind of objectives that are attention layers, as files have it.
inline constexpr std::string_view attention_kind = "attention", next_token_kind = "next-token";

// What config.json of a run says of a model, and what must be equal where a run goes on.
struct ModelFacts {
  // What the model is: one of the kinds above, or what you call a model of your own.
  std::string kind;
  // Under "data" and "model" of config.json; `path`, `fingerprint`, `kind` and `train` are written by themselves.
  std::vector<ModelFact> data{}, model{};
};

// Evaluates the loss and its gradient again and again; evaluate() should allocate nothing.
class ObjectiveEngine {
 public:
  virtual ~ObjectiveEngine() = default;
  virtual Evaluation evaluate(const ParameterBlocks& weights, Gradient& gradient) = 0;
  // What a record says besides loss, largest probability and norm, of the weights that were evaluated last. The names
  // are the same each time.
  virtual std::vector<Metric> metrics(const ParameterBlocks&) { return {}; }
};

// Stateless, so that several threads may train it at once.
class Objective {
 public:
  virtual ~Objective() = default;

  virtual std::vector<BlockShape> blocks() const = 0;  // all, in the order of their memory
  virtual ModelFacts facts() const = 0;
  // Of all numbers that the loss is made of (base/fingerprint.hpp): going on with others is refused.
  virtual std::uint64_t data_fingerprint() const = 0;

  // The loss at `weights` (view(b) is the b-th of blocks()), and every number of `gradient` (view(b) is of the b-th
  // of trained(); gradients near the smallest double keep a common factor in log_scale[b]). A model without attention
  // leaves max_softmax 0. Models that need memory of their own override make_engine() instead.
  virtual Evaluation evaluate(const ParameterBlocks& weights, Gradient& gradient) const;
  virtual std::vector<Metric> metrics(const ParameterBlocks&) const { return {}; }
  virtual std::unique_ptr<ObjectiveEngine> make_engine(const DescentOptions& options, Jacobian jacobian,
                                                       ThreadPool& pool) const;

  // The blocks that training moves, in the order of the gradient's. All, unless a model says otherwise.
  virtual std::vector<Block> trained() const;
  // Equal for equal models: a checkpoint is refused by others. Made of the facts.
  virtual std::string description() const;
  // Whether the loss has the lower bound 0, which Polyak's step aims at.
  virtual bool has_lower_bound() const { return false; }

  // Trained blocks as `initialization` says, the others 0; blocks that are given replace both. Random numbers are
  // drawn by block and seed; `uniform` is within 1/sqrt(columns), for a vector 1/sqrt(entries). Throws Error (bad
  // input) when a given block does not fit.
  virtual Parameters initial_parameters(const Initialization& initialization) const;
  // The norm that records report: of the weights that the run is about. The first trained block, unless a model
  // says otherwise.
  virtual double weight_norm(const Parameters& parameters, const Norm& norm) const;

  // The tokens that attention picks, empty where the question makes no sense; and those that it should pick, where that
  // is known.
  virtual Selection selected(const Parameters&) const { return {}; }
  virtual std::optional<Selection> optimal(const Parameters&) const { return std::nullopt; }
  // What final.npz holds besides the blocks.
  virtual NamedArrays final_arrays(const Selection&) const { return {}; }

  bool is_trained(const Block& block) const;
  std::vector<BlockShape> trained_blocks() const;
  Gradient make_gradient() const;

  // Throws Error (bad input) where blocks have no numbers or share a name, nothing is trained, or a trained block is
  // none of the model's.
  void validate() const;
};

}  // namespace attmirror

// What the training loop minimises: a loss over named blocks of weights. The loop, its records, checkpoints and folders
// know a model by this alone, so that a new kind of model has them all.
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
#include <vector>

namespace attmirror {

struct DescentOptions;
struct Initialization;
struct RunConfig;

// Evaluates the loss and its gradient again and again; evaluate() allocates nothing.
class ObjectiveEngine {
 public:
  virtual ~ObjectiveEngine() = default;
  virtual Evaluation evaluate(const ParameterBlocks& weights, Gradient& gradient) = 0;
  virtual Gradient make_gradient() const = 0;
  // What a record says besides loss, largest probability and norm, of the weights that were evaluated last. The names are
  // the same each time.
  virtual std::vector<Metric> metrics(const ParameterBlocks&) { return {}; }
};

// Stateless; engines are made from it.
class Objective {
 public:
  virtual ~Objective() = default;

  virtual const std::vector<BlockShape>& blocks() const = 0;  // all, in the order of their memory
  virtual const std::vector<Block>& trained() const = 0;      // some of them
  virtual std::string description() const = 0;                // equal for equal models on the same data
  virtual std::uint64_t data_fingerprint() const = 0;
  virtual void describe(RunConfig& config) const = 0;  // data and model of config.json
  virtual bool has_lower_bound() const = 0;            // of the loss: Polyak's step aims at it

  // Throws Error (bad input) when a given block does not fit.
  virtual Parameters initial_parameters(const Initialization& initialization) const = 0;
  // The norm that records report: of the weights that the run is about.
  virtual double weight_norm(const Parameters& parameters, const Norm& norm) const = 0;

  virtual std::unique_ptr<ObjectiveEngine> make_engine(const DescentOptions& options, Jacobian jacobian,
                                                       ThreadPool& pool) const = 0;

  // The tokens that attention picks, empty where the question makes no sense; and those that it should pick, where that
  // is known.
  virtual Selection selected(const Parameters&) const { return {}; }
  virtual std::optional<Selection> optimal(const Parameters&) const { return std::nullopt; }
  // What final.npz holds besides the blocks.
  virtual NamedArrays final_arrays(const Selection&) const { return {}; }

  bool is_trained(Block block) const;
  std::vector<BlockShape> trained_blocks() const;
};

}  // namespace attmirror

// An attention layer on its dataset, as the training loop sees it.
#pragma once

#include <attmirror/attention/attention.hpp>
#include <attmirror/descent/objective.hpp>

namespace attmirror {

// Views the model: keep it alive.
class AttentionObjective final : public Objective {
 public:
  explicit AttentionObjective(const Attention& model) : model_(&model) {}

  std::vector<BlockShape> blocks() const override { return model_->blocks(); }
  std::vector<Block> trained() const override { return model_->trained(); }
  std::string description() const override;
  std::uint64_t data_fingerprint() const override { return model_->data().fingerprint(); }
  ModelFacts facts() const override;
  bool has_lower_bound() const override;
  Parameters initial_parameters(const Initialization& initialization) const override;
  double weight_norm(const Parameters& parameters, const Norm& norm) const override;
  std::unique_ptr<ObjectiveEngine> make_engine(const DescentOptions& options, Jacobian jacobian,
                                               ThreadPool& pool) const override;
  Selection selected(const Parameters& parameters) const override;
  std::optional<Selection> optimal(const Parameters& parameters) const override;
  std::vector<double> largest_probabilities(const Parameters& parameters) const override;
  NamedArrays final_arrays(const Selection& selected) const override;

 private:
  const Attention* model_;
};

}  // namespace attmirror

#include "descent/attention_objective.hpp"

#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/fingerprint.hpp>
#include <attmirror/descent/descend.hpp>
#include <attmirror/descent/run_config.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace attmirror {

namespace {

class AttentionEngine final : public ObjectiveEngine {
 public:
  AttentionEngine(const Attention& model, const EngineOptions& options, ThreadPool& pool)
      : engine_(model, options, pool) {}
  Evaluation evaluate(const ParameterBlocks& weights, Gradient& gradient) override {
    const Evaluation value = engine_.evaluate(weights, gradient);
    engine_.clear_rounding(weights, gradient);
    return value;
  }

 private:
  GradientEngine engine_;
};

// The key weights A of a prompt; nullptr: the identity, or no prompt.
const Matrix* key_weights(const Attention& model) {
  const auto* prompt = std::get_if<Prompt>(&model.parameterization());
  return prompt != nullptr && prompt->key_weights.size() > 0 ? &prompt->key_weights : nullptr;
}

// As the one block W.
std::string matrix_fingerprint(const Matrix& matrix) {
  Parameters parameters;
  parameters.W = matrix;
  return fmt::format("{:016x}", fingerprint(parameters));
}

}  // namespace

std::string AttentionObjective::description() const {
  const Attention& model = *model_;
  std::string text = fmt::format("{} of rank {}, {} loss, trains", to_string(model.parameterization()),
                                 model.rank(), to_string(model.loss()));
  for (const Block& block : model.trained()) text += fmt::format(" {}", to_string(block));
  if (const Matrix* A = key_weights(model)) {
    Fingerprint print;
    print.add(*A);
    text += fmt::format(", key weights {:016x}", print.value());
  }
  // What the papers' models lack is named where it is there.
  if (!std::holds_alternative<LinearHead>(model.head()))
    text += fmt::format(", head {}", to_string(model.head()));
  if (const auto* relu = std::get_if<ReluHead>(&model.head())) {
    Fingerprint print;
    print.add(relu->V);
    text += fmt::format(" {:016x}", print.value());
  }
  if (model.logit_scale() != 1) text += ", scaled logits";
  if (model.penalty() != 0) text += fmt::format(", penalty {}", model.penalty());
  return text;
}

ModelFacts AttentionObjective::facts() const {
  const Attention& model = *model_;
  const Dataset& data = model.data();
  ModelFacts facts{.kind = std::string(attention_kind),
                   .data = {{"mask", std::string(to_string(data.mask()))},
                            {"samples", data.samples()},
                            {"max_tokens", data.max_length()},
                            {"total_tokens", data.total_tokens()},
                            {"dim", data.dim()},
                            {"queries_each", data.equal_query_counts() ? data.query_count(0) : 0}},
                   .model = {{"params", std::string(to_string(model.parameterization()))},
                             {"rank", model.rank()},
                             {"head", to_string(model.head())},
                             {"loss", to_string(model.loss())},
                             {"scaled", model.logit_scale() != 1},
                             {"penalty", model.penalty()}}};
  if (const Matrix* A = key_weights(model)) facts.model.push_back({"key_weights", matrix_fingerprint(*A)});
  if (const auto* relu = std::get_if<ReluHead>(&model.head()))
    facts.model.push_back({"head_fingerprint", matrix_fingerprint(relu->V)});
  return facts;
}

bool AttentionObjective::has_lower_bound() const {
  return !std::holds_alternative<LinearLoss>(model_->loss());
}

Parameters AttentionObjective::initial_parameters(const Initialization& initialization) const {
  return attmirror::initial_parameters(*model_, initialization);
}

double AttentionObjective::weight_norm(const Parameters& parameters, const Norm& norm) const {
  return attention_norm(parameters, norm);
}

std::unique_ptr<ObjectiveEngine> AttentionObjective::make_engine(const DescentOptions& options,
                                                                 Jacobian jacobian, ThreadPool& pool) const {
  return std::make_unique<AttentionEngine>(
      *model_, EngineOptions{.jacobian = jacobian, .path = options.path, .storage = options.storage}, pool);
}

Selection AttentionObjective::selected(const Parameters& parameters) const {
  return selected_tokens(*model_, parameters);
}

std::optional<Selection> AttentionObjective::optimal(const Parameters& parameters) const {
  const bool knows_scores = !uses_decoder(model_->head()) || !parameters.v.isZero(0);
  if (!knows_scores) return std::nullopt;
  return optimal_tokens(*model_, parameters);
}

std::vector<double> AttentionObjective::largest_probabilities(const Parameters& parameters) const {
  std::vector<double> result;
  for (const Vector& probabilities : attention_probabilities(*model_, parameters))
    result.push_back(probabilities.maxCoeff());
  return result;
}

NamedArrays AttentionObjective::final_arrays(const Selection& selected) const {
  NamedArrays arrays;
  const Dataset& data = model_->data();
  Shape shape{static_cast<std::int64_t>(selected.tokens.size())};
  if (!selected.tokens.empty() && !data.one_query_each() && data.equal_query_counts())
    shape = {data.samples(), data.query_count(0)};
  arrays.emplace("selected", Array(shape, std::span<const std::int64_t>(selected.tokens)));
  if (const Matrix* A = key_weights(*model_))
    arrays.emplace("key_weights",
                   Array({A->rows(), A->cols()}, std::span(A->data(), static_cast<std::size_t>(A->size()))));
  return arrays;
}

}  // namespace attmirror

#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/fingerprint.hpp>
#include <attmirror/descent/attention_objective.hpp>
#include <attmirror/descent/descend.hpp>
#include <attmirror/descent/run_config.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace attmirror {

bool Objective::is_trained(Block block) const {
  return std::ranges::find(trained(), block) != trained().end();
}

std::vector<BlockShape> Objective::trained_blocks() const {
  std::vector<BlockShape> shapes;
  for (const Block block : trained())
    shapes.push_back(*std::ranges::find(blocks(), block, &BlockShape::name));
  return shapes;
}

namespace {

class AttentionEngine final : public ObjectiveEngine {
 public:
  AttentionEngine(const Attention& model, const EngineOptions& options, ThreadPool& pool)
      : engine_(model, options, pool) {}
  Evaluation evaluate(const ParameterBlocks& weights, Gradient& gradient) override {
    return engine_.evaluate(weights, gradient);
  }
  Gradient make_gradient() const override { return engine_.make_gradient(); }

 private:
  GradientEngine engine_;
};

// The key weights A of a prompt; nullptr: the identity, or no prompt.
const Matrix* key_weights(const Attention& model) {
  const auto* prompt = std::get_if<Prompt>(&model.parameterization());
  return prompt != nullptr && prompt->key_weights.size() > 0 ? &prompt->key_weights : nullptr;
}

// As the one block W.
std::uint64_t matrix_fingerprint(const Matrix& matrix) {
  Parameters parameters;
  parameters.W = matrix;
  return fingerprint(parameters);
}

}  // namespace

std::string AttentionObjective::description() const {
  const Attention& model = *model_;
  std::string text = fmt::format("{} of rank {}, {} loss, trains", to_string(model.parameterization()),
                                 model.rank(), to_string(model.loss()));
  for (const Block block : model.trained()) text += fmt::format(" {}", to_string(block));
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

void AttentionObjective::describe(RunConfig& config) const {
  const Attention& model = *model_;
  const Dataset& data = model.data();
  config.samples = data.samples();
  config.max_tokens = data.max_length();
  config.total_tokens = data.total_tokens();
  config.dim = data.dim();
  config.queries_each = data.equal_query_counts() ? data.query_count(0) : 0;
  config.mask = to_string(data.mask());
  config.params = to_string(model.parameterization());
  config.rank = model.rank();
  if (const Matrix* A = key_weights(model)) config.key_weights_fingerprint = matrix_fingerprint(*A);
  config.loss = to_string(model.loss());
  config.head = to_string(model.head());
  if (const auto* relu = std::get_if<ReluHead>(&model.head()))
    config.head_fingerprint = matrix_fingerprint(relu->V);
  config.scaled = model.logit_scale() != 1;
  config.penalty = model.penalty();
}

bool AttentionObjective::has_lower_bound() const { return !std::holds_alternative<Linear>(model_->loss()); }

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

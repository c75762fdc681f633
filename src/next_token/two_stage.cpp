#include <attmirror/next_token/two_stage.hpp>

#include <cmath>

namespace attmirror {

StageOptions paper_stage(Stage stage, std::ptrdiff_t dim, std::int64_t steps) {
  const double root = std::sqrt(static_cast<double>(dim));
  StageOptions options;
  options.optimizer =
      GradientDescent{.lr = (stage == Stage::collocation ? 0.2 : 0.05) / root, .normalized = true};
  options.descent.steps = steps;
  return options;
}

Parameters TwoStageRun::last() const {
  Parameters parameters = collocation.final_parameters;
  if (attention.final_parameters.has(NextTokenBlock::W_kq))
    parameters.matrices["W_kq"] = attention.final_parameters.matrix("W_kq");
  return parameters;
}

TwoStageRun train_two_stage(const NextTokenData& data, const StageOptions& collocation,
                            const StageOptions& attention, const NextTokenMeasures& measures) {
  TwoStageRun result;
  const NextTokenModel first(data, Stage::collocation);
  result.collocation = descend(NextTokenObjective(first, measures), collocation.optimizer,
                               collocation.descent, collocation.callbacks);
  const RunStatus status = result.collocation.status;
  if (status == RunStatus::interrupted || status == RunStatus::diverged) return result;
  const NextTokenModel second(data, Stage::attention);
  DescentOptions options = attention.descent;
  options.init.given.matrices["W_ov"] = result.collocation.final_parameters.matrix("W_ov");
  result.attention =
      descend(NextTokenObjective(second, measures), attention.optimizer, options, attention.callbacks);
  return result;
}

DescentRun train_joint(const NextTokenData& data, const StageOptions& options,
                       const NextTokenMeasures& measures) {
  const NextTokenModel model(data, Stage::joint);
  return descend(NextTokenObjective(model, measures), options.optimizer, options.descent, options.callbacks);
}

}  // namespace attmirror

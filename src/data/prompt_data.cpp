#include "data/torch_random.hpp"
#include "data/torch_rows.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/generators.hpp>

#include <cmath>
#include <span>

#include <fmt/format.h>

namespace attmirror {
namespace {

// Sequences of equal length, labels +1 and the common query (1, 0, ...).
DatasetArrays prompt_arrays(const Matrix& tokens, std::ptrdiff_t samples) {
  DatasetArrays arrays;
  arrays.tokens = tokens;
  arrays.lengths.assign(static_cast<std::size_t>(samples), tokens.rows() / samples);
  arrays.queries = Matrix::Zero(samples, tokens.cols());
  arrays.queries.col(0).setOnes();
  arrays.labels.assign(static_cast<std::size_t>(samples), 1.0);
  return arrays;
}

// The same with the score as the third coordinate.
Dataset scored_data(const Matrix& tokens, std::ptrdiff_t samples) {
  DatasetArrays arrays = prompt_arrays(tokens, samples);
  arrays.decoder = Vector::Unit(3, 2);
  return Dataset(arrays);
}

}  // namespace

Matrix score_blind_key_weights() {
  Matrix weights = Matrix::Identity(3, 3);
  weights(2, 2) = 0;
  return weights;
}

void SingleInputData::validate() const {
  if (scores != Scores::equal && scores != Scores::unequal)
    throw bad_input(fmt::format("scores is {}: expected equal or unequal", static_cast<int>(scores)));
}

Dataset generate(const SingleInputData& options) {
  options.validate();
  const float third = options.scores == SingleInputData::Scores::equal ? 0.9f : 0.0f;
  const float tokens[] = {-0.1f, 1, 1, 1, 0, 0.9f, 0, 0, third};
  return scored_data(widened(tokens, 3, 3), 1);
}

Dataset generate(const MultiInputData& options) {
  options.validate();
  TorchGenerator generator(options.seed);
  std::vector<float> X = scaled_normals(generator, 3 * 7 * 3, 0.2f);
  for (std::size_t row = 0; row < 21; ++row) {
    const std::size_t t = row % 7;
    float* const token = X.data() + 3 * row;
    token[0] += t == 0 ? 1.0f : t < 4 ? -1.0f : -0.5f;
    token[1] += t == 0 ? 0.0f : t < 4 ? 1.0f : -0.5f;
    token[2] = t == 0 ? 1.0f : 0.5f;
  }
  return scored_data(widened(X, 21, 3), 3);
}

void JointPromptData::validate() const {
  if (label_margin != LabelMargin::tight && label_margin != LabelMargin::slack)
    throw bad_input(
        fmt::format("label_margin is {}: expected tight or slack", static_cast<int>(label_margin)));
}

Dataset generate(const JointPromptData& options) {
  options.validate();
  Matrix tokens(6, 2);
  tokens << 0, 0, 1, 1,  //
      0, 0, 1, -1,       //
      0, 0, 0.5, options.label_margin == JointPromptData::LabelMargin::tight ? 1.0 : 1.5;
  DatasetArrays arrays = prompt_arrays(tokens, 3);
  arrays.labels[1] = -1;
  return Dataset(arrays);
}

void LossComparisonData::validate() const {
  if (!std::isfinite(score) || score <= 0)
    throw bad_input(fmt::format("score is {}: expected a finite number above 0", score));
}

Dataset generate(const LossComparisonData& options) {
  options.validate();
  Matrix tokens(4, 3);
  tokens << 0, 0, 0, 1, 1, options.score,  //
      0, 0, 0, 1, -1, 1;
  return scored_data(tokens, 2);
}

}  // namespace attmirror

// Gradients that are zero to rounding, on both paths through the data.
#include <attmirror/attention/gradient.hpp>
#include <attmirror/data/generators.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

// Each sequence with two queries that are equal and have opposite labels: with a linear loss the gradient is 0.
Dataset opposite_labels(std::ptrdiff_t samples, std::ptrdiff_t length, std::ptrdiff_t dim) {
  const Dataset plain = generate(SphereData{.samples = samples, .tokens = length, .dim = dim, .seed = 11});
  DatasetArrays arrays;
  arrays.tokens = plain.all_tokens().eigen();
  arrays.lengths.assign(static_cast<std::size_t>(samples), length);
  arrays.queries.resize(2 * samples, dim);
  for (std::ptrdiff_t i = 0; i < samples; ++i) {
    arrays.queries.row(2 * i) = arrays.queries.row(2 * i + 1) = plain.queries().eigen().row(i);
    arrays.labels.insert(arrays.labels.end(), {1, -1});
    arrays.query_counts.push_back(2);
  }
  arrays.decoder = plain.decoder().eigen().row(0).transpose();
  return Dataset(arrays);
}

Parameters some_parameters(const Attention& model) {
  Parameters at = model.zero_parameters();
  const auto fill = [](auto& values) {
    for (std::ptrdiff_t i = 0; i < values.size(); ++i)
      values.data()[i] = std::sin(3.0 + 2.0 * static_cast<double>(i));
  };
  fill(at.W);
  fill(at.K);
  fill(at.Q);
  fill(at.p);
  return at;
}

struct Cleared {
  double before = 0, after = 0;  // largest entries
};

Cleared cleared(const Attention& model, DataPath path, Jacobian jacobian = Jacobian::safe) {
  ParameterBlocks weights(model.blocks());
  weights.assign(some_parameters(model));
  ThreadPool pool(1);
  GradientEngine engine(model, EngineOptions{.jacobian = jacobian, .path = path}, pool);
  Gradient gradient = engine.make_gradient();
  engine.evaluate(weights, gradient);
  Cleared result;
  for (std::ptrdiff_t b = 0; b < gradient.blocks.count(); ++b)
    result.before = std::max(result.before, gradient.blocks.view(b).eigen().cwiseAbs().maxCoeff());
  engine.clear_rounding(weights, gradient);
  for (std::ptrdiff_t b = 0; b < gradient.blocks.count(); ++b)
    result.after = std::max(result.after, gradient.blocks.view(b).eigen().cwiseAbs().maxCoeff());
  return result;
}

TEST(RoundingFloor, WhatCancelsIsZeroOnBothPaths) {
  double largest_before = 0;
  for (const std::ptrdiff_t samples : {1, 5, 40})
    for (const std::ptrdiff_t dim : {6, 33}) {
      const Dataset data = opposite_labels(samples, 17, dim);
      const std::vector<Parameterization> kinds{Prompt{}, W{}};
      for (const Parameterization& kind : kinds)
        for (const DataPath path : {DataPath::block, DataPath::stream}) {
          const Attention model(data, kind, LinearLoss{});
          const Cleared found = cleared(model, path);
          EXPECT_EQ(found.after, 0) << to_string(kind) << " " << to_string(path) << " was " << found.before;
          EXPECT_LT(found.before, 1e-12);
          largest_before = std::max(largest_before, found.before);
        }
    }
  EXPECT_GT(largest_before, 0) << "nothing was left to clear";
}

TEST(RoundingFloor, SmallGradientsThatAreRightStay) {
  // One label is turned in 40 sequences, and one query is moved by very little: what is left is small and true.
  const Dataset pairs = opposite_labels(1, 17, 6);
  DatasetArrays arrays;
  arrays.tokens = pairs.all_tokens().eigen();
  arrays.lengths = {17};
  arrays.query_counts = {2};
  arrays.labels = {1, -1};
  arrays.decoder = pairs.decoder().eigen().row(0).transpose();
  arrays.queries = pairs.queries().eigen();
  arrays.queries(1, 0) += 1e-9;
  const Dataset data(arrays);
  for (const DataPath path : {DataPath::block, DataPath::stream}) {
    const Cleared found = cleared(Attention(data, W{}, LinearLoss{}), path);
    EXPECT_GT(found.before, 1e-13);
    EXPECT_EQ(found.after, found.before);
  }
}

TEST(RoundingFloor, LeavesOrdinaryGradientsAndTheTextbookFormAlone) {
  const Dataset data = generate(SphereData{.seed = 3});
  for (const DataPath path : {DataPath::block, DataPath::stream}) {
    const Cleared found = cleared(Attention(data), path);
    EXPECT_GT(found.after, 0);
    EXPECT_EQ(found.before, found.after);
  }
  const Dataset zero = opposite_labels(5, 17, 6);
  const Cleared found = cleared(Attention(zero, Prompt{}, LinearLoss{}), DataPath::block, Jacobian::textbook);
  EXPECT_EQ(found.before, found.after);
}

}  // namespace
}  // namespace attmirror

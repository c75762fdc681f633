// Layers with an output at every token, and how far their trainings and paths are from the SVM of all queries.
// Internal to p3_causal.cpp, which says what this is about.
#pragma once

#include "papers/path_curves.hpp"
#include <attmirror/data/generators.hpp>
#include <attmirror/descent/descend.hpp>
#include <attmirror/mirror/norm.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace attmirror::causal {

inline constexpr SphereData causal_sizes{
    .samples = 3, .tokens = 5, .dim = 16, .query_from = SphereData::QueryFrom::all_tokens};
inline constexpr GradientDescent causal_rule{.lr = 0.1, .normalized = true};
inline constexpr std::int64_t causal_steps = 4000;
inline constexpr double path_tolerance = 1e-8;  // of the stationarity gap

// One kind of layer: which tokens a query sees, and what is trained.
struct Layer {
  const char* name;
  bool causal, factored;
  Norm norm() const { return factored ? Norm::nuclear() : Norm::frobenius(); }
  Parameterization parameterization() const { return factored ? Parameterization(KQ{}) : W{}; }
};
inline const std::array layers{Layer{"all tokens, W", false, false}, Layer{"all tokens, (K, Q)", false, true},
                               Layer{"causal, W", true, false}, Layer{"causal, (K, Q)", true, true}};

struct LayerRun {
  std::vector<double> distance{};  // by record: 1 - correlation with the solution of all queries
  double to_last_query = std::nan(""), to_no_mask = std::nan("");
  bool certified = false, saturated = false, global = false, local = false;
};

// A path whose distances are what its margin lacks.
struct LayerPath {
  PathCurve curve;
  double angle = std::nan("");  // 1 - correlation at the largest radius
};

struct LayerResult {
  std::vector<LayerRun> runs;
  std::vector<LayerPath> paths;

  std::vector<PathCurve> curves() const {
    std::vector<PathCurve> all;
    for (const LayerPath& path : paths) all.push_back(path.curve);
    return all;
  }
};

// The data of a seed, with or without the mask.
Dataset causal_data(std::uint64_t seed, bool causal);

// A training held against the SVM of all queries for its tokens, and against the two other problems.
LayerRun measure_run(const DescentRun& run, const Attention& model, const Layer& layer, std::uint64_t seed);

// The path of a layer, held against the SVM of all queries for the optimal tokens.
LayerPath measure_path(const Layer& layer, std::uint64_t seed, const std::vector<double>& radii);

}  // namespace attmirror::causal

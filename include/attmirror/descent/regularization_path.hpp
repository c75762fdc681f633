// Regularization paths: the least loss within balls of growing radius,
//
//   W_R = argmin { L(W) : ||W|| <= R },   W_R / R -> the max-margin direction as R -> infinity
//
// (P2, P3; P1 for l_p). Gradient descent takes its own route there; the path is what theory compares it with.
//
//   W, norm l_p or Schatten-p    ||W|| <= R                     W-RP (p = 2) and l_p-AttRP
//   prompt                       ||p|| <= R
//   (K,Q), norm nuclear          |K|^2 + |Q|^2 <= 2R            the same as ||K Q^T||_* <= R, of rank at most m
//   v too                        ||v|| <= r                     joint paths, r = decoder_scale R^decoder_power
//
//   RegularizationPath path = regularization_path(model, {.norm = Norm::l(1.75), .radii = geometric_radii(1, 1e3,
//   16)});
//
// The loss is not convex. `global` means the best of several starts at each radius: the solution at the
// previous radius, the direction of steepest descent at W = 0, what the caller gives, and seeded random
// directions. `local` follows one given direction by warm starts, from the largest radius down: at small
// radii a local solution may no longer exist, and the records show where its tokens are lost.
// src/descent/ball_solver.hpp describes the method and what its stationarity gap means.
#pragma once

#include <attmirror/attention/attention.hpp>
#include <attmirror/base/stop.hpp>
#include <attmirror/data/selection.hpp>
#include <attmirror/mirror/norm.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// Which minimum within a ball is looked for.
enum class PathKind { global, local };
std::string_view to_string(PathKind kind);

// How the search at one radius ended.
enum class PointStatus {
  converged,  // the gap is at most the tolerance, and no direction of descent was found
  inside,   // the loss falls toward the inside of the ball: its minimum is not on the sphere, and W is not it
  stopped,  // max_evaluations were used up
  interrupted,  // `stop` was requested
};
std::string_view to_string(PointStatus status);

// `count` radii from `from` to `to`, each the same multiple of the one before.
std::vector<double> geometric_radii(double from, double to, int count);
// Reads "1:1e3:16" (from : to : count) or "1,10,100". Throws Error (bad input).
std::vector<double> parse_radii(std::string_view text);

// The balls of a regularization path, and how exactly each problem is solved.
struct PathOptions {
  Norm norm = Norm::
      frobenius();  // of W, p and v: 1 < p < infinity; nuclear for (K,Q), with v then in the Euclidean norm
  std::vector<double> radii = geometric_radii(1, 1e3, 16);  // ascending
  PathKind kind = PathKind::global;
  // Joint paths, where v is trained: its radius is decoder_scale R^decoder_power. Theory leaves the relation open.
  double decoder_scale = 1, decoder_power = 1;
  int starts = 8;          // random directions tried at each radius; of a global path
  std::uint64_t seed = 0;  // of the random directions: start s has seed + s
  // Directions to start from: the one of a local path, or more candidates for a global one. (K,Q) models also take W.
  std::vector<Parameters> given{};
  double tol = 1e-8;  // of the gap
  std::int64_t max_evaluations =
      20'000;       // the most gradients for one start at one radius; most take hundreds
  int threads = 1;  // 0: as many as the machine has; results do not depend on it

  // Throws Error (bad input) for options that are invalid in themselves or do not fit the model.
  void validate(const Attention& model) const;
};

// The least loss within one ball, and where it is attained.
struct PathPoint {
  double radius = 0, decoder_radius = 0;  // the latter is 0 if v is not trained
  PointStatus status = PointStatus::stopped;
  double loss = 0, max_softmax = 0;
  // Also where the loss itself underflows, as on joint paths; NaN for a loss that is not positive.
  double log_loss = 0;
  double gap = 2;  // 1 - <-grad, W> / (R ||grad||_*), the larger of the two on joint paths; 0 to 2
  std::int64_t evaluations = 0;  // gradients, over all starts
  // Where the best start came from: -1 the previous radius (the next, on a local path), 0 steepest descent at
  // W = 0, 1, 2, ... the given ones, then the random ones.
  int start = -1;
  Selection selected;
  Parameters parameters;  // all blocks of the model
};

// The minimizers of the loss within balls of growing radius.
struct RegularizationPath {
  PathOptions options;
  std::vector<PathPoint> points;  // by ascending radius; without those that were not reached
  bool interrupted = false;

  bool converged() const;  // every radius of the options
};

// What is called while a path is computed.
struct PathCallbacks {
  std::function<void(const PathPoint&)> on_point{};  // each radius when it is done
  // Called about ten times a second, from any thread but one at a time, with the share that is done.
  std::function<void(double)> on_progress{};
  StopRequest stop{};  // the finished radii are returned
};

// `finished` are points of an earlier call that was stopped: the first ones in the order in which a path is
// followed, by ascending radius, or by descending radius for a local path. They are taken over, and the
// others have the bits of a path that was never stopped. Throws Error (bad input) as validate() does, and for
// points of other radii.
RegularizationPath regularization_path(const Attention& model, const PathOptions& options,
                                       const PathCallbacks& callbacks = {},
                                       std::vector<PathPoint> finished = {});

// K and Q of rank m with K Q^T = W (or closest to it) and K^T K = Q^T Q, which minimizes |K|^2 + |Q|^2.
Parameters balanced_factors(const Matrix& W, std::ptrdiff_t m);

}  // namespace attmirror

// The least loss within a ball: one point of a regularisation path. Internal.
//
//   min L(W)  subject to  ||W|| <= R                         (and ||v|| <= r where the decoder is trained too)
//
// For large R the softmax is saturated: L differs from its limit by e^{-R margin}, far below what a double tells
// apart from the limit, so no method that compares losses can work. Gradients keep their direction at any scale
// (attention/gradient.hpp), and the direction is all that optimality asks for. With G = -grad L / ||grad L||_* and
// y = grad ||W||, the point of the dual unit sphere that belongs to W, a minimiser on the sphere ||W|| = R is a
// fixed point
//
//   y = G(W(y)),   W(y) = R argmax { <y, w> : ||w|| <= 1 }.
//
// How far a point is from it is told by the Frank-Wolfe gap in units of its largest term,
//
//   gap = 1 - <G, W> / R   in [0, 2],   0 only where W minimises the linearised loss over the ball.
//
// For losses that are convex in W about the solution as sums of e^{-<A_k, W>} are, log(L - limit) is within R ||grad
// L||_* gap / (L - limit), about gap R margin, of its least value: the gap bounds the relative error of what is left
// of the loss.
//
// Two kinds of steps alternate. Mirror steps y <- y + eta G, scaled back to the sphere, go downhill from anywhere;
// eta is halved where the loss grows at the end of a step (<G', W' - W> < 0, again without comparing losses). They
// slow down like R, the condition number. Newton steps on y - G(W(y)) = 0 then finish: the derivative of G acts on
// the few directions that the support tokens span, so that GMRES, with derivatives as differences of gradients,
// solves each in some tens of gradients. For p <= 2 Newton works on y, for p > 2 on W: each time where the mirror map
// is smooth at 0.
//
// Newton may also settle on a saddle. So the spectrum of the same operator is looked at (Arnoldi) once a point is
// stationary; a negative eigenvalue is a direction along which the loss falls, and the search goes on that way.
//
// (K,Q) with |K|^2 + |Q|^2 <= 2R is a Euclidean ball in both together, of radius sqrt(2R): the nuclear ball ||K
// Q^T||_* <= R.
#pragma once

#include <attmirror/attention/gradient.hpp>
#include <attmirror/base/stop.hpp>
#include <attmirror/mirror/mirror_map.hpp>
#include <attmirror/mirror/norm.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

namespace attmirror {

struct BallOptions {
  double radius = 1, decoder_radius = 1;
  double tol = 1e-8;
  // Steps of W (in its Euclidean norm) are kept to about this: a solution nearby is found, not one behind the
  // next hill.
  double reach = std::numeric_limits<double>::infinity();
  std::int64_t max_evaluations = 20'000;
  std::function<void()> on_step{};
  StopRequest stop{};  // looked at in every step
};

struct BallSolution {
  Parameters parameters;
  double loss = 0, max_softmax = 0;
  double gap = 2;  // the largest of the balls'
  std::int64_t evaluations = 0;
  bool converged = false;
};

// One object serves one thread.
class BallSolver {
 public:
  // The norm is l_p or Schatten-p with 1 < p < infinity; for (K,Q) it is not looked at.
  BallSolver(const Attention& model, const Norm& norm);

  // From the direction of `start`; blocks that are not trained stay as they are there. A block of zeros starts in the
  // direction of the gradient.
  BallSolution solve(const Parameters& start, const BallOptions& options);

 private:
  struct Ball {
    std::vector<std::ptrdiff_t> trained, model;  // positions among the trained blocks, among all
    std::ptrdiff_t begin = 0, size = 0, rows = 0, cols = 0;
    double radius = 1;
  };
  // Per ball: y of dual norm 1, w of norm 1 that belongs to it, G of dual norm 1 at radius * w.
  struct Point {
    Vector y, w, G;
    double loss = 0, max_softmax = 0, gap = 2;
  };
  struct Krylov {
    Matrix basis, hessenberg;
    std::ptrdiff_t size = 0;
  };

  auto part(Vector& all, const Ball& ball) const { return all.segment(ball.begin, ball.size); }
  auto part(const Vector& all, const Ball& ball) const { return all.segment(ball.begin, ball.size); }

  void set_primal(Point& x);  // y normalised, w from it
  void set_dual(Point& x);    // w normalised, y from it
  void evaluate(Point& x);
  void mirror_steps(Point& x, std::int64_t count);
  void newton_steps(Point& x);
  bool newton_step(Point& x);
  bool leave_saddle(Point& x);
  void prepare_operator(const Point& x);
  Vector apply_operator(const Point& x, const Vector& t);
  Krylov arnoldi(const Point& x, const Vector& first, std::ptrdiff_t size, double tolerance);
  double largest_radius() const;
  bool exhausted() const;
  bool moves_primal() const;  // Newton's unknown is w

  ThreadPool pool_{1};
  GradientEngine engine_;
  ParameterBlocks weights_;
  Gradient gradient_;
  std::vector<BlockShape> shapes_;  // of the trained blocks
  std::vector<Ball> balls_;
  bool euclidean_ = true;
  double p_ = 2;
  std::unique_ptr<MirrorMap> map_;
  std::vector<PaddedMatrix> buffers_;  // one per ball
  BallOptions options_;
  std::int64_t evaluations_ = 0;
  std::vector<double> eta_;     // per ball
  Vector curvature_, inverse_;  // psi'' at w, and what the preconditioner takes for its inverse
  Point trial_;
};

}  // namespace attmirror

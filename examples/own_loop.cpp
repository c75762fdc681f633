// A training loop of your own from the library's parts: gradients from a GradientEngine, steps by a MirrorMap.
//
// The rule here is the safe Jacobian with the published eps. It stops when the gradient is as small as eps,
// like the published runs, but without their rounding noise. descend() walks the same path, to the bit.
#include <attmirror/attmirror.hpp>

#include <cmath>
#include <cstdio>

using namespace attmirror;

int main() {
  const Dataset data = generate(SphereData{.seed = 1});
  const Attention model{data};
  ThreadPool pool(1);
  GradientEngine engine(model, Jacobian::safe, pool);
  Gradient gradient = engine.make_gradient();
  for (const auto& [p, steps] : {std::pair{1.75, 1'500}, {2.0, 2'000}, {3.0, 20'000}}) {
    const LpMap map(p);
    ParameterBlocks weights(model.blocks());
    weights.assign(model.zero_parameters());
    const MatrixView w = weights.view(weights.find(Block::W));
    PaddedMatrix dual(w.rows, w.cols);  // grad psi(0) = 0
    for (int k = 0; k < steps; ++k) {
      engine.evaluate(weights, gradient);
      const ConstMatrixView g = gradient.blocks.view(0);
      const double scale = std::exp(gradient.log_scale[0]);  // the gradient is g times this
      map.step(g, 0.1 * scale / (map.dual_norm(g) * scale + 0x1p-52), dual.view(), w);
    }
    const Matrix W = weights.parameters().W;
    const MirrorDescent rule{.p = p, .normalized = true, .eps = EpsPolicy::paper, .jacobian = Jacobian::safe};
    const bool same = descend(model, rule, {.steps = steps}).last().W == W;
    std::printf("p = %-4g  W12 = %.4f  W34 = %.4f  descend(): %s\n", p, W(1, 2), W(3, 4),
                same ? "same" : "differs");
  }
}

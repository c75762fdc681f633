// One optimizer of each kind, for tests that must hold for all of them.
#pragma once

#include <attmirror/descent/optimizer.hpp>

#include <vector>

namespace attmirror::test {

inline std::vector<Optimizer> all_optimizers() {
  const Momentum heavy{MomentumKind::heavy_ball, 0.8}, ema{MomentumKind::ema, 0.9};
  const Schedule power{.kind = ScheduleKind::power, .exponent = 0.5};
  // With v fixed the loss stays well above 0: steps that aim there grow without bound. It starts near log 2.
  const Schedule polyak{.kind = ScheduleKind::polyak, .lower_bound = 0.6};
  return {
      MirrorDescent{.p = 1.75, .normalized = true},
      MirrorDescent{.p = 3, .lr = 0.3, .momentum = ema, .schedule = power},
      MirrorDescent{.p = 1.5, .normalized = true, .geometry = Geometry::schatten},
      MirrorDescent{.lr = 0.3, .geometry = Geometry::schatten, .momentum = heavy},
      MirrorDescent{.normalized = true, .geometry = Geometry::hyperbolic_entropy, .beta = 0.5},
      MirrorDescent{.lr = 0.2, .geometry = Geometry::hyperbolic_entropy, .beta = 2, .momentum = heavy},
      MirrorDescent{.lr = 1e-3, .schedule = polyak},
      GradientDescent{.lr = 0.3},
      GradientDescent{.normalized = true, .eps = EpsPolicy::paper},
      GradientDescent{.lr = 0.2, .momentum = heavy, .schedule = power},
      GradientDescent{.lr = 1e-3, .schedule = polyak},
      sign_descent(0.01),
      coordinate_descent(),
      spectral_descent(),
      signum(0.01),
      muon(),
      muon(0.1, 0.9, Orthogonalization::exact),
      SteepestDescent{.norm = Norm::l(1.5), .momentum = heavy},
      SteepestDescent{.norm = Norm::nuclear(), .lr = 0.2, .normalized = false, .momentum = ema},
      SteepestDescent{.norm = Norm::schatten(3), .eps = EpsPolicy::paper, .schedule = power},
      SteepestDescent{.norm = Norm::l(3), .lr = 1e-3, .normalized = false, .schedule = polyak},
      Adam{.lr = 0.01},
      Adam{.lr = 0.05, .beta1 = 0.8, .beta2 = 0.9, .eps = EpsPolicy::paper, .schedule = power},
      AdaGrad{},
      AdaGrad{.lr = 0.5, .eps = EpsPolicy::paper, .eps_value = 1e-3, .schedule = power},
      Lion{.lr = 0.01},
      Lion{.lr = 0.05, .beta1 = 0.95, .beta2 = 0.8, .jacobian = Jacobian::textbook, .schedule = power},
  };
}

}  // namespace attmirror::test

// What the kernels of a fused step need to know, worked out once a step: plain numbers, the same for the CPU and the
// GPU. This header is read by kernel sources and by CUDA's compiler, so it includes nothing that defines functions.
#pragma once

namespace attmirror::kernels {

// The ways to raise to p - 1 and 1/(p - 1): products and roots for the p that have them.
enum class StepPower { two, three, three_halves, eleven_tenths, general, count };

// A number as an unevaluated sum: `value` is a double, `rest` what it misses.
struct Sum {
  double value = 0, rest = 0;
};

struct StepPlan {
  StepPower power = StepPower::two;
  Sum map{1, 0};      // p - 1
  Sum inverse{1, 0};  // 1/(p - 1)
  Sum dual{2, 0};     // q = p/(p - 1)

  double rate = 0;
  double unscale = 1;  // 1/gradient_scale, negative where steps go up the gradient
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  double keep = 1;        // 1 - rate weight_decay, what decay leaves of w
  double keep_image = 1;  // keep^{p-1}, what it leaves of y
};

// The dual norm of a part of a tensor, in a form that neither over- nor underflows:
// ||d||_q = largest sum^{1/q}, sum = sum_j (|d_j| / largest)^q. `largest` is infinite or NaN where an entry is.
struct NormPart {
  double largest = 0, sum = 0;
};

}  // namespace attmirror::kernels

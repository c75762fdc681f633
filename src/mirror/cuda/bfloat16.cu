// The kernels of a fused step for bfloat16 weights.
#include "mirror/cuda/step_launch.cuh"

namespace attmirror::cuda {

const Launches& bfloat16_launches() { return LaunchesOf<__nv_bfloat16>::all; }

}  // namespace attmirror::cuda

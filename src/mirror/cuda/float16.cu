// The kernels of a fused step for float16 weights.
#include "mirror/cuda/step_launch.cuh"

namespace attmirror::cuda {

const Launches& float16_launches() { return LaunchesOf<__half>::all; }

}  // namespace attmirror::cuda

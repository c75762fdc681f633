// The kernels of a fused step for float64 weights.
#include "mirror/cuda/step_launch.cuh"

namespace attmirror::cuda {

const Launches& float64_launches() { return LaunchesOf<double>::all; }

}  // namespace attmirror::cuda

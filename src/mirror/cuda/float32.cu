// The kernels of a fused step for float32 weights.
#include "mirror/cuda/step_launch.cuh"

namespace attmirror::cuda {

const Launches& float32_launches() { return LaunchesOf<float>::all; }

}  // namespace attmirror::cuda

#include "attmirror_step.h"
#include "step_bridge.hpp"
#include <attmirror/mirror/cuda_step.hpp>

#include <cuda_runtime_api.h>

namespace attmirror::bridge {

namespace {

DeviceScaling scaling_of(const attmirror_device& device) {
  return {device.gradient_scale, device.found_nonfinite, device.rate, device.norms};
}

// Work goes to this GPU; the caller's is current again at the end.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    require(cudaGetDevice(&before_));
    if (before_ != device) require(cudaSetDevice(device));
    changed_ = before_ != device;
  }
  ~OnDevice() {
    if (changed_) cudaSetDevice(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  static void require(cudaError_t status) {
    if (status != cudaSuccess)
      throw environment_error(std::string("CUDA could not use the GPU: ") + cudaGetErrorString(status));
  }
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace

}  // namespace attmirror::bridge

using namespace attmirror;
using namespace attmirror::bridge;

int32_t attmirror_cuda_step_version(void) { return ATTMIRROR_STEP_VERSION; }

int64_t attmirror_cuda_workspace(const attmirror_options* options, const attmirror_tensor* tensors,
                                 int64_t count, const attmirror_device* device) {
  return static_cast<int64_t>(
      cuda_workspace_bytes(tensors_of(tensors, count), options_of(*options), scaling_of(*device)));
}

int32_t attmirror_cuda_step(const attmirror_options* options, const attmirror_tensor* tensors, int64_t count,
                            const attmirror_device* device, char* message) {
  return guarded(message, [&] {
    const OnDevice guard(device->device);
    fused_step_on_device(element_of(*options), tensors_of(tensors, count), options_of(*options),
                         device->workspace, device->stream, scaling_of(*device));
  });
}

int32_t attmirror_cuda_measure(const attmirror_options* options, const attmirror_tensor* tensors,
                               int64_t count, double* norms, const attmirror_device* device, char* message) {
  return guarded(message, [&] {
    const OnDevice guard(device->device);
    measure_on_device(element_of(*options), tensors_of(tensors, count), options_of(*options), norms,
                      device->workspace, device->stream, scaling_of(*device));
  });
}

int32_t attmirror_cuda_fill_masters(const attmirror_options* options, const attmirror_tensor* tensors,
                                    int64_t count, const attmirror_device* device, char* message) {
  return guarded(message, [&] {
    const OnDevice guard(device->device);
    fill_masters_on_device(element_of(*options), tensors_of(tensors, count), options_of(*options),
                           device->stream);
  });
}

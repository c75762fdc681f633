/* The step of attmirror/mirror/fused_step.hpp for callers that are not C++: plain structs of pointers, and no type of Python,
   PyTorch or CUDA. The optimizers of the Python package call it through ctypes, so that one build serves every version.

   libattmirror_step.so has the functions for the CPU, libattmirror_cuda_step.so those for NVIDIA GPUs (attmirror_cuda_...).
   All return 0, 2 for what the caller got wrong or 3 for what failed outside; `message`, of ATTMIRROR_MESSAGE_SIZE bytes,
   then holds one sentence. */
#pragma once

#include <stdint.h>

#ifndef ATTMIRROR_EXPORT
#define ATTMIRROR_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { ATTMIRROR_STEP_VERSION = 1, ATTMIRROR_MESSAGE_SIZE = 512 };

/* StepTensor. */
struct attmirror_tensor {
  void* weights;
  const void* gradient;
  void* master;
  void* momentum;
  int64_t size;
};

/* StepOptions, with the type of the weights and, on the CPU, the number of threads. */
struct attmirror_options {
  double p, rate, momentum, weight_decay, gradient_scale;
  int32_t element; /* 0 float32, 1 bfloat16, 2 float16, 3 float64 */
  int32_t rule;    /* 0 mirror, 1 steepest, 2 sign */
  int32_t nesterov, normalized, skip_nonfinite, maximize, exact;
  int32_t threads;
};

/* DeviceScaling, and where work is put. The workspace has attmirror_cuda_workspace() bytes. */
struct attmirror_device {
  const float* gradient_scale;
  float* found_nonfinite;
  const float* rate;
  const double* norms;
  void* workspace;
  void* stream;
  int32_t device;
};

/* ATTMIRROR_STEP_VERSION of the library: it changes whenever a struct does. */
ATTMIRROR_EXPORT int32_t attmirror_step_version(void);
ATTMIRROR_EXPORT int32_t attmirror_cuda_step_version(void);

/* fused_step(), or step_with_norms() where there are norms. `skipped` becomes 1 if a gradient was not finite. */
ATTMIRROR_EXPORT int32_t attmirror_step(const struct attmirror_options* options, const struct attmirror_tensor* tensors,
                       int64_t count, const double* norms, int32_t* skipped, char* message);
ATTMIRROR_EXPORT int32_t attmirror_measure(const struct attmirror_options* options, const struct attmirror_tensor* tensors,
                          int64_t count, double* norms, char* message);
ATTMIRROR_EXPORT int32_t attmirror_fill_masters(const struct attmirror_options* options,
                               const struct attmirror_tensor* tensors, int64_t count, char* message);

/* The same on a GPU; nothing waits. */
ATTMIRROR_EXPORT int64_t attmirror_cuda_workspace(const struct attmirror_options* options,
                                 const struct attmirror_tensor* tensors, int64_t count,
                                 const struct attmirror_device* device);
ATTMIRROR_EXPORT int32_t attmirror_cuda_step(const struct attmirror_options* options, const struct attmirror_tensor* tensors,
                            int64_t count, const struct attmirror_device* device, char* message);
ATTMIRROR_EXPORT int32_t attmirror_cuda_measure(const struct attmirror_options* options,
                               const struct attmirror_tensor* tensors, int64_t count, double* norms,
                               const struct attmirror_device* device, char* message);
ATTMIRROR_EXPORT int32_t attmirror_cuda_fill_masters(const struct attmirror_options* options,
                                    const struct attmirror_tensor* tensors, int64_t count,
                                    const struct attmirror_device* device, char* message);

#ifdef __cplusplus
}
#endif

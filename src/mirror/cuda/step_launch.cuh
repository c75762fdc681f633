// From run-time choices to the kernels compiled for them, for one format; each format is a source of its own.
#pragma once

#include "mirror/cuda/measure_kernel.cuh"
#include "mirror/cuda/update_kernel.cuh"

namespace attmirror::cuda {

// The launches of a format, and the numbers in a round of their chunks. Launches return what cudaGetLastError() says.
struct Launches {
  int update_round, measure_round;
  cudaError_t (*update)(const Batch& batch, const StepArguments& arguments, StepRule rule, bool has_master,
                        cudaStream_t stream);
  cudaError_t (*measure)(const Batch& batch, const StepArguments& arguments, bool with_norm, double* parts,
                         const NormOutputs& outputs, cudaStream_t stream);
  cudaError_t (*fill_masters)(const Batch& batch, const StepArguments& arguments, StepRule rule,
                              cudaStream_t stream);
};

const Launches& float32_launches();
const Launches& bfloat16_launches();
const Launches& float16_launches();
const Launches& float64_launches();

// The same in exact arithmetic, for all formats; masters are filled by the others.
struct ExactLaunches {
  cudaError_t (*update)(StepElement element, const Batch& batch, const StepArguments& arguments,
                        StepRule rule, cudaStream_t stream);
  cudaError_t (*measure)(StepElement element, const Batch& batch, const StepArguments& arguments,
                         bool with_norm, double* parts, const NormOutputs& outputs, cudaStream_t stream);
};
const ExactLaunches& exact_launches();

template <class T>
struct LaunchesOf {
  static int blocks(const Batch& batch) { return batch.first_chunk[batch.count]; }

  template <StepRule rule, Power power>
  static void update_with(const Batch& batch, const StepArguments& arguments, bool has_master,
                          cudaStream_t stream) {
    if (has_master)
      update_kernel<T, rule, power, true><<<blocks(batch), threads, 0, stream>>>(batch, arguments);
    else
      update_kernel<T, rule, power, false><<<blocks(batch), threads, 0, stream>>>(batch, arguments);
  }

  static cudaError_t update(const Batch& batch, const StepArguments& arguments, StepRule rule,
                            bool has_master, cudaStream_t stream) {
    if (rule == StepRule::sign) {
      update_with<StepRule::sign, Power::two>(batch, arguments, has_master, stream);
    } else {
      with_power(arguments.plan, [&](auto power) {
        if (rule == StepRule::mirror)
          update_with<StepRule::mirror, power()>(batch, arguments, has_master, stream);
        else
          update_with<StepRule::steepest, power()>(batch, arguments, has_master, stream);
      });
    }
    return cudaGetLastError();
  }

  static cudaError_t measure(const Batch& batch, const StepArguments& arguments, bool with_norm,
                             double* parts, const NormOutputs& outputs, cudaStream_t stream) {
    if (with_norm)
      with_power(arguments.plan, [&](auto power) {
        measure_kernel<T, State<T>, power(), true>
            <<<blocks(batch), threads, 0, stream>>>(batch, arguments, parts);
      });
    else
      measure_kernel<T, State<T>, Power::two, false>
          <<<blocks(batch), threads, 0, stream>>>(batch, arguments, parts);
    finish_norms_kernel<State<T>><<<batch.count, threads, 0, stream>>>(batch, arguments, parts, outputs);
    return cudaGetLastError();
  }

  static cudaError_t fill_masters(const Batch& batch, const StepArguments& arguments, StepRule rule,
                                  cudaStream_t stream) {
    if (rule != StepRule::mirror)
      fill_master_kernel<T, StepRule::sign, Power::two>
          <<<blocks(batch), threads, 0, stream>>>(batch, arguments);
    else
      with_power(arguments.plan, [&](auto power) {
        fill_master_kernel<T, StepRule::mirror, power()>
            <<<blocks(batch), threads, 0, stream>>>(batch, arguments);
      });
    return cudaGetLastError();
  }

  static constexpr Launches all{round_size<T>, measure_round_size<T>, &update, &measure, &fill_masters};
};

}  // namespace attmirror::cuda

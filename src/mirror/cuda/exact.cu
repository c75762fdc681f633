// The exact step on the GPU: the CPU's own functions, a thread a number. Slow; the same bits as on the CPU.
#include "mirror/cuda/step_launch.cuh"
#include "mirror/exact_arithmetic.hpp"

namespace attmirror::cuda {

namespace {

template <class T>
__device__ constexpr exact::Format format_of();
template <>
__device__ constexpr exact::Format format_of<float>() {
  return exact::float_format();
}
template <>
__device__ constexpr exact::Format format_of<double>() {
  return exact::double_format();
}
template <>
__device__ constexpr exact::Format format_of<__nv_bfloat16>() {
  return exact::bfloat16_format();
}
template <>
__device__ constexpr exact::Format format_of<__half>() {
  return exact::half_format();
}

// A number that the format has, so that nothing is rounded here.
template <class T>
__device__ T stored(double x) {
  return narrow<T>(static_cast<State<T>>(x));
}

template <class T, StepRule rule>
__global__ void exact_kernel(const __grid_constant__ Batch batch,
                             const __grid_constant__ StepArguments arguments) {
  if (arguments.found_nonfinite && *arguments.found_nonfinite != 0) return;
  const int index = tensor_of_block(batch, static_cast<int>(blockIdx.x));
  const BatchTensor& tensor = batch.tensors[index];
  const long long chunk = static_cast<long long>(batch.rounds) * round_size<T>;
  const long long begin = (static_cast<int>(blockIdx.x) - batch.first_chunk[index]) * chunk;
  const int end = static_cast<int>(min(tensor.size - begin, chunk));
  constexpr exact::Format weight_format = format_of<T>(), state_format = format_of<State<T>>();

  kernels::StepPlan plan = plan_of(arguments);
  plan.unscale = unscale_of(arguments);
  // A norm is that of unscaled gradients: see finish_norms_kernel.
  const double shrink = arguments.shrinks ? arguments.shrinks[batch.first_tensor + index] : 1.0;

  for (int i = static_cast<int>(threadIdx.x); i < end; i += threads) {
    T* weight = static_cast<T*>(tensor.weights) + begin + i;
    State<T>* master = tensor.master ? static_cast<State<T>*>(tensor.master) + begin + i : nullptr;
    State<T>* momentum = tensor.momentum ? static_cast<State<T>*>(tensor.momentum) + begin + i : nullptr;
    const exact::Direction d =
        exact::direction(plan, widen(static_cast<const T*>(tensor.gradient)[begin + i]),
                         momentum ? *momentum : 0.0, state_format);
    if (momentum) *momentum = static_cast<State<T>>(d.momentum);
    if (exact::is_zero(d) && plan.keep == 1) continue;
    const double from = master ? *master : widen(*weight);
    const exact::Format& to = master ? state_format : weight_format;
    if constexpr (rule == StepRule::mirror) {
      if (master) {
        *master = static_cast<State<T>>(exact::mirror_master_step(from, d, plan, shrink, to));
        *weight = stored<T>(exact::weight_of_master(*master, plan, weight_format));
      } else {
        *weight = stored<T>(exact::mirror_step(from, d, plan, shrink, to));
      }
    } else {
      const double next = rule == StepRule::steepest ? exact::steepest_step(from, d, plan, shrink, to)
                                                     : exact::sign_step(from, d, plan, to);
      if (master) *master = static_cast<State<T>>(next);
      *weight = master ? narrow<T>(*master) : stored<T>(next);
    }
  }
}

template <class T>
void launch(const Batch& batch, const StepArguments& arguments, StepRule rule, cudaStream_t stream) {
  const int blocks = batch.first_chunk[batch.count];
  switch (rule) {
    case StepRule::mirror:
      exact_kernel<T, StepRule::mirror><<<blocks, threads, 0, stream>>>(batch, arguments);
      break;
    case StepRule::steepest:
      exact_kernel<T, StepRule::steepest><<<blocks, threads, 0, stream>>>(batch, arguments);
      break;
    case StepRule::sign:
      exact_kernel<T, StepRule::sign><<<blocks, threads, 0, stream>>>(batch, arguments);
      break;
  }
}

cudaError_t update(StepElement element, const Batch& batch, const StepArguments& arguments, StepRule rule,
                   cudaStream_t stream) {
  switch (element) {
    case StepElement::float32:
      launch<float>(batch, arguments, rule, stream);
      break;
    case StepElement::bfloat16:
      launch<__nv_bfloat16>(batch, arguments, rule, stream);
      break;
    case StepElement::float16:
      launch<__half>(batch, arguments, rule, stream);
      break;
    case StepElement::float64:
      launch<double>(batch, arguments, rule, stream);
      break;
  }
  return cudaGetLastError();
}

template <class T>
void launch_measure(const Batch& batch, const StepArguments& arguments, bool with_norm, double* parts,
                    cudaStream_t stream) {
  const int blocks = batch.first_chunk[batch.count];
  if (with_norm)
    measure_kernel<T, double, Power::below_two, true>
        <<<blocks, threads, 0, stream>>>(batch, arguments, parts);
  else
    measure_kernel<T, double, Power::below_two, false>
        <<<blocks, threads, 0, stream>>>(batch, arguments, parts);
}

cudaError_t measure(StepElement element, const Batch& batch, const StepArguments& arguments, bool with_norm,
                    double* parts, const NormOutputs& outputs, cudaStream_t stream) {
  switch (element) {
    case StepElement::float32:
      launch_measure<float>(batch, arguments, with_norm, parts, stream);
      break;
    case StepElement::bfloat16:
      launch_measure<__nv_bfloat16>(batch, arguments, with_norm, parts, stream);
      break;
    case StepElement::float16:
      launch_measure<__half>(batch, arguments, with_norm, parts, stream);
      break;
    case StepElement::float64:
      launch_measure<double>(batch, arguments, with_norm, parts, stream);
      break;
  }
  finish_norms_kernel<double><<<batch.count, threads, 0, stream>>>(batch, arguments, parts, outputs);
  return cudaGetLastError();
}

}  // namespace

const ExactLaunches& exact_launches() {
  static constexpr ExactLaunches launches{&update, &measure};
  return launches;
}

}  // namespace attmirror::cuda

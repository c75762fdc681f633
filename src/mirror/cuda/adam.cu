#include "mirror/cuda/adam_step.hpp"
#include "mirror/cuda/batch_list.cuh"
#include <attmirror/base/error.hpp>

#include <string>

namespace attmirror {

namespace {

constexpr int adam_width = 4, adam_packets = 2;
constexpr int adam_round = cuda::threads * adam_width * adam_packets;

// Powers once, by one thread, and not by each thread of the step.
__global__ void adam_constants_kernel(AdamNumbers numbers, const float* rate, double* steps,
                                      AdamConstants* constants) {
  *steps += 1;
  *constants = adam_constants(numbers, rate ? static_cast<double>(*rate) : numbers.rate, *steps);
}

__global__ void __launch_bounds__(cuda::threads)
    adam_kernel(const __grid_constant__ cuda::Batch batch, const AdamConstants* constants) {
  const int block = static_cast<int>(blockIdx.x);
  const int index = cuda::tensor_of_block(batch, block);
  const cuda::BatchTensor& tensor = batch.tensors[index];
  const long long begin =
      static_cast<long long>(block - batch.first_chunk[index]) * batch.rounds * adam_round;
  const long long left = tensor.size - begin;
  float* weights = static_cast<float*>(tensor.weights) + begin;
  const float* gradient = static_cast<const float*>(tensor.gradient) + begin;
  float* average = static_cast<float*>(tensor.momentum) + begin;
  float* squares = static_cast<float*>(tensor.master) + begin;
  const AdamConstants k = *constants;

  const int whole_rounds =
      batch.vectors[index] ? static_cast<int>(min(static_cast<long long>(batch.rounds), left / adam_round))
                           : 0;
  for (int round = 0; round < whole_rounds; ++round) {
    cuda::Packet<float, adam_width> w[adam_packets], g[adam_packets], m[adam_packets], v[adam_packets];
    const int first = round * adam_round + static_cast<int>(threadIdx.x) * adam_width;
#pragma unroll
    for (int u = 0; u < adam_packets; ++u) {
      const int at = first + u * cuda::threads * adam_width;
      g[u] = cuda::load<float, adam_width>(gradient + at);
      m[u] = cuda::load<float, adam_width>(average + at);
      v[u] = cuda::load<float, adam_width>(squares + at);
      w[u] = cuda::load<float, adam_width>(weights + at);
    }
#pragma unroll
    for (int u = 0; u < adam_packets; ++u) {
      const int at = first + u * cuda::threads * adam_width;
#pragma unroll
      for (int i = 0; i < adam_width; ++i)
        adam_element(w[u].value[i], m[u].value[i], v[u].value[i], g[u].value[i], k);
      cuda::store(average + at, m[u]);
      cuda::store(squares + at, v[u]);
      cuda::store(weights + at, w[u]);
    }
  }
  // The end of a tensor, and all of an unaligned one.
  const long long chunk = static_cast<long long>(batch.rounds) * adam_round;
  const int end = static_cast<int>(min(left, chunk));
  for (int i = whole_rounds * adam_round + static_cast<int>(threadIdx.x); i < end; i += cuda::threads)
    adam_element(weights[i], average[i], squares[i], gradient[i], k);
}

}  // namespace

void adam_step_on_device(std::span<const StepTensor> tensors, const AdamNumbers& numbers, double* steps,
                         const float* rate, void* workspace, void* stream) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].size > 0 && (tensors[i].weights == nullptr || tensors[i].gradient == nullptr ||
                                tensors[i].momentum == nullptr || tensors[i].master == nullptr))
      throw bad_input("tensors[" + std::to_string(i) + "] lacks weights, a gradient or an average");
  if (steps == nullptr || workspace == nullptr) throw bad_input("steps or workspace is null");
  auto* const constants = static_cast<AdamConstants*>(workspace);
  const auto on = static_cast<cudaStream_t>(stream);
  adam_constants_kernel<<<1, 1, 0, on>>>(numbers, rate, steps, constants);
  cuda::require(cudaGetLastError(), "work out Adam's constants");
  cuda::for_each_batch(
      tensors, /*has_momentum=*/true, adam_round, [](const StepTensor&) { return true; },
      [&](const cuda::Batch& batch) {
        adam_kernel<<<batch.first_chunk[batch.count], cuda::threads, 0, on>>>(batch, constants);
        cuda::require(cudaGetLastError(), "make a step of Adam");
      });
}

}  // namespace attmirror

// Many tensors in one launch. A batch travels to the GPU as a parameter of the kernel, so nothing is copied,
// allocated or waited for beforehand; parameters may take 4 kilobytes, which is 64 tensors. Each block looks up the
// tensor that its chunk belongs to.
#pragma once

#include "mirror/step_plan.hpp"
#include <attmirror/mirror/fused_step.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace attmirror::cuda {

inline constexpr int threads = 256;
inline constexpr int tensors_per_batch = 64;

struct BatchTensor {
  void* weights;
  const void* gradient;
  void* master;
  void* momentum;
  long long size;
};

// A chunk is the work of a block: some rounds, in each of which every thread has the same few numbers. What a thread
// does once, like finding its tensor, is spread over the rounds.
struct Batch {
  BatchTensor tensors[tensors_per_batch];
  // Of each tensor among the blocks of the launch; the last is their number.
  int first_chunk[tensors_per_batch + 1];
  int count;
  int rounds;                       // of a chunk
  int first_tensor;                 // among the tensors of the step
  bool vectors[tensors_per_batch];  // all arrays start on 16 bytes
};
static_assert(sizeof(Batch) < 3500,
              "with the other arguments, a kernel's parameters must stay below 4096 bytes");

// The tensor that a block works on.
__device__ __forceinline__ int tensor_of_block(const Batch& batch, int block) {
  int low = 0, high = batch.count;  // first_chunk[low] <= block < first_chunk[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (batch.first_chunk[middle] <= block)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// ---- formats: 16 bytes at a time
// --------------------------------------------------------------------------------------

template <class T>
struct StateOf {
  using type = float;
};
template <>
struct StateOf<double> {
  using type = double;
};
// Of masters and momenta, and of the arithmetic.
template <class T>
using State = typename StateOf<T>::type;

__device__ __forceinline__ float widen(float x) { return x; }
__device__ __forceinline__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ __forceinline__ float widen(__half x) { return __half2float(x); }
__device__ __forceinline__ double widen(double x) { return x; }

template <class T>
__device__ __forceinline__ T narrow(State<T> x) {
  return static_cast<T>(x);
}
template <>
__device__ __forceinline__ __nv_bfloat16 narrow<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ __forceinline__ __half narrow<__half>(float x) {
  return __float2half_rn(x);
}

// `count` numbers of type T, moved as whole 16-byte words. (Hints that the cache need not keep them cost a tenth of the
// bandwidth on an H200.)
template <class T, int count>
struct alignas(16) Packet {
  static_assert(count * sizeof(T) % 16 == 0);
  T value[count];
};

template <class T, int count>
__device__ __forceinline__ Packet<T, count> load(const T* from) {
  Packet<T, count> packet;
  const uint4* words = reinterpret_cast<const uint4*>(from);
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof packet / 16); ++i)
    reinterpret_cast<uint4*>(&packet)[i] = words[i];
  return packet;
}

template <class T, int count>
__device__ __forceinline__ void store(T* to, const Packet<T, count>& packet) {
  uint4* words = reinterpret_cast<uint4*>(to);
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof packet / 16); ++i)
    words[i] = reinterpret_cast<const uint4*>(&packet)[i];
}

}  // namespace attmirror::cuda

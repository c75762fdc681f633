// Four neighbouring numbers at a time, for kernels over rows whose width is a multiple of 4. Internal.
#pragma once

#include <cuda_bf16.h>

namespace attmirror::cuda {

constexpr int warp = 32;
constexpr int warps_per_block = 8;
constexpr int block_threads = warp * warps_per_block;

// Four neighbouring numbers: what a thread loads at once, 16 bytes of floats or 8 of bfloat16.
struct Four {
  float value[4];
};

__device__ inline Four load_four(const float* at) {
  const float4 v = *reinterpret_cast<const float4*>(at);
  return {{v.x, v.y, v.z, v.w}};
}
__device__ inline Four load_four(const __nv_bfloat16* at) {
  const uint2 bits = *reinterpret_cast<const uint2*>(at);
  const float2 a = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&bits.x)),
               b = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&bits.y));
  return {{a.x, a.y, b.x, b.y}};
}
__device__ inline void store_four(float* at, const Four& v) {
  *reinterpret_cast<float4*>(at) = make_float4(v.value[0], v.value[1], v.value[2], v.value[3]);
}
__device__ inline void store_four(__nv_bfloat16* at, const Four& v) {
  const __nv_bfloat162 a = __floats2bfloat162_rn(v.value[0], v.value[1]),
                       b = __floats2bfloat162_rn(v.value[2], v.value[3]);
  uint2 bits;
  bits.x = *reinterpret_cast<const unsigned*>(&a);
  bits.y = *reinterpret_cast<const unsigned*>(&b);
  *reinterpret_cast<uint2*>(at) = bits;
}

// Sixteen bytes of numbers: four floats or eight bfloat16.
template <class Number>
struct Pack {
  static constexpr int size = 16 / sizeof(Number);
  float value[size];
};

__device__ inline Pack<float> load_pack(const float* at) {
  const Four v = load_four(at);
  return {{v.value[0], v.value[1], v.value[2], v.value[3]}};
}
__device__ inline Pack<__nv_bfloat16> load_pack(const __nv_bfloat16* at) {
  const uint4 bits = *reinterpret_cast<const uint4*>(at);
  const unsigned words[4] = {bits.x, bits.y, bits.z, bits.w};
  Pack<__nv_bfloat16> v;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 pair = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&words[i]));
    v.value[2 * i] = pair.x;
    v.value[2 * i + 1] = pair.y;
  }
  return v;
}
__device__ inline void store_pack(float* at, const Pack<float>& v) {
  store_four(at, {{v.value[0], v.value[1], v.value[2], v.value[3]}});
}
__device__ inline void store_pack(__nv_bfloat16* at, const Pack<__nv_bfloat16>& v) {
  unsigned words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(v.value[2 * i], v.value[2 * i + 1]);
    words[i] = *reinterpret_cast<const unsigned*>(&pair);
  }
  *reinterpret_cast<uint4*>(at) = make_uint4(words[0], words[1], words[2], words[3]);
}

// Blocks for a loop over fours: enough to fill the GPU several times over.
inline unsigned blocks_for(unsigned fours) {
  const unsigned blocks = (fours + block_threads - 1) / block_threads;
  return blocks < 132 * 32 ? blocks : 132 * 32;
}

}  // namespace attmirror::cuda

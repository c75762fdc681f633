// The GPU's own approximations, one instruction each: 1/x to 1 ulp, 1/sqrt x to 2^-22.9, log2 x to 2^-22 (of log2 x, or
// absolutely between 1/2 and 2), 2^x to 2^-22. Denormal arguments and results become 0.
//
// These instructions are all that ties float_powers.cuh and step_element.cuh to CUDA. Where the tests compile both
// for the CPU, another file of this name stands in: tests/mirror/emulation.
#pragma once

namespace attmirror::cuda {

__device__ __forceinline__ float fast_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float fast_rsqrt(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float fast_log2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace attmirror::cuda

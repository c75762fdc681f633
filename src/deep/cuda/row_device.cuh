// What kernels over rows have in common. Internal.
#pragma once

#include "deep/cuda/fours.cuh"
#include "deep/cuda/row_kernels.hpp"
#include "deep/dropout_bits.hpp"

namespace attmirror::cuda {

constexpr int backward_blocks = 528;  // four for each of 132 multiprocessors

__device__ inline float warp_sum(float x) {
  for (int distance = warp / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(~0u, x, distance);
  return x;
}

__device__ inline void drop(const RowDropout& dropout, std::uint64_t key, std::uint32_t column, Four& v) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v.value[i] =
        dropout_bits(key, dropout.site, column + i) >= dropout.threshold ? v.value[i] * dropout.scale : 0.0f;
}

// Calls launch.template operator()<Number, Brief, chunks>() for the types and the width of the rows.
template <class Launch>
cudaError_t dispatch(const RowShape& shape, const Launch& launch) {
  const auto for_type = [&]<class Number, class Brief>() {
    const std::int64_t chunks = (shape.width + 4 * warp - 1) / (4 * warp);
    if (chunks <= 1) return launch.template operator()<Number, Brief, 1>();
    if (chunks <= 2) return launch.template operator()<Number, Brief, 2>();
    if (chunks <= 3) return launch.template operator()<Number, Brief, 3>();
    if (chunks <= 4) return launch.template operator()<Number, Brief, 4>();
    if (chunks <= 6) return launch.template operator()<Number, Brief, 6>();
    return launch.template operator()<Number, Brief, 8>();
  };
  if (shape.rows == 0) return cudaSuccess;
  if (shape.type == RowType::bfloat16) return for_type.template operator()<__nv_bfloat16, __nv_bfloat16>();
  return shape.brief == RowType::bfloat16 ? for_type.template operator()<float, __nv_bfloat16>()
                                          : for_type.template operator()<float, float>();
}

}  // namespace attmirror::cuda

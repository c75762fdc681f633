// From tensors to the arguments of our own GPU kernels (src/deep/cuda). Internal; for sources that need CUDA.
#pragma once

#include "deep/cuda/row_kernels.hpp"
#include "deep/dropout_bits.hpp"
#include <attmirror/base/error.hpp>

#include <cstdint>

#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

namespace attmirror::deep {

inline void check_launch(cudaError_t error) {
  if (error != cudaSuccess)
    throw environment_error(fmt::format("a GPU kernel could not be started: {}", cudaGetErrorString(error)));
}

inline cuda::RowShape row_shape(const at::Tensor& x) {
  if (x.scalar_type() != at::kFloat && x.scalar_type() != at::kBFloat16)
    throw bad_input("rows on a GPU are for float32 and bfloat16");
  return {x.scalar_type() == at::kFloat ? cuda::RowType::float32 : cuda::RowType::bfloat16, x.size(0),
          x.size(1)};
}

inline cuda::RowDropout row_dropout(const at::Tensor& keys, std::int64_t site, double probability) {
  if (probability <= 0) return {};
  return {keys.data_ptr<std::int64_t>(), static_cast<std::uint32_t>(site), dropout_threshold(probability),
          static_cast<float>(1 / (1 - probability))};
}

inline cudaStream_t stream_of(const at::Tensor& x) {
  return c10::cuda::getCurrentCUDAStream(x.device().index()).stream();
}

}  // namespace attmirror::deep

// Between tensors and the GPU's kernels: our own (src/deep/cuda), and LibTorch's flash attention.
#include "deep/network_kernels.hpp"

#include "deep/cuda/row_kernels.hpp"
#include "deep/dropout_bits.hpp"
#include <attmirror/base/error.hpp>

#include <mutex>
#include <tuple>

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/version.h>

namespace attmirror::deep {

namespace {

void check_launch(cudaError_t error) {
  if (error != cudaSuccess)
    throw environment_error(fmt::format("a GPU kernel could not be started: {}", cudaGetErrorString(error)));
}

cuda::RowShape row_shape(const at::Tensor& x) {
  if (x.scalar_type() != at::kFloat && x.scalar_type() != at::kBFloat16)
    throw bad_input("rows on a GPU are for float32 and bfloat16");
  return {x.scalar_type() == at::kFloat ? cuda::RowType::float32 : cuda::RowType::bfloat16, x.size(0),
          x.size(1)};
}

cuda::RowDropout row_dropout(const at::Tensor& keys, std::int64_t site, double probability) {
  if (probability <= 0) return {};
  return {keys.data_ptr<std::int64_t>(), static_cast<std::uint32_t>(site), dropout_threshold(probability),
          static_cast<float>(1 / (1 - probability))};
}

cudaStream_t stream_of(const at::Tensor& x) {
  return c10::cuda::getCurrentCUDAStream(x.device().index()).stream();
}

struct ResidualNormFunction : public torch::autograd::Function<ResidualNormFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& branch, const at::Tensor& weight, const at::Tensor& keys,
                            std::int64_t site, double probability, double eps, bool keep) {
    const c10::cuda::CUDAGuard guard(x.device());
    const at::Tensor input = x.contiguous(), added = branch.contiguous();
    at::Tensor result = at::empty_like(input), sum, statistics;
    if (keep) {
      sum = at::empty_like(input);
      statistics = at::empty({input.size(0), 2}, input.options().dtype(at::kFloat));
    }
    check_launch(cuda::norm_forward(row_shape(input), input.data_ptr(), added.data_ptr(),
                                    weight.data_ptr<float>(), static_cast<float>(eps),
                                    row_dropout(keys, site, probability), keep ? sum.data_ptr() : nullptr,
                                    keep ? reinterpret_cast<float2*>(statistics.data_ptr<float>()) : nullptr,
                                    result.data_ptr(), stream_of(input)));
    context->save_for_backward({sum, statistics, weight, keys});
    context->saved_data["site"] = site;
    context->saved_data["probability"] = probability;
    return result;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &sum = saved[0], &statistics = saved[1], &weight = saved[2], &keys = saved[3];
    const c10::cuda::CUDAGuard guard(sum.device());
    const at::Tensor gradient = gradients[0].contiguous();
    const cuda::RowDropout dropout =
        row_dropout(keys, context->saved_data["site"].toInt(), context->saved_data["probability"].toDouble());
    at::Tensor d_sum = at::empty_like(sum);
    at::Tensor d_branch = dropout.keys ? at::empty_like(sum) : d_sum;
    at::Tensor partials = at::empty({cuda::norm_partials(), sum.size(1)}, statistics.options());
    if (sum.size(0) == 0) partials.zero_();
    check_launch(cuda::norm_backward(row_shape(sum), gradient.data_ptr(), sum.data_ptr(),
                                     reinterpret_cast<const float2*>(statistics.data_ptr<float>()),
                                     weight.data_ptr<float>(), dropout, d_sum.data_ptr(),
                                     dropout.keys ? d_branch.data_ptr() : nullptr, partials.data_ptr<float>(),
                                     stream_of(sum)));
    return {d_sum, d_branch, partials.sum(0), {}, {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor masked_on_gpu(const at::Tensor& x, const at::Tensor& keys, std::uint32_t site,
                         double probability) {
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor result = at::empty_like(x);
  check_launch(cuda::drop_rows(row_shape(x), x.data_ptr(), row_dropout(keys, site, probability),
                               result.data_ptr(), stream_of(x)));
  return result;
}

bool has_residual_norm_on_gpu(const at::Tensor& x) {
  return (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16) && cuda::norm_takes(x.size(1));
}

at::Tensor residual_norm_on_gpu(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                                const Dropout& dropout, double eps) {
  const bool keep =
      at::GradMode::is_enabled() && (x.requires_grad() || branch.requires_grad() || weight.requires_grad());
  return ResidualNormFunction::apply(x, branch, weight, dropout.active() ? dropout.keys : no_keys(x),
                                     static_cast<std::int64_t>(dropout.site),
                                     dropout.active() ? dropout.probability : 0.0, eps, keep);
}

#if TORCH_VERSION_MAJOR >= 2

bool has_fused_attention(const at::Tensor& query) {
  const bool brief = query.scalar_type() == at::kBFloat16 || query.scalar_type() == at::kHalf;
  return query.is_cuda() && brief && query.size(2) <= 256 && query.size(2) % 8 == 0;
}

// The kernel draws number (seed, offset + 32 (heads sequence + head) + thread) from the device's default generator, and
// moves its offset on by 32 heads sequences. The offset is put where one process with all samples, and one sequence of
// filler, would have it after the blocks before this one. While a step is recorded, the generator has that offset, and its
// seed is set before the step is repeated (step_graphs.cpp).
at::Tensor fused_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const PackedRows& queries, const PackedRows& keys,
                           const AttentionDropout& dropout) {
  const c10::cuda::CUDAGuard guard(query.device());
  const double probability = dropout.keys.defined() ? dropout.probability : 0;
  if (probability > 0 && c10::cuda::currentStreamCaptureStatusMayInitCtx() == c10::cuda::CaptureStatus::None) {
    const std::int64_t sequences = queries.offsets.size(0) - 1,
                       all = dropout.all_samples > 0 ? dropout.all_samples + 1 : sequences;
    at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator(query.device().index());
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(dropout.seed);
    generator.set_offset(
        static_cast<std::uint64_t>((dropout.block * all + dropout.first_sample) * query.size(1)) * 32);
  }
  return std::get<0>(at::_flash_attention_forward(query, key, value, queries.offsets, keys.offsets,
                                                  queries.longest, keys.longest, probability,
                                                  /*is_causal=*/false,
                                                  /*return_debug_mask=*/false));
}

#else

bool has_fused_attention(const at::Tensor&) { return false; }
at::Tensor fused_attention(const at::Tensor&, const at::Tensor&, const at::Tensor&, const PackedRows&,
                           const PackedRows&, const AttentionDropout&) {
  throw bad_input("fused attention needs LibTorch 2");
}

#endif

}  // namespace attmirror::deep

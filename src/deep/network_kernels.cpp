// Between tensors and the GPU's kernels: our own (src/deep/cuda), and LibTorch's flash attention.
#include "deep/network_kernels.hpp"

#include "deep/kernel_calls.hpp"
#include <attmirror/base/error.hpp>

#include <atomic>
#include <mutex>
#include <tuple>

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/version.h>

namespace attmirror::deep {

namespace {

// What stands for a tensor that is not there: LibTorch's functions with a gradient do not take undefined tensors.
at::Tensor nothing_beside(const at::Tensor& x) {
  return at::empty({0}, x.options().dtype(at::kFloat).requires_grad(false));
}
const void* data_or_null(const at::Tensor& x) { return x.numel() > 0 ? x.data_ptr() : nullptr; }

at::Tensor summed_partials(const at::Tensor& partials) {
  at::Tensor result = at::empty({partials.size(1)}, partials.options());
  check_launch(cuda::sum_partials(partials.data_ptr<float>(), result.data_ptr<float>(), partials.size(1),
                                  stream_of(partials)));
  return result;
}

at::Tensor new_partials(const at::Tensor& beside, std::int64_t columns) {
  const auto options = beside.options().dtype(at::kFloat);
  const std::vector<std::int64_t> sizes{cuda::row_partials(), columns};
  return beside.size(0) == 0 ? at::zeros(sizes, options) : at::empty(sizes, options);
}

// norm(x + dropped(branch + branch_bias)), and what goes on beside it: the sum, or the norm once more, so that the
// gradients of two readers come apart and are added where they are read.
struct ResidualNormFunction : public torch::autograd::Function<ResidualNormFunction> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context,
                                                const at::Tensor& x, const at::Tensor& branch,
                                                const at::Tensor& branch_bias, const at::Tensor& weight,
                                                const at::Tensor& bias, const at::Tensor& keys,
                                                std::int64_t site, double probability, double eps, bool keep,
                                                bool with_sum, bool brief) {
    const c10::cuda::CUDAGuard guard(x.device());
    const at::Tensor input = x.contiguous(), added = branch.contiguous();
    const bool has_branch = added.numel() > 0;
    cuda::RowShape shape = row_shape(input);
    if (brief) shape.brief = cuda::RowType::bfloat16;
    at::Tensor result =
        at::empty_like(input, input.options().dtype(brief ? at::kBFloat16 : input.scalar_type()));
    at::Tensor sum = has_branch ? at::Tensor() : input, statistics;
    if (has_branch && (keep || with_sum)) sum = at::empty_like(input);
    if (keep) statistics = at::empty({input.size(0), 2}, input.options().dtype(at::kFloat));
    cuda::NormForward arrays;
    arrays.x = input.data_ptr();
    arrays.branch = data_or_null(added);
    arrays.branch_bias = static_cast<const float*>(data_or_null(branch_bias));
    arrays.weight = weight.data_ptr<float>();
    arrays.bias = static_cast<const float*>(data_or_null(bias));
    if (has_branch && sum.defined()) arrays.sum = sum.data_ptr();
    if (keep) arrays.statistics = reinterpret_cast<float2*>(statistics.data_ptr<float>());
    arrays.result = result.data_ptr();
    check_launch(cuda::norm_forward(shape, arrays, static_cast<float>(eps),
                                    row_dropout(keys, site, probability), stream_of(input)));
    context->save_for_backward({sum, statistics, weight, keys});
    context->set_materialize_grads(false);
    context->saved_data["site"] = site;
    context->saved_data["probability"] = probability;
    context->saved_data["brief"] = brief;
    context->saved_data["with_sum"] = with_sum;
    context->saved_data["has_branch"] = has_branch;
    context->saved_data["has_bias"] = bias.numel() > 0;
    context->saved_data["has_branch_bias"] = branch_bias.numel() > 0;
    // Without a branch the sum is x. The same numbers in the same place: that they are two outputs, or an output apart
    // from x, is for the gradients' sake.
    if (with_sum) return {result, has_branch ? sum : at::Tensor(input.variable_data())};
    return {result, at::Tensor(result.variable_data())};
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &sum = saved[0], &statistics = saved[1], &weight = saved[2], &keys = saved[3];
    const c10::cuda::CUDAGuard guard(sum.device());
    const auto is = [&](const char* name) { return context->saved_data[name].toBool(); };
    const bool has_branch = is("has_branch"), has_bias = is("has_bias"), with_sum = is("with_sum");
    const at::ScalarType type = is("brief") ? at::kBFloat16 : sum.scalar_type();
    at::Tensor first = gradients[0], second = gradients[1];
    if (!first.defined() && !with_sum) std::swap(first, second);
    if (!first.defined()) first = at::zeros_like(sum, sum.options().dtype(type));
    first = first.contiguous();
    if (second.defined()) second = second.contiguous();
    const cuda::RowDropout dropout =
        row_dropout(keys, context->saved_data["site"].toInt(), context->saved_data["probability"].toDouble());
    cuda::RowShape shape = row_shape(sum);
    if (is("brief")) shape.brief = cuda::RowType::bfloat16;
    at::Tensor d_sum = at::empty_like(sum), d_branch;
    // Of the same type, without dropout and without sums over it, one serves as both.
    const bool is_apart = has_branch && (dropout.keys != nullptr || type != sum.scalar_type() || has_bias);
    if (has_branch) d_branch = is_apart ? at::empty_like(first) : d_sum;
    const std::int64_t width = sum.size(1);
    const at::Tensor partials = new_partials(sum, (has_bias ? 3 : 1) * width);
    cuda::NormBackward arrays;
    arrays.d_result = first.data_ptr();
    if (second.defined()) (with_sum ? arrays.d_passed : arrays.d_second) = second.data_ptr();
    arrays.sum = sum.data_ptr();
    arrays.statistics = reinterpret_cast<const float2*>(statistics.data_ptr<float>());
    arrays.weight = weight.data_ptr<float>();
    arrays.d_sum = d_sum.data_ptr();
    if (is_apart) arrays.d_branch = d_branch.data_ptr();
    arrays.partials = partials.data_ptr<float>();
    arrays.with_bias = has_bias;
    check_launch(cuda::norm_backward(shape, arrays, dropout, stream_of(sum)));
    const at::Tensor sums = summed_partials(partials);
    const auto part = [&](bool there, std::int64_t index) {
      return there ? sums.narrow(0, index * width, width) : at::Tensor();
    };
    return {
        d_sum, d_branch, part(is("has_branch_bias"), 2), part(true, 0), part(has_bias, 1), {}, {}, {}, {}, {},
        {},    {}};
  }
};

struct GeluFunction : public torch::autograd::Function<GeluFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& bias, const at::Tensor& keys, std::int64_t site,
                            double probability) {
    const c10::cuda::CUDAGuard guard(x.device());
    const at::Tensor input = x.contiguous();
    at::Tensor result = at::empty_like(input);
    check_launch(cuda::gelu_rows(row_shape(input), input.data_ptr(), bias.data_ptr<float>(),
                                 row_dropout(keys, site, probability), result.data_ptr(), stream_of(input)));
    context->save_for_backward({input, bias, keys});
    context->saved_data["site"] = site;
    context->saved_data["probability"] = probability;
    return result;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &bias = saved[1], gradient = gradients[0].contiguous();
    const c10::cuda::CUDAGuard guard(x.device());
    at::Tensor d_x = at::empty_like(x);
    const at::Tensor partials = new_partials(x, x.size(1));
    check_launch(cuda::gelu_rows_backward(row_shape(x), x.data_ptr(), bias.data_ptr<float>(),
                                          gradient.data_ptr(),
                                          row_dropout(saved[2], context->saved_data["site"].toInt(),
                                                      context->saved_data["probability"].toDouble()),
                                          d_x.data_ptr(), partials.data_ptr<float>(), stream_of(x)));
    return {d_x, summed_partials(partials), {}, {}, {}};
  }
};

// gelu(x), without bias and dropout.
struct PlainGeluFunction : public torch::autograd::Function<PlainGeluFunction> {
  static at::Tensor computed(const at::Tensor& x, const void* d_result) {
    const c10::cuda::CUDAGuard guard(x.device());
    at::Tensor result = at::empty_like(x);
    check_launch(cuda::gelu_alone(row_shape(x).type, x.data_ptr(), d_result, result.data_ptr(), x.numel(),
                                  stream_of(x)));
    return result;
  }
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    const at::Tensor input = x.contiguous();
    context->save_for_backward({input});
    return computed(input, nullptr);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    return {computed(context->get_saved_variables()[0], gradients[0].contiguous().data_ptr())};
  }
};

#if TORCH_VERSION_MAJOR >= 2

struct BriefFunction : public torch::autograd::Function<BriefFunction> {
  static torch::autograd::variable_list as_type(at::TensorList from, at::ScalarType type) {
    torch::autograd::variable_list to;
    for (const at::Tensor& tensor : from)
      to.push_back(at::empty_like(tensor, tensor.options().dtype(type).requires_grad(false)));
    if (!to.empty()) at::_foreach_copy_(to, from);
    return to;
  }
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context,
                                                at::TensorList weights) {
    context->set_materialize_grads(false);
    return as_type(weights, at::kBFloat16);
  }
  // Biases that our kernels add in float32 have no reader here, and get no gradient from here.
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    torch::autograd::variable_list brief;
    for (const at::Tensor& gradient : gradients)
      if (gradient.defined()) brief.push_back(gradient);
    const torch::autograd::variable_list wide = as_type(brief, at::kFloat);
    auto next = wide.begin();
    for (at::Tensor& gradient : gradients)
      if (gradient.defined()) gradient = *next++;
    return gradients;
  }
};

#endif

}  // namespace

std::vector<at::Tensor> brief_on_gpu(const std::vector<at::Tensor>& weights) {
#if TORCH_VERSION_MAJOR >= 2
  return BriefFunction::apply(at::TensorList(weights));
#else
  std::vector<at::Tensor> result;
  for (const at::Tensor& weight : weights) result.push_back(weight.to(at::kBFloat16));
  return result;
#endif
}

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

NormedRows residual_norm_on_gpu(const at::Tensor& x, const Branch& branch, const Affine& norm,
                                const Dropout& dropout, double eps, const NormOutputs& outputs) {
  const auto wants = [](const at::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); };
  const bool keep = at::GradMode::is_enabled() && (wants(x) || wants(branch.rows) || wants(norm.weight));
  const auto or_nothing = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor : nothing_beside(x);
  };
  const bool brief = outputs.type == at::kBFloat16 && x.scalar_type() == at::kFloat;
  const auto results = ResidualNormFunction::apply(
      x, or_nothing(branch.rows), or_nothing(branch.bias), norm.weight, or_nothing(norm.bias),
      dropout.active() ? dropout.keys : no_keys(x), static_cast<std::int64_t>(dropout.site),
      dropout.active() ? dropout.probability : 0.0, eps, keep, outputs.sum, brief);
  return {results[1], results[0]};
}

bool has_plain_gelu_on_gpu(const at::Tensor& x) {
  return x.dim() == 2 && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16) &&
         cuda::gelu_alone_takes(x.numel());
}

at::Tensor plain_gelu_on_gpu(const at::Tensor& x) { return PlainGeluFunction::apply(x); }

bool has_gelu_on_gpu(const at::Tensor& x, std::int64_t width) {
  if (x.dim() != 2 || (x.scalar_type() != at::kFloat && x.scalar_type() != at::kBFloat16)) return false;
  cuda::RowShape shape = row_shape(x);
  shape.width = width;
  return cuda::gelu_takes(shape);
}

at::Tensor gelu_on_gpu(const at::Tensor& x, const at::Tensor& bias, const Dropout& dropout) {
  return GeluFunction::apply(x, bias, dropout.active() ? dropout.keys : no_keys(x),
                             static_cast<std::int64_t>(dropout.site),
                             dropout.active() ? dropout.probability : 0.0);
}

#if TORCH_VERSION_MAJOR >= 2

bool has_fused_attention(const at::Tensor& query) {
  const bool brief = query.scalar_type() == at::kBFloat16 || query.scalar_type() == at::kHalf;
  return query.is_cuda() && brief && query.size(2) <= 256 && query.size(2) % 8 == 0;
}

namespace {

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 6

// Samples of one length, without dropout, by cuDNN: what an image network has. Undefined where cuDNN does not serve.
at::Tensor dense_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const PackedRows& queries, const PackedRows& keys) {
  static std::atomic<bool> serves = true;
  const std::int64_t samples = queries.offsets.size(0) - 1;
  const bool is_dense =
      samples > 0 && query.size(0) == samples * queries.longest && key.size(0) == samples * keys.longest;
  if (!is_dense || !serves || query.size(2) > 128) return {};
  const auto by_sample = [&](const at::Tensor& rows, std::int64_t length) {
    return rows.view({samples, length, rows.size(1), rows.size(2)}).transpose(1, 2);
  };
  try {
    const auto result = at::_scaled_dot_product_cudnn_attention(
        by_sample(query, queries.longest), by_sample(key, keys.longest), by_sample(value, keys.longest), {},
        /*compute_log_sumexp=*/true);
    return std::get<0>(result).transpose(1, 2).reshape(query.sizes());
  } catch (const c10::Error&) {
    // While a step is recorded there is no way back; it was run before, and would have been here then.
    if (c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None) throw;
    serves = false;
    return {};
  }
}

#else

at::Tensor dense_attention(const at::Tensor&, const at::Tensor&, const at::Tensor&, const PackedRows&,
                           const PackedRows&) {
  return {};
}

#endif

}  // namespace

// The kernel draws number (seed, offset + 32 (heads sequence + head) + thread) from the device's default generator, and
// moves its offset on by 32 heads sequences. The offset is put where one process with all samples, and one sequence of
// filler, would have it after the blocks before this one. While a step is recorded, the generator has that
// offset, and its seed is set before the step is repeated (step_graphs.cpp).
at::Tensor fused_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const PackedRows& queries, const PackedRows& keys,
                           const AttentionDropout& dropout) {
  const c10::cuda::CUDAGuard guard(query.device());
  const double probability = dropout.keys.defined() ? dropout.probability : 0;
  if (probability == 0)
    if (const at::Tensor mixed = dense_attention(query, key, value, queries, keys); mixed.defined())
      return mixed;
  if (probability > 0 &&
      c10::cuda::currentStreamCaptureStatusMayInitCtx() == c10::cuda::CaptureStatus::None) {
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

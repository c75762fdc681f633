// Embeddings between tensors and the GPU's kernels: those of texts, and those of images.
#include "deep/cuda/embedding_kernels.hpp"
#include "deep/kernel_calls.hpp"
#include "deep/network_kernels.hpp"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/autograd/custom_function.h>

namespace attmirror::deep {

namespace {

struct EmbeddingFunction : public torch::autograd::Function<EmbeddingFunction> {
  static cuda::EmbeddedRows rows_of(const at::Tensor& tokens, const at::Tensor& positions,
                                    const at::Tensor& result) {
    return {tokens.data_ptr<std::int64_t>(), positions.data_ptr<std::int64_t>(), row_shape(result)};
  }
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& by_token,
                            const at::Tensor& by_position, const at::Tensor& tokens,
                            const at::Tensor& positions, bool brief) {
    const c10::cuda::CUDAGuard guard(by_token.device());
    at::Tensor result = at::empty({tokens.size(0), by_token.size(1)},
                                  by_token.options().dtype(brief ? at::kBFloat16 : at::kFloat));
    check_launch(cuda::embed_rows(rows_of(tokens, positions, result), by_token.data_ptr<float>(),
                                  by_position.data_ptr<float>(), result.data_ptr(), stream_of(result)));
    context->save_for_backward({tokens, positions});
    context->saved_data["tokens"] = by_token.size(0);
    context->saved_data["positions"] = by_position.size(0);
    return result;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor gradient = gradients[0].contiguous();
    const c10::cuda::CUDAGuard guard(gradient.device());
    const auto table = [&](const char* name) {
      return at::zeros({context->saved_data[name].toInt(), gradient.size(1)},
                       gradient.options().dtype(at::kFloat));
    };
    at::Tensor by_token = table("tokens"), by_position = table("positions");
    check_launch(cuda::embed_rows_backward(rows_of(saved[0], saved[1], gradient), gradient.data_ptr(),
                                           by_token.data_ptr<float>(), by_position.data_ptr<float>(),
                                           stream_of(gradient)));
    return {by_token, by_position, {}, {}, {}};
  }
};

// dropped(patches after the class token, with positions): [samples tokens, width] of float32.
struct PatchFunction : public torch::autograd::Function<PatchFunction> {
  static cuda::PatchRows rows_of(const at::Tensor& x, std::int64_t tokens, at::ScalarType mapped) {
    cuda::PatchRows rows{row_shape(x), tokens};
    if (mapped == at::kBFloat16) rows.shape.brief = cuda::RowType::bfloat16;
    return rows;
  }
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& mapped,
                            const at::Tensor& bias, const at::Tensor& class_token,
                            const at::Tensor& by_position, const at::Tensor& keys, std::int64_t site,
                            double probability) {
    const c10::cuda::CUDAGuard guard(mapped.device());
    const at::Tensor input = mapped.contiguous();
    const std::int64_t tokens = by_position.size(0), samples = input.size(0) / (tokens - 1);
    at::Tensor result = at::empty({samples * tokens, input.size(1)}, by_position.options());
    check_launch(cuda::embed_patches(rows_of(result, tokens, input.scalar_type()), input.data_ptr(),
                                     bias.data_ptr<float>(), class_token.data_ptr<float>(),
                                     by_position.data_ptr<float>(), row_dropout(keys, site, probability),
                                     result.data_ptr<float>(), stream_of(result)));
    context->save_for_backward({keys});
    context->saved_data["site"] = site;
    context->saved_data["probability"] = probability;
    context->saved_data["tokens"] = tokens;
    context->saved_data["brief"] = input.scalar_type() == at::kBFloat16;
    return result;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor gradient = gradients[0].contiguous(), keys = context->get_saved_variables()[0];
    const c10::cuda::CUDAGuard guard(gradient.device());
    const std::int64_t tokens = context->saved_data["tokens"].toInt(), width = gradient.size(1),
                       samples = gradient.size(0) / tokens;
    const at::ScalarType type = context->saved_data["brief"].toBool() ? at::kBFloat16 : at::kFloat;
    at::Tensor mapped = at::empty({samples * (tokens - 1), width}, gradient.options().dtype(type)),
               class_token = at::empty({width}, gradient.options()),
               by_position = at::empty({tokens, width}, gradient.options());
    check_launch(cuda::embed_patches_backward(
        rows_of(gradient, tokens, type), gradient.data_ptr<float>(),
        row_dropout(keys, context->saved_data["site"].toInt(), context->saved_data["probability"].toDouble()),
        mapped.data_ptr(), class_token.data_ptr<float>(), by_position.data_ptr<float>(),
        stream_of(gradient)));
    // The bias is added wherever a position of a patch is.
    return {mapped, by_position.narrow(0, 1, tokens - 1).sum(0), class_token, by_position, {}, {}, {}};
  }
};

}  // namespace

bool has_embedding_on_gpu(const at::Tensor& by_token, const at::Tensor& tokens, at::ScalarType type) {
  return by_token.scalar_type() == at::kFloat && (type == at::kFloat || type == at::kBFloat16) &&
         cuda::embedding_takes(tokens.size(0), by_token.size(1));
}

at::Tensor embedded_on_gpu(const at::Tensor& by_token, const at::Tensor& by_position,
                           const at::Tensor& tokens, const at::Tensor& positions, at::ScalarType type) {
  return EmbeddingFunction::apply(by_token, by_position, tokens.contiguous(), positions.contiguous(),
                                  type == at::kBFloat16);
}

bool has_patches_on_gpu(const at::Tensor& by_position, std::int64_t samples, at::ScalarType type) {
  return by_position.scalar_type() == at::kFloat && (type == at::kFloat || type == at::kBFloat16) &&
         samples > 0 && cuda::embedding_takes(samples * by_position.size(0), by_position.size(1));
}

at::Tensor patches_on_gpu(const Branch& mapped, const at::Tensor& class_token, const at::Tensor& by_position,
                          const Dropout& dropout) {
  return PatchFunction::apply(mapped.rows, mapped.bias, class_token, by_position,
                              dropout.active() ? dropout.keys : no_keys(mapped.rows),
                              static_cast<std::int64_t>(dropout.site),
                              dropout.active() ? dropout.probability : 0.0);
}

}  // namespace attmirror::deep

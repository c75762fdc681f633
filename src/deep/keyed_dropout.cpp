#include "deep/keyed_dropout.hpp"

#include "deep/dropout_bits.hpp"
#include "deep/network_kernels.hpp"
#include <attmirror/base/error.hpp>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

namespace attmirror::deep {

namespace {

constexpr double norm_eps = 1e-5;

// x times the mask of (keys, site), on the CPU.
template <class Number>
void drop_rows(const Number* x, Number* result, std::int64_t rows, std::int64_t width,
               const std::int64_t* keys, std::uint32_t site, double probability) {
  const std::uint32_t threshold = dropout_threshold(probability);
  const auto scale = static_cast<Number>(1 / (1 - probability));
  at::parallel_for(0, rows, std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, width)),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t r = begin; r < end; ++r) {
                       const auto key = static_cast<std::uint64_t>(keys[r]);
                       for (std::int64_t c = 0; c < width; ++c) {
                         const bool stays =
                             dropout_bits(key, site, static_cast<std::uint32_t>(c)) >= threshold;
                         result[r * width + c] = stays ? x[r * width + c] * scale : Number(0);
                       }
                     }
                   });
}

at::Tensor masked(const at::Tensor& x, const at::Tensor& keys, std::uint32_t site, double probability) {
  const at::Tensor input = x.contiguous();
  if (input.is_cuda()) return masked_on_gpu(input, keys, site, probability);
  at::Tensor result = at::empty_like(input);
  const std::int64_t rows = input.size(0), width = input.size(1);
  if (input.scalar_type() == at::kFloat)
    drop_rows(input.data_ptr<float>(), result.data_ptr<float>(), rows, width, keys.data_ptr<std::int64_t>(),
              site, probability);
  else if (input.scalar_type() == at::kDouble)
    drop_rows(input.data_ptr<double>(), result.data_ptr<double>(), rows, width, keys.data_ptr<std::int64_t>(),
              site, probability);
  else
    throw bad_input("dropout on the CPU is for float32 and float64");
  return result;
}

struct DroppedFunction : public torch::autograd::Function<DroppedFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& keys, std::int64_t site, double probability) {
    context->save_for_backward({keys});
    context->saved_data["site"] = site;
    context->saved_data["probability"] = probability;
    return masked(x, keys, static_cast<std::uint32_t>(site), probability);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    return {masked(gradients[0], context->get_saved_variables()[0],
                   static_cast<std::uint32_t>(context->saved_data["site"].toInt()),
                   context->saved_data["probability"].toDouble()),
            {},
            {},
            {}};
  }
};

}  // namespace

at::Tensor dropped(const at::Tensor& x, const Dropout& dropout) {
  if (!dropout.active()) return x;
  return DroppedFunction::apply(x, dropout.keys, static_cast<std::int64_t>(dropout.site),
                                dropout.probability);
}

NormedRows residual_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                         const Dropout& dropout) {
  if (x.is_cuda() && has_residual_norm_on_gpu(x))
    return residual_norm_on_gpu(x, {branch}, {weight}, dropout, norm_eps, {x.scalar_type(), false});
  const at::Tensor sum = x + dropped(branch, dropout);
  const at::Tensor normed = at::layer_norm(sum, {sum.size(1)}, weight.to(sum.scalar_type()), {}, norm_eps);
  return {normed, normed};
}

bool takes_branch_bias(const at::Tensor& x, at::ScalarType type) {
  return x.is_cuda() && has_residual_norm_on_gpu(x) && (type == at::kFloat || type == at::kBFloat16);
}

NormedRows sum_and_norm(const at::Tensor& x, const Branch& branch, const Affine& norm, const Dropout& dropout,
                        at::ScalarType type) {
  if (takes_branch_bias(x, type))
    return residual_norm_on_gpu(x, branch, norm, dropout, norm_eps, {type, /*sum=*/true});
  const at::Tensor sum = branch.rows.defined() ? x + dropped(branch.rows, dropout) : x;
  const at::ScalarType own = sum.scalar_type();
  return {sum, at::layer_norm(sum, {sum.size(1)}, norm.weight.to(own), norm.bias.to(own), norm_eps).to(type)};
}

bool takes_gelu_bias(const at::Tensor& mapped, std::int64_t width) {
  return mapped.is_cuda() && has_gelu_on_gpu(mapped, width);
}

at::Tensor dropped_gelu(const at::Tensor& x, const at::Tensor& bias, const Dropout& dropout) {
  if (bias.defined()) return gelu_on_gpu(x, bias, dropout);
  return dropped(plain_gelu(x), dropout);
}

at::Tensor plain_gelu(const at::Tensor& x) {
  return x.is_cuda() && has_plain_gelu_on_gpu(x) ? plain_gelu_on_gpu(x) : at::gelu(x);
}

}  // namespace attmirror::deep

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

at::Tensor residual_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                         const Dropout& dropout) {
  if (x.is_cuda() && has_residual_norm_on_gpu(x))
    return residual_norm_on_gpu(x, branch, weight, dropout, norm_eps);
  const at::Tensor sum = x + dropped(branch, dropout);
  return at::layer_norm(sum, {sum.size(1)}, weight.to(sum.scalar_type()), {}, norm_eps);
}

}  // namespace attmirror::deep

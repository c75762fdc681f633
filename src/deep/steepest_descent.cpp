#include "deep/archive_fields.hpp"
#include "mirror/newton_schulz.hpp"
#include <attmirror/deep/steepest_descent.hpp>

#include <charconv>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>

#include <ATen/ATen.h>

namespace attmirror::deep {

namespace {

// The fields, once for reading and writing.
template <class Options, class Visit>
void visit_steepest_fields(Options& options, Visit visit) {
  visit("lr", options.lr());
  visit("norm", options.norm());
  visit("momentum", options.momentum());
  visit("nesterov", options.nesterov());
  visit("weight_decay", options.weight_decay());
  visit("maximize", options.maximize());
  visit("gradient_scale", options.gradient_scale());
  visit("skip_nonfinite", options.skip_nonfinite());
  visit("polar", options.polar());
  visit("iterations", options.iterations());
  visit("master_weights", options.master_weights());
  visit("exact", options.exact());
  visit("fused", options.fused());
}

// The p of an l_p norm, infinite for "linf"; nothing for "spectral".
std::optional<double> read_norm(const std::string& text) {
  if (text == "spectral") return std::nullopt;
  if (text == "sign" || text == "linf" || text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "frobenius") return 2;
  const std::string digits = text.substr(0, 1) == "l" ? text.substr(1) : text;
  double p = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), p);
  if (error == std::errc() && end == digits.data() + digits.size() && p > 1 && std::isfinite(p)) return p;
  throw bad_input(c10::str("norm is \"", text,
                           "\": expected l and a number greater than 1 (l1.5), linf (or sign), or spectral"));
}

// x <- a x + b (x x^T) x + c (x x^T)^2 x, on the smaller of x x^T and x^T x.
at::Tensor newton_schulz(const at::Tensor& matrix, std::int64_t iterations) {
  const NewtonSchulzOptions polynomial;
  const bool is_tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = is_tall ? matrix.t() : matrix;
  for (std::int64_t turn = 0; turn < iterations; ++turn) {
    const at::Tensor gram = at::mm(x, x.t());
    const at::Tensor inner = polynomial.b * gram + polynomial.c * at::mm(gram, gram);
    x = polynomial.a * x + at::mm(inner, x);
  }
  return is_tall ? x.t() : x;
}

at::Tensor exact_polar(const at::Tensor& matrix) {
  const auto svd = at::linalg_svd(matrix, /*full_matrices=*/false);
  const at::Tensor& values = std::get<1>(svd);
  // Directions in which there is nothing but rounding have no sign to step by.
  const double unit = matrix.scalar_type() == at::kDouble ? std::ldexp(1.0, -52) : std::ldexp(1.0, -23);
  const double smallest = unit * static_cast<double>(std::max(matrix.size(0), matrix.size(1)));
  const at::Tensor kept = (values > smallest * values.max()).to(matrix.scalar_type());
  return at::mm(std::get<0>(svd) * kept, std::get<2>(svd));
}

}  // namespace

void SteepestDescentOptions::serialize(torch::serialize::OutputArchive& archive) const {
  visit_steepest_fields(*this,
                        [&](const char* name, const auto& value) { write_field(archive, name, value); });
}

void SteepestDescentOptions::serialize(torch::serialize::InputArchive& archive) {
  visit_steepest_fields(*this, [&](const char* name, auto& value) { read_option(archive, name, value); });
}

SteepestDescent::SteepestDescent(std::vector<torch::optim::OptimizerParamGroup> groups,
                                 SteepestDescentOptions defaults)
    : FusedOptimizer(std::move(groups), std::make_unique<SteepestDescentOptions>(defaults)) {
  validate_groups();
}

SteepestDescent::SteepestDescent(std::vector<at::Tensor> parameters, SteepestDescentOptions defaults)
    : SteepestDescent({torch::optim::OptimizerParamGroup(std::move(parameters))}, std::move(defaults)) {}

GroupRule SteepestDescent::rule(const torch::optim::OptimizerOptions& options) const {
  const auto& own = options_as<SteepestDescentOptions>(options, "SteepestDescentOptions");
  const std::optional<double> p = read_norm(own.norm());
  if (own.iterations() < 1)
    throw bad_input(c10::str("iterations is ", own.iterations(), ": expected a whole number from 1"));
  GroupRule result;
  result.step.rule = p.has_value() && std::isfinite(*p) ? StepRule::steepest : StepRule::sign;
  if (result.step.rule == StepRule::steepest) result.step.p = *p;
  result.step.rate = own.lr();
  result.step.momentum = own.momentum();
  result.step.nesterov = own.nesterov();
  result.step.weight_decay = own.weight_decay();
  result.step.maximize = own.maximize();
  result.step.gradient_scale = own.gradient_scale();
  result.step.skip_nonfinite = own.skip_nonfinite();
  result.step.arithmetic = own.exact() ? StepArithmetic::exact : StepArithmetic::fast;
  result.masters = own.master_weights();
  result.fused = own.fused();
  if (!p.has_value()) {
    result.direction = [method = own.polar(), turns = own.iterations()](const at::Tensor& d) {
      return polar_factor(d, method, turns);
    };
    if (own.polar() == PolarMethod::newton_schulz) result.newton_schulz = own.iterations();
  }
  return result;
}

at::Tensor polar_factor(const at::Tensor& d, PolarMethod method, std::int64_t iterations) {
  if (d.numel() == 0) return d;
  const at::ScalarType type = d.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const std::int64_t rows = d.dim() == 0 ? 1 : d.size(0);
  // The largest entry first, so that the norm neither over- nor underflows; a gradient of zeros stays zero.
  at::Tensor matrix = d.reshape({rows, d.numel() / rows});
  const at::Tensor largest = matrix.abs().max();
  matrix = (matrix / at::where(largest == 0, at::ones_like(largest), largest)).to(type);
  const at::Tensor norm = matrix.norm();
  matrix = matrix / at::where(norm == 0, at::ones_like(norm), norm);
  // A vector is its own polar factor, once it has length 1.
  // LibTorch's singular values throw where an entry is not finite; products carry it on.
  if (method == PolarMethod::svd && !at::isfinite(matrix).all().item<bool>())
    return at::full_like(d, std::numeric_limits<double>::quiet_NaN());
  const bool is_vector = matrix.size(0) == 1 || matrix.size(1) == 1;
  if (!is_vector)
    matrix = method == PolarMethod::svd ? exact_polar(matrix) : newton_schulz(matrix, iterations);
  return matrix.reshape(d.sizes());
}

}  // namespace attmirror::deep

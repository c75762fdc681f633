#include <attmirror/attention/loss.hpp>
#include <attmirror/base/error.hpp>

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr std::array<std::string_view, 3> names{"logistic", "exponential", "linear"};

// log(1 + e^x) without overflow for large x and without losing e^x for very negative x.
double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

struct Value {
  double m;
  double operator()(Logistic) const { return softplus(-m); }
  double operator()(Exponential) const { return std::exp(-m); }
  double operator()(Linear) const { return -m; }
  double operator()(const std::shared_ptr<const CustomLoss>& loss) const { return loss->value(m); }
};

struct Derivative {
  double m;
  double operator()(Logistic) const { return -1.0 / (1.0 + std::exp(m)); }
  double operator()(Exponential) const { return -std::exp(-m); }
  double operator()(Linear) const { return -1.0; }
  double operator()(const std::shared_ptr<const CustomLoss>& loss) const {
    return -std::exp(loss->log_abs_derivative(m));
  }
};

struct LogAbsDerivative {
  double m;
  double operator()(Logistic) const { return -softplus(m); }
  double operator()(Exponential) const { return -m; }
  double operator()(Linear) const { return 0.0; }
  double operator()(const std::shared_ptr<const CustomLoss>& loss) const {
    return loss->log_abs_derivative(m);
  }
};

}  // namespace

std::string to_string(const Loss& loss) {
  if (const auto* custom = std::get_if<std::shared_ptr<const CustomLoss>>(&loss))
    return "custom:" + (*custom)->name();
  return std::string(names[loss.index()]);
}

Loss parse_loss(std::string_view name) {
  if (name == names[0]) return Logistic{};
  if (name == names[1]) return Exponential{};
  if (name == names[2]) return Linear{};
  throw bad_input(fmt::format("loss is \"{}\": expected {}", name, fmt::join(names, ", ")));
}

double loss_value(const Loss& loss, double margin) { return std::visit(Value{margin}, loss); }
double loss_derivative(const Loss& loss, double margin) { return std::visit(Derivative{margin}, loss); }
double log_abs_loss_derivative(const Loss& loss, double margin) {
  return std::visit(LogAbsDerivative{margin}, loss);
}

}  // namespace attmirror

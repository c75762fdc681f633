#include "attention/kinds.hpp"
#include "base/words.hpp"
#include <attmirror/attention/loss.hpp>
#include <attmirror/base/error.hpp>

#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace attmirror {

namespace {

using OwnLoss = std::shared_ptr<const CustomLoss>;

struct FormOfLoss {
  using Form = kernels::LossForm;
  constexpr Form operator()(Kind<Logistic>) const { return Form::logistic; }
  constexpr Form operator()(Kind<Exponential>) const { return Form::exponential; }
  constexpr Form operator()(Kind<LinearLoss>) const { return Form::linear; }
  constexpr Form operator()(Kind<Sigmoid>) const { return Form::sigmoid; }
  constexpr Form operator()(Kind<OwnLoss>) const { return Form::custom; }
};
static_assert(one_form_each<Loss, FormOfLoss, kernels::LossForm::custom>());

// log(1 + e^x) without overflow for large x and without losing e^x for very negative x.
double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

struct LossValue {
  double m;
  double operator()(Logistic) const { return softplus(-m); }
  double operator()(Exponential) const { return std::exp(-m); }
  double operator()(LinearLoss) const { return -m; }
  double operator()(Sigmoid) const {
    const double e = std::exp(-std::abs(m));
    return (m > 0 ? e : 1.0) / (1.0 + e);
  }
  double operator()(const OwnLoss& loss) const { return loss->value(m); }
};

struct LossDerivative {
  double m;
  double operator()(Logistic) const { return -1.0 / (1.0 + std::exp(m)); }
  double operator()(Exponential) const { return -std::exp(-m); }
  double operator()(LinearLoss) const { return -1.0; }
  double operator()(Sigmoid) const {
    const double e = std::exp(-std::abs(m));
    return -e / ((1.0 + e) * (1.0 + e));
  }
  double operator()(const OwnLoss& loss) const { return -std::exp(loss->log_abs_derivative(m)); }
};

struct LogAbsLossDerivative {
  double m;
  double operator()(Logistic) const { return -softplus(m); }
  double operator()(Exponential) const { return -m; }
  double operator()(LinearLoss) const { return 0.0; }
  double operator()(Sigmoid) const { return -(softplus(m) + softplus(-m)); }
  double operator()(const OwnLoss& loss) const { return loss->log_abs_derivative(m); }
};

struct NameOfLoss {
  template <HasWord T>
  std::string operator()(const T&) const {
    return std::string(T::word);
  }
  std::string operator()(const OwnLoss& loss) const { return "custom:" + loss->name(); }
};

}  // namespace

kernels::LossForm loss_form(const Loss& loss) { return form_in(FormOfLoss{}, loss); }

std::string to_string(const Loss& loss) { return std::visit(NameOfLoss{}, loss); }

const std::vector<std::string_view>& loss_names() {
  static const std::vector<std::string_view> names = words_of<Loss>();
  return names;
}

Loss parse_loss(std::string_view name) {
  std::optional<Loss> loss;
  for_each_kind(Kind<Loss>{}, [&]<class T>(Kind<T>) {
    if constexpr (HasWord<T>)
      if (name == T::word) loss = T{};
  });
  if (loss) return *loss;
  throw bad_value("loss", name, expected_choice(name, loss_names()));
}

double loss_value(const Loss& loss, double margin) { return std::visit(LossValue{margin}, loss); }
double loss_derivative(const Loss& loss, double margin) { return std::visit(LossDerivative{margin}, loss); }
double log_abs_loss_derivative(const Loss& loss, double margin) {
  return std::visit(LogAbsLossDerivative{margin}, loss);
}

}  // namespace attmirror

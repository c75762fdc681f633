// A head and a loss of your own. The head has diminishing returns, h(u) = sum_c log(1 + 4 u_c), and is largest for a
// mixture: attention keeps several tokens where a linear head would pick one.
#include <attmirror/attmirror.hpp>

#include <cmath>
#include <cstdio>

using namespace attmirror;

class DiminishingHead final : public CustomHead {
 public:
  std::string name() const override { return "diminishing"; }
  double evaluate(std::span<const double> u, std::span<double> gradient) const override {
    double value = 0;
    for (std::size_t c = 0; c < u.size(); ++c) {
      value += std::log1p(4 * u[c]);
      gradient[c] = 4 / (1 + 4 * u[c]);
    }
    return value;
  }
};

class SoftHinge final : public CustomLoss {  // (1/4) log(1 + e^{-4 m}): a sharper logistic loss
 public:
  std::string name() const override { return "soft_hinge"; }
  double value(double m) const override { return loss_value(Logistic{}, 4 * m) / 4; }
  double log_abs_derivative(double m) const override { return log_abs_loss_derivative(Logistic{}, 4 * m); }
};

int main() {
  DatasetArrays arrays;
  arrays.tokens = Eigen::Vector4d(1.0, 0.8, 0.6, 0.2).asDiagonal();  // the last one has little to offer
  arrays.lengths = {4};
  arrays.queries = Matrix::Ones(1, 4);
  arrays.labels = {+1};
  const Dataset data(arrays);
  const Attention model{
      data, W{}, std::make_shared<SoftHinge>(), {.head = std::make_shared<DiminishingHead>()}};
  const DescentRun run = descend(model, GradientDescent{.lr = 0.01, .normalized = true}, {.steps = 5'000});
  const Vector attention = attention_probabilities(model, run.last()).front();
  std::printf("loss %.4f, attention", run.loss);
  for (const double s : attention) std::printf(" %.3f", s);
  std::printf("\n");
}

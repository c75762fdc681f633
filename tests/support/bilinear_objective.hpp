// A model as a user would write it: f(x) = x^T U w + x^T offset with squared errors. U and w are trained, `offset`
// is fixed.
#pragma once

#include <attmirror/base/fingerprint.hpp>
#include <attmirror/descent/objective.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace attmirror::test {

class BilinearObjective final : public Objective {
 public:
  explicit BilinearObjective(double weight = 1, unsigned seed = 1) : weight_(weight) {
    std::uint64_t state = seed;
    const auto draw = [&] {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      return static_cast<double>(state >> 11) * 0x1p-52 - 1;
    };
    X_ = Matrix::NullaryExpr(7, 4, draw);
    y_ = Vector::NullaryExpr(7, draw);
  }

  std::vector<BlockShape> blocks() const override {
    return {BlockShape::vector("offset", 4), BlockShape::matrix("U", 4, 3), BlockShape::vector("w", 3)};
  }
  std::vector<Block> trained() const override { return {"U", "w"}; }
  ModelFacts facts() const override {
    return {.kind = "bilinear",
            .data = {{"samples", X_.rows()}},
            .model = {{"weight", weight_}, {"squared", true}, {"note", "for tests"}}};
  }
  std::uint64_t data_fingerprint() const override {
    Fingerprint print;
    print.add(X_);
    print.add(y_);
    return print.value();
  }
  bool has_lower_bound() const override { return true; }

  Evaluation evaluate(const ParameterBlocks& weights, Gradient& gradient) const override {
    const Vector r = residuals(weights);
    const auto U = weights.view(1).eigen();
    const Vector pulled = X_.transpose() * r * (weight_ / static_cast<double>(r.size()));
    gradient.blocks.view(0).eigen() = pulled * weights.view(2).eigen();
    gradient.blocks.view(1).eigen().row(0) = pulled.transpose() * U;
    return {.loss = 0.5 * weight_ * r.squaredNorm() / static_cast<double>(r.size())};
  }
  std::vector<Metric> metrics(const ParameterBlocks& weights) const override {
    return {{metric_name, residuals(weights).cwiseAbs().maxCoeff()}};
  }

  std::string metric_name = "largest_error";

 private:
  Vector residuals(const ParameterBlocks& weights) const {
    const Vector inner = weights.view(1).eigen() * weights.view(2).eigen().row(0).transpose() +
                         weights.view(0).eigen().row(0).transpose();
    return X_ * inner - y_;
  }

  double weight_;
  Matrix X_;
  Vector y_;
};

}  // namespace attmirror::test

// The minimum of the restricted loss, by Newton's method in an orthonormal basis of its subspace.
//
// The subspace is spanned by D_i = (l_{c_i} - l_{c_0}) z^T, one for each token c_i of a component but its first.
// Their Gram matrix K_ij = <D_i, D_j> is small where W is large, and its pivoted Cholesky factorization K = L L^T (n
// x r, r the rank) is all that is needed: row i of L is D_i in an orthonormal basis, so the score differences are
// delta = L eta with |eta| = |W|_F, and W = sum over the pivots of theta_i D_i with L_pp^T theta = eta. The loss is
// cheap in delta, block by block.
//
// Where several tokens of a component are optimal in one sentence the loss is not convex: the Hessian is shifted
// until it is positive, steps are halved until the loss falls enough, and the end counts as a minimum only where no
// shift was needed and the Newton step itself is negligible (towards a minimum at infinity the gradient vanishes too,
// but steps stay of size 1).
#include "next_token/decoupled_target.hpp"
#include "next_token/restricted_loss.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <span>

#include <Eigen/Cholesky>
#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr int max_newton_steps = 200;
constexpr double relative_gradient = 1e-12, negligible_step = 1e-9;

// K = L L^T with the largest remaining diagonal first; rows of L in the order of K.
struct PivotedCholesky {
  Matrix L;                            // (n, rank)
  std::vector<std::ptrdiff_t> pivots;  // rank

  explicit PivotedCholesky(const Matrix& K) : L(Matrix::Zero(K.rows(), K.rows())) {
    const std::ptrdiff_t n = K.rows();
    Vector left = K.diagonal();
    const double smallest = left.maxCoeff() * 1e-14 * static_cast<double>(n);
    std::ptrdiff_t rank = 0;
    for (; rank < n; ++rank) {
      std::ptrdiff_t pivot = 0;
      const double largest = left.maxCoeff(&pivot);
      if (!(largest > smallest)) break;
      Vector column = K.col(pivot);
      column.noalias() -= L.leftCols(rank) * L.row(pivot).head(rank).transpose();
      column /= std::sqrt(largest);
      for (const std::ptrdiff_t done : pivots) column[done] = 0;
      column[pivot] = std::sqrt(largest);
      L.col(rank) = column;
      left -= column.cwiseAbs2();
      pivots.push_back(pivot);
      for (const std::ptrdiff_t done : pivots) left[done] = 0;
    }
    L.conservativeResize(n, rank);
  }

  // theta with sum_i theta_i D_{pivot i} = eta.
  Vector coefficients(const Vector& eta) const {
    Matrix corner(std::ssize(pivots), std::ssize(pivots));
    for (std::ptrdiff_t i = 0; i < corner.rows(); ++i)
      corner.row(i) = L.row(pivots[static_cast<std::size_t>(i)]);
    return corner.transpose().triangularView<Eigen::Upper>().solve(eta);
  }
};

class Newton {
 public:
  Newton(const Embedding& embedding, LeftVectors left, std::span<const RestrictedComponent> components)
      : embedding_(embedding), left_(left), components_(components), cholesky_(gram()) {
    for (const RestrictedComponent& c : components)
      for (const auto& term : c.terms) weight_ += term.weight;
  }

  // Adds the minimum of these components to `result`.
  void run(FinitePart& result) {
    const double gradient_goal = relative_gradient * weight_ * cholesky_.L.rowwise().norm().maxCoeff();
    eta_ = Vector::Zero(cholesky_.L.cols());
    SecondOrder here = second_order();
    bool minimum = false;
    int steps = 0;
    for (; steps < max_newton_steps; ++steps) {
      const Step step = newton_step(here);
      const double moves = (cholesky_.L * step.step).cwiseAbs().maxCoeff();
      const double size = 1 + (cholesky_.L * eta_).cwiseAbs().maxCoeff();
      minimum = here.gradient.norm() <= gradient_goal && !step.shifted && moves <= negligible_step * size;
      if (minimum || here.gradient.norm() == 0 || !line_search(step.step, here)) break;
      here = second_order();
    }
    result.loss += here.loss;
    result.gradient_norm = std::hypot(result.gradient_norm, here.gradient.norm());
    result.iterations = std::max(result.iterations, steps);
    result.dimension += cholesky_.L.cols();
    result.converged = result.converged && minimum;
    add_weights(result.W);
  }

 private:
  auto vectors() const { return embedding_.vectors.view().eigen(); }

  double left_product(Token a, Token b) const {
    if (left_ == LeftVectors::units || embedding_.is_one_hot()) return a == b ? 1 : 0;
    return vectors().row(a).dot(vectors().row(b));
  }
  double right_product(Token a, Token b) const {
    if (embedding_.is_one_hot()) return a == b ? 1 : 0;
    return vectors().row(a).dot(vectors().row(b));
  }

  Matrix gram() const {
    struct Element {
      Token looking, first, other;
    };
    std::vector<Element> elements;
    for (const RestrictedComponent& c : components_)
      for (std::size_t i = 1; i < c.tokens.size(); ++i)
        elements.push_back({c.looking, c.tokens[0], c.tokens[i]});
    const std::ptrdiff_t n = std::ssize(elements);
    if (n > max_coupled_dimension)
      throw bad_input(
          fmt::format("the finite part has {} unknowns that depend on each other: expected at most {}", n,
                      max_coupled_dimension));
    Matrix K(n, n);
    for (std::ptrdiff_t i = 0; i < n; ++i)
      for (std::ptrdiff_t j = 0; j <= i; ++j) {
        const Element &a = elements[static_cast<std::size_t>(i)], &b = elements[static_cast<std::size_t>(j)];
        const double product = left_product(a.other, b.other) - left_product(a.other, b.first) -
                               left_product(a.first, b.other) + left_product(a.first, b.first);
        K(i, j) = K(j, i) = product * right_product(a.looking, b.looking);
      }
    return K;
  }

  double loss_at(const Vector& eta) const {
    const Vector delta = cholesky_.L * eta;
    double loss = 0;
    std::ptrdiff_t first = 0;
    for (const RestrictedComponent& c : components_) {
      loss += restricted_loss(c, delta.segment(first, c.dimension()));
      first += c.dimension();
    }
    return loss;
  }

  // At eta_, in the orthonormal basis.
  struct SecondOrder {
    double loss = 0;
    Vector gradient;
    Matrix hessian;
  };
  SecondOrder second_order() const {
    const Matrix& L = cholesky_.L;
    const Vector delta = L * eta_;
    SecondOrder result{0, Vector::Zero(L.cols()), Matrix::Zero(L.cols(), L.cols())};
    std::ptrdiff_t first = 0;
    for (const RestrictedComponent& c : components_) {
      const std::ptrdiff_t n = c.dimension();
      const RestrictedDerivatives d = derivatives(c, delta.segment(first, n));
      result.loss += d.loss;
      result.gradient.noalias() += L.middleRows(first, n).transpose() * d.gradient;
      const Matrix half = d.hessian * L.middleRows(first, n);
      result.hessian.noalias() += L.middleRows(first, n).transpose() * half;
      first += n;
    }
    return result;
  }

  struct Step {
    Vector step;
    bool shifted = false;
  };
  static Step newton_step(const SecondOrder& here) {
    const double size = here.hessian.diagonal().cwiseAbs().maxCoeff();
    double shift = 0;
    for (;;) {
      Matrix shifted = here.hessian;
      shifted.diagonal().array() += shift;
      const Eigen::LLT<Matrix> factor(shifted);
      if (factor.info() == Eigen::Success) {
        const Vector step = -factor.solve(here.gradient);
        if (step.allFinite()) return {step, shift > 0};
      }
      if (shift > 1e3 * size || size == 0) return {-here.gradient, true};
      shift = shift == 0 ? 1e-10 * size : 10 * shift;
    }
  }

  // False where no step along it makes the loss smaller, up to rounding.
  bool line_search(const Vector& step, const SecondOrder& here) {
    const double slope = step.dot(here.gradient), rounding = 1e-15 * (weight_ + std::fabs(here.loss));
    double length = 1;
    for (int halvings = 0; halvings < 60; ++halvings, length /= 2) {
      const Vector next = eta_ + length * step;
      if (loss_at(next) <= here.loss + 1e-4 * length * slope + rounding) {
        eta_ = next;
        return true;
      }
    }
    return false;
  }

  void add_weights(Matrix& W) const {
    const Vector theta = cholesky_.coefficients(eta_);
    Vector by_element = Vector::Zero(cholesky_.L.rows());
    for (std::size_t i = 0; i < cholesky_.pivots.size(); ++i)
      by_element[cholesky_.pivots[i]] = theta[static_cast<std::ptrdiff_t>(i)];
    const auto E = vectors();
    std::ptrdiff_t element = 0;
    for (const RestrictedComponent& c : components_) {
      Vector column = Vector::Zero(W.rows());
      const auto add = [&](Token token, double value) {
        if (left_ == LeftVectors::units)
          column[token] += value;
        else
          column += value * E.row(token).transpose();
      };
      for (std::size_t i = 1; i < c.tokens.size(); ++i) {
        const double value = by_element[element++];
        add(c.tokens[i], value);
        add(c.tokens[0], -value);
      }
      W.noalias() += column * E.row(c.looking);
    }
  }

  const Embedding& embedding_;
  LeftVectors left_;
  std::span<const RestrictedComponent> components_;
  PivotedCholesky cholesky_;
  double weight_ = 0;
  Vector eta_;
};

}  // namespace

FinitePart minimize_restricted(const Embedding& embedding, LeftVectors left,
                               const std::vector<RestrictedComponent>& components) {
  FinitePart result;
  const std::ptrdiff_t rows = left == LeftVectors::units ? embedding.vocabulary_size() : embedding.dim();
  result.W = Matrix::Zero(rows, embedding.dim());
  result.converged = true;
  if (components.empty()) return result;
  const std::span<const RestrictedComponent> all(components);
  if (embedding.is_one_hot() || embedding.orthonormality_error() <= orthonormality_tolerance)
    for (std::size_t i = 0; i < all.size(); ++i) Newton(embedding, left, all.subspan(i, 1)).run(result);
  else
    Newton(embedding, left, all).run(result);
  return result;
}

}  // namespace attmirror

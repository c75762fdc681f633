// The head h that turns the attended token u = X^T softmax(a) into a prediction:
//
//   LinearHead      h(u) = v^T u                     every paper; v is a parameter of the model
//   ReluHead        h(u) = 1^T ReLU(V^T u)           P3's nonlinear head, V fixed
//   QuadraticHead   h(u) = v^T u - lambda |u|^2      rewards a mixture of tokens: sparsemax attention
//   CustomHead      a class of yours
//
// With a nonlinear head, attention may keep several tokens; the weights then converge to a finite part plus a
// growing direction.
#pragma once

#include <attmirror/base/matrix.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace attmirror {

// `word` is what parse_head() reads; capitals are placeholders for a number.
struct LinearHead {
  static constexpr std::string_view word = "linear";
};

// P3's nonlinear head, 1^T ReLU(V^T u).
struct ReluHead {
  static constexpr std::string_view word = "relu";
  Matrix V{};  // (d, m); empty: the one in the dataset
};

// The head v^T u - lambda |u|^2, under which attention keeps a sparsemax of tokens.
struct QuadraticHead {
  static constexpr std::string_view word = "quadratic:LAMBDA";
  double lambda = 1;  // the larger, the more tokens are kept
};

// A head of your own. It is called from several threads at once.
class CustomHead {
 public:
  virtual ~CustomHead() = default;
  virtual std::string name() const = 0;  // runs record it

  // Returns h(u) and writes grad h(u) to `gradient`, which has as many entries as u.
  virtual double evaluate(std::span<const double> u, std::span<double> gradient) const = 0;
};

// Any head: one of those above, or your own.
using Head = std::variant<LinearHead, ReluHead, QuadraticHead, std::shared_ptr<const CustomHead>>;

// "linear", "relu", "quadratic:0.5", "custom:NAME"
std::string to_string(const Head& head);

// The words that parse_head() reads, in the order of `Head`: "linear", "relu", "quadratic:LAMBDA".
const std::vector<std::string_view>& head_names();

// "quadratic" alone has lambda = 1. Throws Error (bad input) for a text that is not one of head_names().
Head parse_head(std::string_view text);

// Whether the head has a decoder v.
bool uses_decoder(const Head& head);

// h(u). `v` matters only for the linear and the quadratic head; a ReluHead must have its V.
double head_value(const Head& head, const Vector& v, const Vector& u);

}  // namespace attmirror

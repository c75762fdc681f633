#include <attmirror/attention/head.hpp>
#include <attmirror/base/error.hpp>

#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

struct Name {
  std::string operator()(const LinearHead&) const { return "linear"; }
  std::string operator()(const ReluHead&) const { return "relu"; }
  std::string operator()(const QuadraticHead& head) const { return fmt::format("quadratic:{}", head.lambda); }
  std::string operator()(const std::shared_ptr<const CustomHead>& head) const {
    return "custom:" + head->name();
  }
};

struct Value {
  const Vector &v, &u;
  double operator()(const LinearHead&) const { return v.dot(u); }
  double operator()(const ReluHead& head) const { return (head.V.transpose() * u).cwiseMax(0.0).sum(); }
  double operator()(const QuadraticHead& head) const { return v.dot(u) - head.lambda * u.squaredNorm(); }
  double operator()(const std::shared_ptr<const CustomHead>& head) const {
    Vector gradient(u.size());
    return head->evaluate({u.data(), static_cast<std::size_t>(u.size())},
                          {gradient.data(), static_cast<std::size_t>(u.size())});
  }
};

}  // namespace

std::string to_string(const Head& head) { return std::visit(Name{}, head); }

Head parse_head(std::string_view text) {
  if (text == "linear") return LinearHead{};
  if (text == "relu") return ReluHead{};
  if (text == "quadratic") return QuadraticHead{};
  constexpr std::string_view quadratic = "quadratic:";
  if (text.starts_with(quadratic)) {
    const std::string_view number = text.substr(quadratic.size());
    QuadraticHead head;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), head.lambda);
    if (error == std::errc{} && end == number.data() + number.size() && std::isfinite(head.lambda))
      return head;
  }
  throw bad_input(fmt::format("head is \"{}\": expected linear, relu, quadratic or quadratic:LAMBDA", text));
}

bool uses_decoder(const Head& head) {
  return std::holds_alternative<LinearHead>(head) || std::holds_alternative<QuadraticHead>(head);
}

double head_value(const Head& head, const Vector& v, const Vector& u) {
  return std::visit(Value{v, u}, head);
}

}  // namespace attmirror

#include "attention/kinds.hpp"
#include "base/words.hpp"
#include <attmirror/attention/head.hpp>
#include <attmirror/base/error.hpp>

#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace attmirror {

namespace {

using OwnHead = std::shared_ptr<const CustomHead>;

struct FormOfHead {
  using Form = kernels::HeadForm;
  constexpr Form operator()(Kind<LinearHead>) const { return Form::linear; }
  constexpr Form operator()(Kind<ReluHead>) const { return Form::relu; }
  constexpr Form operator()(Kind<QuadraticHead>) const { return Form::quadratic; }
  constexpr Form operator()(Kind<OwnHead>) const { return Form::custom; }
};
static_assert(one_form_each<Head, FormOfHead, kernels::HeadForm::custom>());

// "quadratic" of "quadratic:LAMBDA"
constexpr std::string_view without_number(std::string_view word) { return word.substr(0, word.find(':')); }

struct NameOfHead {
  std::string operator()(const LinearHead&) const { return std::string(LinearHead::word); }
  std::string operator()(const ReluHead&) const { return std::string(ReluHead::word); }
  std::string operator()(const QuadraticHead& head) const {
    return fmt::format("{}:{}", without_number(QuadraticHead::word), head.lambda);
  }
  std::string operator()(const OwnHead& head) const { return "custom:" + head->name(); }
};

// The head of each kind that a text names, or nothing.
struct ReadHead {
  std::string_view text;

  std::optional<Head> operator()(Kind<LinearHead>) const { return if_named(LinearHead{}); }
  std::optional<Head> operator()(Kind<ReluHead>) const { return if_named(ReluHead{}); }
  std::optional<Head> operator()(Kind<QuadraticHead>) const {
    const std::string_view name = without_number(QuadraticHead::word);
    QuadraticHead head;
    if (text == name) return head;
    if (without_number(text) != name) return {};
    const std::string_view number = text.substr(name.size() + 1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), head.lambda);
    const bool is_number = error == std::errc{} && end == number.data() + number.size();
    return is_number && std::isfinite(head.lambda) ? std::optional<Head>(head) : std::nullopt;
  }
  std::optional<Head> operator()(Kind<OwnHead>) const { return {}; }

 private:
  template <class T>
  std::optional<Head> if_named(T head) const {
    return text == T::word ? std::optional<Head>(std::move(head)) : std::nullopt;
  }
};

struct UsesDecoder {
  bool operator()(const LinearHead&) const { return true; }
  bool operator()(const ReluHead&) const { return false; }
  bool operator()(const QuadraticHead&) const { return true; }
  bool operator()(const OwnHead&) const { return false; }
};

struct HeadValue {
  const Vector &v, &u;
  double operator()(const LinearHead&) const { return v.dot(u); }
  double operator()(const ReluHead& head) const { return (head.V.transpose() * u).cwiseMax(0.0).sum(); }
  double operator()(const QuadraticHead& head) const { return v.dot(u) - head.lambda * u.squaredNorm(); }
  double operator()(const OwnHead& head) const {
    Vector gradient(u.size());
    return head->evaluate({u.data(), static_cast<std::size_t>(u.size())},
                          {gradient.data(), static_cast<std::size_t>(u.size())});
  }
};

}  // namespace

kernels::HeadForm head_form(const Head& head) { return form_in(FormOfHead{}, head); }

std::string to_string(const Head& head) { return std::visit(NameOfHead{}, head); }

const std::vector<std::string_view>& head_names() {
  static const std::vector<std::string_view> names = words_of<Head>();
  return names;
}

Head parse_head(std::string_view text) {
  std::optional<Head> head;
  for_each_kind(Kind<Head>{}, [&](auto kind) {
    if (!head) head = ReadHead{text}(kind);
  });
  if (head) return *std::move(head);
  throw bad_value("head", text, expected_choice(text, head_names()));
}

bool uses_decoder(const Head& head) { return std::visit(UsesDecoder{}, head); }

double head_value(const Head& head, const Vector& v, const Vector& u) {
  return std::visit(HeadValue{v, u}, head);
}

}  // namespace attmirror

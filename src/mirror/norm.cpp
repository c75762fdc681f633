#include "base/numbers.hpp"
#include "base/words.hpp"
#include "mirror/entries.hpp"
#include "mirror/spectral.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/mirror/lp_map.hpp>
#include <attmirror/mirror/norm.hpp>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr std::string_view schatten_prefix = "schatten:";

void validate_exponent(double p) {
  if (!(p >= 1)) throw bad_input(fmt::format("p is {}: expected a number from 1 to infinity", p));
}

// A number >= 1, infinity included, that is all of `text`.
std::optional<double> parse_exponent(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 1)) return std::nullopt;
  return value;
}

double entrywise_norm(ConstMatrixView w, double p) {
  if (p == 1) return sum_abs(w);
  if (std::isinf(p)) return max_abs(w);
  return LpMap(p).norm(w);
}

double schatten_norm(ConstMatrixView w, double p) {
  if (const double largest = max_abs(w); largest == 0 || !std::isfinite(largest)) return largest;
  Svd svd(w.rows, w.cols);
  svd.compute_values(w);
  return entrywise_norm(svd.values(), p);
}

}  // namespace

Norm Norm::l(double p) {
  validate_exponent(p);
  return Norm(Kind::entrywise, p);
}

Norm Norm::schatten(double p) {
  validate_exponent(p);
  return Norm(p == 2 ? Kind::entrywise : Kind::schatten, p);
}

Norm Norm::spectral() { return schatten(infinity); }

Norm Norm::dual() const {
  if (p_ == 1) return Norm(kind_, infinity);
  if (std::isinf(p_)) return Norm(kind_, 1);
  return Norm(kind_, LpMap(p_).q());  // which knows that 1.1 means 11/10
}

Norm Norm::with_p(double p) const {
  switch (kind_) {
    case Kind::entrywise:
      return l(p);
    case Kind::schatten:
      break;
  }
  return schatten(p);
}

Norm parse_norm(std::string_view text) {
  if (text == "frobenius") return Norm::frobenius();
  if (text == "nuclear") return Norm::nuclear();
  if (text == "spectral") return Norm::spectral();
  const bool schatten = text.starts_with(schatten_prefix);
  const auto p = parse_exponent(schatten ? text.substr(schatten_prefix.size()) : text);
  if (!p)
    throw bad_value("norm", text,
                    "a number from 1 to inf, frobenius, nuclear, spectral or schatten:P" +
                        did_you_mean(text.substr(0, text.find(':')),
                                     {"inf", "frobenius", "nuclear", "spectral", "schatten"}));
  return schatten ? Norm::schatten(*p) : Norm::l(*p);
}

std::string to_string(const Norm& norm) {
  switch (norm.kind()) {
    case Norm::Kind::entrywise:
      return fmt::format("{}", norm.p());
    case Norm::Kind::schatten:
      break;
  }
  if (norm == Norm::nuclear()) return "nuclear";
  if (norm == Norm::spectral()) return "spectral";
  return fmt::format("{}{}", schatten_prefix, norm.p());
}

double norm(ConstMatrixView w, const Norm& norm) {
  if (w.rows == 0 || w.cols == 0) return 0;
  switch (norm.kind()) {
    case Norm::Kind::entrywise:
      return entrywise_norm(w, norm.p());
    case Norm::Kind::schatten:
      break;
  }
  return schatten_norm(w, norm.p());
}

double norm(const Matrix& w, const Norm& norm) { return attmirror::norm(PaddedMatrix(w).view(), norm); }

}  // namespace attmirror

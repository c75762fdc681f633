#include "report/axis_scale.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>

namespace attmirror {

namespace {

// Beyond this the length of an axis could overflow; nobody can tell such points apart anyway.
constexpr double far_out = 1e300;

// 1, 2 or 5 times a power of ten.
double nice_step(double length, int wanted) {
  const double rough = length / wanted;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double digit = rough / power;
  return power * (digit <= 1.5 ? 1 : digit <= 3.5 ? 2 : digit <= 7.5 ? 5 : 10);
}

std::string superscript(int number) {
  constexpr std::array<std::string_view, 10> digits{"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text;
  for (const char c : std::to_string(number))
    text += c == '-' ? std::string_view("⁻") : digits[static_cast<std::size_t>(c - '0')];
  return text;
}

std::string with_thousands(const std::string& digits) {
  const std::size_t first = digits.front() == '-' ? 1 : 0;
  const std::size_t point = std::min(digits.find('.'), digits.size());
  if (point - first <= 4) return digits;  // 2000 reads well as it is
  std::string grouped = digits.substr(0, first);
  for (std::size_t i = first; i < point; ++i) {
    if (i > first && (point - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped + digits.substr(point);
}

// `least` is the smallest distance.
std::vector<Tick> linear_ticks(double low, double high, int wanted, double least) {
  const double step = std::max(nice_step(high - low, wanted), least);
  std::vector<Tick> ticks;
  const double first = std::ceil(low / step - 1e-9);
  for (int i = 0; i < 50; ++i) {
    const double value = (first + i) * step;
    if (value > high + 1e-9 * step) break;
    ticks.push_back({value, tick_label(value, step, std::max(std::abs(low), std::abs(high)))});
  }
  return ticks;
}

// `low` and `high` are logarithms to base 10.
std::vector<Tick> log_ticks(double low, double high, int wanted, double least) {
  const double decades = high - low;
  if (decades < 0.7) {  // hardly a power of two: the numbers of a linear axis, where they belong
    std::vector<Tick> ticks = linear_ticks(std::pow(10.0, low), std::pow(10.0, high), wanted, least);
    std::erase_if(ticks, [](const Tick& tick) { return !(tick.value > 0); });
    if (ticks.size() > 1) return ticks;
  }
  const auto first = static_cast<int>(std::floor(low + 1e-9)),
             last = static_cast<int>(std::ceil(high - 1e-9));
  const int every = std::max(1, static_cast<int>(std::ceil(decades / (wanted + 1))));
  std::vector<Tick> ticks;
  for (int exponent = first; exponent <= last; ++exponent) {
    const bool written = ((exponent % every) + every) % every == 0;
    for (int digit = 1; digit <= 9; ++digit) {
      // From the parts of the number, so that 1e-3 is the tick 1e-3 and not its neighbor.
      const double value = std::strtod(fmt::format("{}e{}", digit, exponent).c_str(), nullptr);
      const double at = exponent + std::log10(digit);
      if (!(value > 0) || !std::isfinite(value) || at < low - 1e-9 || at > high + 1e-9) continue;
      if (digit == 1 && written)
        ticks.push_back({value, power_label(exponent)});
      else if (digit == 1)
        ticks.push_back({value, ""});
      else if (decades < 1.6 && (digit == 2 || digit == 5))
        ticks.push_back({value, exponent >= -4 && exponent <= 5
                                    ? tick_label(value, std::pow(10.0, exponent), value)
                                    : fmt::format("{}×{}", digit, power_label(exponent))});
      else if (every == 1 && decades <= 8)
        ticks.push_back({value, ""});
    }
  }
  return ticks;
}

}  // namespace

std::string power_label(int exponent) { return "10" + superscript(exponent); }

std::string tick_label(double value, double step, double largest) {
  if (value == 0 || std::abs(value) < 1e-6 * step) return "0";
  const auto digits_of_step = static_cast<int>(std::floor(std::log10(step) + 1e-9));
  const auto magnitude = static_cast<int>(std::floor(std::log10(std::max(std::abs(value), largest)) + 1e-9));
  if (magnitude < 6 && digits_of_step >= -5)
    return with_thousands(fmt::format("{:.{}f}", value, std::max(0, -digits_of_step)));
  // One power of ten for all numbers of an axis. In two halves, because 10^-magnitude alone may overflow.
  const double scaled =
      value * std::pow(10.0, -(magnitude / 2)) * std::pow(10.0, -(magnitude - magnitude / 2));
  return fmt::format("{:.{}f}×{}", scaled, std::clamp(magnitude - digits_of_step, 0, 15),
                     power_label(magnitude));
}

AxisScale::AxisScale(const Axis& axis, const std::vector<double>& values)
    : log_(axis.scale == Axis::Scale::log), whole_(axis.whole) {
  const auto place = [this](double value) {
    return log_ ? std::log10(value) : std::clamp(value, -far_out, far_out);
  };
  if (axis.range) {
    low_ = place(axis.range->first);
    high_ = place(axis.range->second);
  } else {
    low_ = std::numeric_limits<double>::infinity();
    high_ = -low_;
    for (const double value : values) {
      if (!shows(value)) continue;
      low_ = std::min(low_, place(value));
      high_ = std::max(high_, place(value));
    }
    if (low_ > high_) {
      low_ = 0;
      high_ = 1;
    }
  }
  // All equal, or equal up to rounding: room about the one number there is.
  const double size = std::max(std::abs(low_), std::abs(high_));
  if (!(high_ - low_ > 1e-12 * size) || !(high_ - low_ > 1e-300)) {
    const double room = log_ ? 0.5 : size > 1e-290 ? size / 2 : 1;
    low_ -= room;
    high_ += room;
  } else if (!axis.range) {
    const double room = 0.03 * (high_ - low_);
    low_ -= room;
    high_ += room;
  }
}

bool AxisScale::shows(double value) const { return std::isfinite(value) && (!log_ || value > 0); }

double AxisScale::position(double value) const {
  return ((log_ ? std::log10(value) : value) - low_) / (high_ - low_);
}

void AxisScale::stretch(double factor) {
  const double middle = low_ + (high_ - low_) / 2;
  const double half = (high_ - low_) / 2 * std::min(factor, far_out / (high_ - low_));
  low_ = middle - half;
  high_ = middle + half;
}

std::vector<Tick> AxisScale::ticks(int wanted) const {
  const auto at_least = [&](double least) {
    return log_ ? log_ticks(low_, high_, wanted, least) : linear_ticks(low_, high_, wanted, least);
  };
  if (whole_) {
    std::vector<Tick> ticks = at_least(1);
    std::erase_if(ticks, [](const Tick& tick) { return tick.value != std::round(tick.value); });
    if (std::ranges::any_of(ticks, [](const Tick& tick) { return !tick.label.empty(); })) return ticks;
  }
  return at_least(0);
}

}  // namespace attmirror

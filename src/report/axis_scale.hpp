// Where a number lies on an axis of a drawing, and which numbers are written along it. Internal.
//
// Ticks lie at 1, 2 or 5 times a power of ten, the distance that gives about as many as asked for. A logarithmic
// axis has them at powers of ten, every k-th where there are many, and at 1, 2, 5 times them where there are less
// than two. Where an axis counts, they are whole numbers, unless it shows less than one of them.
#pragma once

#include <attmirror/base/figure.hpp>

#include <string>
#include <vector>

namespace attmirror {

struct Tick {
  double value;
  std::string label;  // empty: a small tick without a number
};

class AxisScale {
 public:
  // The smallest and largest number of those that the axis can show, a little room about them; the axis's own range
  // where it has one. Without a number to show: 0 to 1, or 1 to 10.
  AxisScale(const Axis& axis, const std::vector<double>& values);

  // Finite, and positive on a logarithmic axis.
  bool shows(double value) const;
  // 0 at the lower end, 1 at the upper.
  double position(double value) const;
  // In units of the axis, decades on a logarithmic one.
  double length() const { return high_ - low_; }
  // Longer by this factor about its middle.
  void stretch(double factor);

  double low() const { return low_; }  // of the axis: of the logarithms on a logarithmic one
  double high() const { return high_; }

  std::vector<Tick> ticks(int wanted) const;

 private:
  bool log_ = false, whole_ = false;
  double low_ = 0, high_ = 1;
};

// "20,000", "0.05", "1.5×10⁻⁷": `step` is the distance to the next number of the axis, which sets the digits,
// `largest` the largest of them, which sets the power of ten for all.
std::string tick_label(double value, double step, double largest);
// "10⁻³".
std::string power_label(int exponent);

}  // namespace attmirror

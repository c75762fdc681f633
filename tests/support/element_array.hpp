// Arrays of numbers in any format of the fused step, seen as doubles; at any alignment.
#pragma once

#include "base/half_floats.hpp"
#include <attmirror/mirror/fused_step.hpp>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace attmirror::test {

inline const std::vector<StepElement> all_elements{StepElement::float32, StepElement::bfloat16,
                                                   StepElement::float16, StepElement::float64};

// Normal numbers from a seed.
inline std::vector<double> gaussian(std::size_t size, double scale, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> draw(0, scale);
  std::vector<double> result(size);
  for (double& x : result) x = draw(engine);
  return result;
}

class ElementArray {
 public:
  // `offset` bytes after an aligned address, with a mark behind the last number.
  ElementArray(StepElement element, const std::vector<double>& values, std::size_t offset = 0)
      : element_(element), offset_(offset), size_(values.size()) {
    bytes_.resize(offset + size_ * size_of(element) + mark_bytes, mark);
    for (std::size_t i = 0; i < size_; ++i) set(i, values[i]);
  }

  void* data() { return bytes_.data() + offset_; }
  std::ptrdiff_t size() const { return static_cast<std::ptrdiff_t>(size_); }
  bool is_mark_intact() const {
    for (std::size_t i = 0; i < mark_bytes; ++i)
      if (bytes_[bytes_.size() - 1 - i] != mark) return false;
    for (std::size_t i = 0; i < offset_; ++i)
      if (bytes_[i] != mark) return false;
    return true;
  }
  // The same bits?
  bool operator==(const ElementArray& other) const {
    return size_ == other.size_ && std::memcmp(bytes_.data() + offset_, other.bytes_.data() + other.offset_,
                                               size_ * size_of(element_)) == 0;
  }
  bool same_bits(std::size_t i, const ElementArray& other) const {
    const std::size_t bytes = size_of(element_);
    return std::memcmp(bytes_.data() + offset_ + i * bytes, other.bytes_.data() + other.offset_ + i * bytes,
                       bytes) == 0;
  }

  double operator[](std::size_t i) const {
    switch (element_) {
      case StepElement::float32:
        return at<float>(i);
      case StepElement::bfloat16:
        return to_float(at<BFloat16>(i));
      case StepElement::float16:
        return to_float(at<Half>(i));
      case StepElement::float64:
        break;
    }
    return at<double>(i);
  }

 private:
  static constexpr unsigned char mark = 0xa5;
  static constexpr std::size_t mark_bytes = 64;

  void set(std::size_t i, double x) {
    switch (element_) {
      case StepElement::float32:
        return put(i, static_cast<float>(x));
      case StepElement::bfloat16:
        return put(i, to_bfloat16(static_cast<float>(x)));
      case StepElement::float16:
        return put(i, to_half(static_cast<float>(x)));
      case StepElement::float64:
        return put(i, x);
    }
  }
  template <class T>
  void put(std::size_t i, T x) {
    std::memcpy(bytes_.data() + offset_ + i * sizeof x, &x, sizeof x);
  }
  template <class T>
  T at(std::size_t i) const {
    T x;
    std::memcpy(&x, bytes_.data() + offset_ + i * sizeof x, sizeof x);
    return x;
  }

  StepElement element_;
  std::size_t offset_, size_;
  std::vector<unsigned char> bytes_;
};

inline StepElement state_element(StepElement element) {
  return element == StepElement::float64 ? StepElement::float64 : StepElement::float32;
}

}  // namespace attmirror::test

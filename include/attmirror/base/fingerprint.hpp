// A 64-bit fingerprint of numbers: distinguishes datasets and weights, and is the same on every machine.
//
// Multiply-rotate rounds over 64-bit words and a final mixing, with the constants of xxHash64. It guards
// against mix-ups, not against an adversary.
#pragma once

#include <attmirror/base/matrix.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace attmirror {

// A number that tells data apart: equal for equal bits, different for almost all others.
class Fingerprint {
 public:
  void add(std::uint64_t word) {
    state_ ^= std::rotl(word * 0xC2B2AE3D27D4EB4FULL, 31) * 0x9E3779B185EBCA87ULL;
    state_ = std::rotl(state_, 27) * 0x9E3779B185EBCA87ULL + 0x85EBCA77C2B2AE63ULL;
  }
  void add(std::ptrdiff_t number) { add(static_cast<std::uint64_t>(number)); }
  void add(double value) { add(std::bit_cast<std::uint64_t>(value + 0.0)); }  // -0.0 counts as 0.0
  void add(std::string_view text) {
    add(static_cast<std::ptrdiff_t>(text.size()));
    for (const char c : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
  }
  // Sizes and entries; works for Matrix, Vector and the views' eigen().
  template <class Derived>
  void add(const Eigen::DenseBase<Derived>& values) {
    add(static_cast<std::ptrdiff_t>(values.rows()));
    add(static_cast<std::ptrdiff_t>(values.cols()));
    for (Eigen::Index i = 0; i < values.rows(); ++i)
      for (Eigen::Index j = 0; j < values.cols(); ++j) add(static_cast<double>(values(i, j)));
  }

  std::uint64_t value() const {
    std::uint64_t mixed = (state_ ^ (state_ >> 33)) * 0xC2B2AE3D27D4EB4FULL;
    mixed = (mixed ^ (mixed >> 29)) * 0x165667B19E3779F9ULL;
    return mixed ^ (mixed >> 32);
  }

 private:
  std::uint64_t state_ = 0x27D4EB2F165667C5ULL;
};

}  // namespace attmirror

// Memory for the large matrices of one call, kept by the thread for the next: otherwise the system hands out their
// megabytes as fresh pages each time, and each page is a fault and a clearing when it is first touched.
#pragma once

#include <attmirror/base/aligned.hpp>

#include <array>
#include <cstddef>
#include <vector>

namespace attmirror {

// Memory whose numbers start as anything: a matrix of which little is used costs nothing until then.
template <class T>
struct UnwrittenAllocator : CacheLineAllocator<T> {
  using value_type = T;
  UnwrittenAllocator() = default;
  template <class U>
  UnwrittenAllocator(const UnwrittenAllocator<U>&) noexcept {}
  void construct(T*) noexcept {}
};
template <class T>
using UnwrittenNumbers = std::vector<T, UnwrittenAllocator<T>>;

// `size` numbers that start as anything.
class KeptNumbers {
 public:
  explicit KeptNumbers(std::size_t size) {
    for (Numbers& kept : store())
      if (numbers_.empty() && kept.size() >= size) numbers_.swap(kept);
    if (numbers_.size() < size) numbers_ = Numbers(size);
  }
  ~KeptNumbers() {
    if (numbers_.size() > most_kept) return;
    for (Numbers& kept : store())
      if (kept.size() < numbers_.size()) numbers_.swap(kept);
  }
  KeptNumbers(const KeptNumbers&) = delete;
  KeptNumbers& operator=(const KeptNumbers&) = delete;

  double* data() { return numbers_.data(); }

 private:
  using Numbers = UnwrittenNumbers<double>;
  static constexpr std::size_t most_kept = std::size_t{1} << 21;  // 16 MiB, a matrix of 1400 rows

  // Two: a matrix and its factor.
  static std::array<Numbers, 2>& store() {
    static thread_local std::array<Numbers, 2> kept;
    return kept;
  }

  Numbers numbers_;
};

}  // namespace attmirror

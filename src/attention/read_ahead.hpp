// Keeps the memory busy while the processor computes, for the kernels that are compiled once per instruction set.
//
// A gradient on data larger than the caches reads its tokens at the speed of the memory, and the hardware fetches
// ahead of the reader. During the matrix products between two batches of queries nothing is read and the memory would
// idle. But what comes next is known. So the products call step() as they go, which asks for the next two cache lines
// of tokens, up to `reach` bytes: about as fast as the memory delivers, beside a step of a product. These lines wait
// in the second-level cache. (During the passes over the tokens themselves such requests do more harm than good: they
// compete with the loads for the same few slots.)
#pragma once

#include "base/simd.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

class ReadAhead {
 public:
  // A third of a second-level cache of 1 MB; parameters, their gradient and the scratch memory want to stay there
  // too. Where the cache is smaller, the oldest of these lines fall back to the third level.
  static constexpr std::ptrdiff_t reach = 384 * 1024;
  static constexpr std::ptrdiff_t line_bytes = 64;

  // What will be read: from the first byte to one past the last.
  ReadAhead(const void* begin, const void* end)
      : next_(static_cast<const char*>(begin)), end_(static_cast<const char*>(end)) {
    reading_ends_at(begin);
  }

  // All before `place` has been read.
  void reading_ends_at(const void* place) {
    const char* here = static_cast<const char*>(place);
    if (next_ < here) next_ = here;
    limit_ = end_ - here > reach ? here + reach : end_;
  }

  [[gnu::always_inline]] void step() {
    if (next_ >= limit_) return;
    __builtin_prefetch(next_, 0, 2);
    __builtin_prefetch(next_ + line_bytes, 0, 2);
    next_ += 2 * line_bytes;
  }

 private:
  const char *next_, *end_, *limit_ = nullptr;
};

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA

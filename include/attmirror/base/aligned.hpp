// Memory suited to vector instructions: rows padded to whole vectors, buffers on cache-line boundaries.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace attmirror {

// Asks the system for large pages for an array of many megabytes, before it is first written. A processor
// prefetches within a page, and small pages make it stop every 4 kilobytes to look up the next. Does nothing
// for small arrays, or where the system has no large pages.
void prefer_large_pages(void* begin, std::size_t bytes) noexcept;

// An allocator whose memory begins at a cache line, for std::vector.
template <class T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t alignment{64};

  CacheLineAllocator() = default;
  template <class U>
  CacheLineAllocator(const CacheLineAllocator<U>&) noexcept {}

  T* allocate(std::size_t count) {
    void* memory = ::operator new(count * sizeof(T), alignment);
    prefer_large_pages(memory, count * sizeof(T));
    return static_cast<T*>(memory);
  }
  void deallocate(T* pointer, std::size_t) noexcept { ::operator delete(pointer, alignment); }
  friend bool operator==(const CacheLineAllocator&, const CacheLineAllocator&) noexcept { return true; }
};

// A growable array that starts on a cache line.
using AlignedVector = std::vector<double, CacheLineAllocator<double>>;

// The stride of a row of `cols` doubles.
constexpr std::ptrdiff_t padded(std::ptrdiff_t cols) { return (cols + 3) / 4 * 4; }

}  // namespace attmirror

// Counts allocations, at malloc, because Eigen and aligned operator new end there both. It replaces the program's malloc,
// so one source of a program includes it. Sanitizers have a malloc of their own: under them there is nothing here, and
// ATTMIRROR_COUNTS_ALLOCATIONS is not defined.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdlib>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ATTMIRROR_COUNTS_ALLOCATIONS 1

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

namespace attmirror::test {
inline std::atomic<long> allocations{0};  // so far, in all threads
}

extern "C" {
void* malloc(std::size_t size) noexcept {
  attmirror::test::allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  attmirror::test::allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) noexcept {
  attmirror::test::allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(old, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  attmirror::test::allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** result, std::size_t alignment, std::size_t size) noexcept {
  attmirror::test::allocations.fetch_add(1, std::memory_order_relaxed);
  *result = __libc_memalign(alignment, size);
  return *result == nullptr ? ENOMEM : 0;
}
}

#endif

#include "support/count_allocations.hpp"

#include <cerrno>
#include <cstdlib>

#if defined(ATTMIRROR_COUNTS_ALLOCATIONS)

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

namespace attmirror::test {
std::atomic<long> allocations{0};
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

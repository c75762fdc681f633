#include <attmirror/base/aligned.hpp>

#include <cstdint>

#include <sys/mman.h>

namespace attmirror {

namespace {

constexpr std::uintptr_t large_page = 2 * 1024 * 1024;  // of x86-64
// Smaller arrays have too few whole large pages in them to gain, and may share theirs with others.
constexpr std::size_t least_bytes = 8 * large_page;

}  // namespace

void prefer_large_pages(void* begin, std::size_t bytes) noexcept {
  if (bytes < least_bytes) return;
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (address + large_page - 1) / large_page * large_page;
  const std::uintptr_t last = (address + bytes) / large_page * large_page;
  // It is advice: a system that refuses it (EINVAL without large pages) leaves all as it was.
  (void)madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

}  // namespace attmirror

// Makes one allocation of a program fail: preloaded, by tests/faults/faults.py.
//
//   LD_PRELOAD=... ATTMIRROR_FAIL_ALLOCATION=1234 attmirror train ...    the 1234th returns a null pointer
//   LD_PRELOAD=... ATTMIRROR_ALLOCATIONS_FILE=count attmirror train ...  how many there are goes to the file `count`
//
// Allocations are counted from main() to the end of main(): what the loader does before and after is not attmirror's.
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

namespace {

std::atomic<bool> inside_main{false};
std::atomic<long> allocation_count{0};
long failing_allocation = 0;
int (*program_main)(int, char**, char**) = nullptr;

bool fails_now() {
  if (!inside_main.load(std::memory_order_relaxed)) return false;
  if (allocation_count.fetch_add(1, std::memory_order_relaxed) + 1 != failing_allocation) return false;
  errno = ENOMEM;
  return true;
}

// Without stdio, which allocates.
void write_count(const char* path) {
  char text[32];
  const int length = std::snprintf(text, sizeof text, "%ld\n", allocation_count.load());
  const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || ::write(file, text, static_cast<std::size_t>(length)) != length) ::_exit(99);
  ::close(file);
}

int counted_main(int argc, char** argv, char** environment) {
  if (const char* number = std::getenv("ATTMIRROR_FAIL_ALLOCATION")) failing_allocation = std::atol(number);
  inside_main = true;
  const int status = program_main(argc, argv, environment);
  inside_main = false;
  if (const char* path = std::getenv("ATTMIRROR_ALLOCATIONS_FILE")) write_count(path);
  return status;
}

}  // namespace

extern "C" {

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*loader_fini)(), void* stack_end) {
  using Start = int (*)(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
  const auto start = reinterpret_cast<Start>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  program_main = main;
  return start(counted_main, argc, argv, init, fini, loader_fini, stack_end);
}

void* malloc(std::size_t size) noexcept { return fails_now() ? nullptr : __libc_malloc(size); }
void* calloc(std::size_t count, std::size_t size) noexcept {
  return fails_now() ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) noexcept {
  return fails_now() ? nullptr : __libc_realloc(old, size);
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  return fails_now() ? nullptr : __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept { return memalign(alignment, size); }
int posix_memalign(void** result, std::size_t alignment, std::size_t size) noexcept {
  void* const made = memalign(alignment, size);
  if (made == nullptr) return ENOMEM;
  *result = made;
  return 0;
}

}  // extern "C"

// Threads that share the chunks of a loop, with the same bits for any number of threads.
//
// Floating-point addition is not associative, so a sum that is divided by the number of threads changes with
// that number. Here the caller divides the work into chunks by its size alone (fixed_chunks), each chunk
// writes its own result, and the caller adds these in chunk order. Then it does not matter which thread
// computes which chunk:
//
//   const Chunking parts = fixed_chunks(n, 1024, 64);
//   pool.run(parts.count, [&](std::ptrdiff_t c) { partial[c] = sum(x, parts.begin(c), parts.end(c)); });
//   double total = 0;
//   for (std::ptrdiff_t c = 0; c < parts.count; ++c) total += partial[c];
//
// A training step of a small model takes microseconds, so run() must too: it allocates nothing, takes no
// lock, and idle workers spin for a moment before they sleep.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace attmirror {

// A division of 0..total into `count` ranges of `size` each, the last one possibly shorter.
struct Chunking {
  std::ptrdiff_t total = 0, count = 0, size = 0;
  std::ptrdiff_t begin(std::ptrdiff_t chunk) const { return chunk * size; }
  std::ptrdiff_t end(std::ptrdiff_t chunk) const { return chunk + 1 < count ? (chunk + 1) * size : total; }
};

// At most `max_chunks` chunks of a size that is a multiple of `grain`, the least work worth handing to a
// thread. Depends on its three arguments only, never on the number of threads. Throws Error (bad input)
// unless total >= 0, grain >= 1 and max_chunks >= 1.
Chunking fixed_chunks(std::ptrdiff_t total, std::ptrdiff_t grain, std::ptrdiff_t max_chunks);

// Threads that wait for work in fixed chunks, so that results do not depend on how many there are.
class ThreadPool {
 public:
  static constexpr int max_threads = 1024;

  // The calling thread works too, so `threads` - 1 are started: none for 1, and then run() is a plain loop. 0
  // means as many as the machine runs at once.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls f(chunk) once for each chunk = 0..chunks-1 and returns when all calls have returned. If calls
  // throw, the other chunks still run, and the exception of the lowest chunk is rethrown here. If the pool is
  // busy (a run() within a run(), or from another thread), the call does not wait but runs inline.
  template <class F>
  void run(std::ptrdiff_t chunks, F&& f) {
    using Function = std::remove_reference_t<F>;
    run_task(chunks, Task{[](const void* context, std::ptrdiff_t chunk) {
                            (*static_cast<Function*>(const_cast<void*>(context)))(chunk);
                          },
                          std::addressof(f)});
  }

 private:
  // A reference to a callable: two pointers, and no copy on the heap as std::function would make.
  struct Task {
    void (*call)(const void* context, std::ptrdiff_t chunk);
    const void* context;
  };
  struct Failure {
    std::ptrdiff_t chunk = 0;
    std::exception_ptr exception;
    void keep_first(std::ptrdiff_t failed_chunk);
    void rethrow();
  };

  void run_task(std::ptrdiff_t chunks, Task task);
  static void run_inline(std::ptrdiff_t chunks, Task task);
  void serve();
  void work_off(std::uint64_t ticket);
  void shut_down();

  // Who may take which chunk is decided by one word: the number of the run in the upper half, the chunks not
  // yet taken in the lower. A thread takes a chunk by compare-and-swap, so one that wakes up late, during
  // another run or after all, fails to swap and has touched nothing. The task is read before the swap and
  // counts only if it succeeds: while a chunk of a run is not taken, that run cannot end and its task cannot
  // be replaced.
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  std::atomic<void (*)(const void*, std::ptrdiff_t)> call_{nullptr};
  std::atomic<const void*> context_{nullptr};
  std::atomic<std::uint32_t> chunks_{0};

  alignas(64) std::atomic<std::uint32_t> done_{0};  // chunks of this run that have returned
  alignas(64) std::atomic<std::uint32_t> wake_{0};  // changes with each run; idle workers sleep on it
  std::atomic_flag busy_;                           // a run() is under way
  std::mutex failure_mutex_;
  Failure failure_;
  int spins_ = 0;
  std::atomic<bool> ends_ = false;  // tells the workers to finish
  std::vector<std::thread> workers_;
};

}  // namespace attmirror

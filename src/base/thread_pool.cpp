#include <attmirror/base/error.hpp>
#include <attmirror/base/thread_pool.hpp>

#include <algorithm>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace attmirror {
namespace {

// Long enough to bridge the serial part between two loops of a training step (tens of microseconds), short
// enough that an idle pool costs nothing that can be noticed.
constexpr int spins_before_sleep = 2000;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

constexpr std::uint64_t chunk_mask = std::numeric_limits<std::uint32_t>::max();

}  // namespace

Chunking fixed_chunks(std::ptrdiff_t total, std::ptrdiff_t grain, std::ptrdiff_t max_chunks) {
  if (total < 0) throw bad_input(fmt::format("total is {}: expected 0 or more", total));
  if (grain < 1) throw bad_input(fmt::format("grain is {}: expected 1 or more", grain));
  if (max_chunks < 1) throw bad_input(fmt::format("max_chunks is {}: expected 1 or more", max_chunks));
  if (total == 0) return {};
  // Rounded-up divisions, written so that they do not overflow.
  const auto divide_up = [](std::ptrdiff_t a, std::ptrdiff_t b) { return a / b + (a % b != 0); };
  const std::ptrdiff_t grains = divide_up(total, grain);
  const std::ptrdiff_t grains_per_chunk = divide_up(grains, max_chunks);
  const std::ptrdiff_t count = divide_up(grains, grains_per_chunk);
  // One chunk: `grain` may be far larger than `total`, and its multiples may overflow.
  return {total, count, count == 1 ? total : grains_per_chunk * grain};
}

ThreadPool::ThreadPool(int threads) {
  if (threads < 0 || threads > max_threads) {
    throw bad_input(fmt::format("threads is {}: expected 0 (one per core) to {}", threads, max_threads));
  }
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (threads == 0) threads = std::min(cores, max_threads);
  // With more threads than cores, one that spins keeps another from working.
  spins_ = threads <= cores ? spins_before_sleep : 0;
  workers_.reserve(static_cast<std::size_t>(threads - 1));
  try {
    for (int i = 1; i < threads; ++i) {
      workers_.emplace_back([this] { serve(); });
    }
  } catch (const std::system_error& error) {
    shut_down();
    throw environment_error(fmt::format("cannot start {} threads: {}", threads, error.what()));
  } catch (...) {  // out of memory
    shut_down();
    throw;
  }
}

ThreadPool::~ThreadPool() { shut_down(); }

void ThreadPool::shut_down() {
  ends_.store(true, std::memory_order_release);
  wake_.fetch_add(1, std::memory_order_release);
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void ThreadPool::Failure::keep_first(std::ptrdiff_t failed_chunk) {
  if (exception && chunk < failed_chunk) return;
  chunk = failed_chunk;
  exception = std::current_exception();
}

void ThreadPool::Failure::rethrow() {
  if (exception) std::rethrow_exception(std::exchange(exception, nullptr));
}

void ThreadPool::run_inline(std::ptrdiff_t chunks, Task task) {
  Failure failure;
  for (std::ptrdiff_t chunk = 0; chunk < chunks; ++chunk) {
    try {
      task.call(task.context, chunk);
    } catch (...) {
      failure.keep_first(chunk);
    }
  }
  failure.rethrow();
}

void ThreadPool::run_task(std::ptrdiff_t chunks, Task task) {
  if (chunks < 0 || static_cast<std::uint64_t>(chunks) > chunk_mask) {
    throw bad_input(fmt::format("chunks is {}: expected 0 to {}", chunks, chunk_mask));
  }
  if (workers_.empty() || chunks < 2 || busy_.test_and_set(std::memory_order_acquire)) {
    run_inline(chunks, task);
    return;
  }
  const auto count = static_cast<std::uint32_t>(chunks);
  call_.store(task.call, std::memory_order_relaxed);
  context_.store(task.context, std::memory_order_relaxed);
  chunks_.store(count, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  const std::uint32_t number = wake_.load(std::memory_order_relaxed) + 1;
  const std::uint64_t ticket = (std::uint64_t{number} << 32) | count;
  ticket_.store(ticket, std::memory_order_release);
  wake_.store(number, std::memory_order_release);
  wake_.notify_all();

  work_off(ticket);

  std::uint32_t done = done_.load(std::memory_order_acquire);
  for (int spin = 0; done != count && spin < spins_; ++spin) {
    relax();
    done = done_.load(std::memory_order_acquire);
  }
  while (done != count) {
    done_.wait(done, std::memory_order_acquire);
    done = done_.load(std::memory_order_acquire);
  }
  // Taken out before the pool is free again: the next run() may come from another thread.
  Failure failure = std::exchange(failure_, Failure{});
  busy_.clear(std::memory_order_release);
  failure.rethrow();
}

// Takes chunks of the run that `ticket` belongs to until none is left to take.
void ThreadPool::work_off(std::uint64_t ticket) {
  const std::uint64_t number = ticket >> 32;
  while (ticket >> 32 == number && (ticket & chunk_mask) != 0) {
    const Task task{call_.load(std::memory_order_relaxed), context_.load(std::memory_order_relaxed)};
    const std::uint32_t count = chunks_.load(std::memory_order_relaxed);
    if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire)) {
      continue;  // `ticket` now holds the current word
    }
    const std::ptrdiff_t chunk = count - static_cast<std::ptrdiff_t>(ticket & chunk_mask);
    try {
      task.call(task.context, chunk);
    } catch (...) {
      const std::scoped_lock lock(failure_mutex_);
      failure_.keep_first(chunk);
    }
    if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == count) done_.notify_one();
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void ThreadPool::serve() {
  const auto ends = [this] { return ends_.load(std::memory_order_acquire); };
  while (!ends()) {
    const std::uint32_t seen = wake_.load(std::memory_order_acquire);
    work_off(ticket_.load(std::memory_order_acquire));
    int spin = 0;
    while (wake_.load(std::memory_order_acquire) == seen && spin < spins_ && !ends()) {
      relax();
      ++spin;
    }
    if (ends()) return;
    if (wake_.load(std::memory_order_acquire) == seen) wake_.wait(seen, std::memory_order_acquire);
  }
}

}  // namespace attmirror

#include "attmirror_step.h"

#include "step_bridge.hpp"

#include <memory>
#include <mutex>

#include <unistd.h>

namespace attmirror::bridge {

namespace {

// One pool for all callers, with as many threads as the last of them asked for; none for one thread.
std::shared_ptr<ThreadPool> step_pool(std::int32_t wanted) {
  static std::mutex mutex;
  static std::shared_ptr<ThreadPool> pool;
  const int threads = std::clamp(static_cast<int>(wanted), 1, ThreadPool::max_threads);
  if (threads == 1) return nullptr;
  const std::lock_guard lock(mutex);
  // A forked process has the pool but not its threads: it is left as it is, since ending it would wait for them.
  static pid_t owner = ::getpid();
  if (owner != ::getpid()) {
    new std::shared_ptr<ThreadPool>(std::move(pool));
    pool = nullptr;
    owner = ::getpid();
  }
  if (pool == nullptr || pool->threads() != threads) pool = std::make_shared<ThreadPool>(threads);
  return pool;
}

}  // namespace

}  // namespace attmirror::bridge

using namespace attmirror;
using namespace attmirror::bridge;

int32_t attmirror_step_version(void) { return ATTMIRROR_STEP_VERSION; }

int32_t attmirror_step(const attmirror_options* options, const attmirror_tensor* tensors, int64_t count,
                       const double* norms, int32_t* skipped, char* message) {
  return guarded(message, [&] {
    const auto pool = step_pool(options->threads);
    const std::span<const StepTensor> list = tensors_of(tensors, count);
    const StepOptions step = options_of(*options);
    const StepReport report =
        norms ? step_with_norms(element_of(*options), list, step, {norms, list.size()}, pool.get())
              : fused_step(element_of(*options), list, step, pool.get());
    *skipped = report.skipped ? 1 : 0;
  });
}

int32_t attmirror_measure(const attmirror_options* options, const attmirror_tensor* tensors, int64_t count,
                          double* norms, char* message) {
  return guarded(message, [&] {
    const auto pool = step_pool(options->threads);
    const std::span<const StepTensor> list = tensors_of(tensors, count);
    measure_step(element_of(*options), list, options_of(*options), {norms, list.size()}, pool.get());
  });
}

int32_t attmirror_fill_masters(const attmirror_options* options, const attmirror_tensor* tensors,
                               int64_t count, char* message) {
  return guarded(message, [&] {
    const auto pool = step_pool(options->threads);
    fill_masters(element_of(*options), tensors_of(tensors, count), options_of(*options), pool.get());
  });
}

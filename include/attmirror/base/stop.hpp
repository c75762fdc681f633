// How to ask a long computation to end: training, paths, flows, sweeps, reproductions.
//
//   StopRequest stop = StopRequest::make();
//   std::thread asker([stop] { wait_for_the_user(); stop.request(); });
//   DescentRun run = descend(model, optimizer, {.steps = 1'000'000'000}, {.stop = stop});
//
// Whatever can be stopped takes a StopRequest next to its callbacks, always named `stop`; the callbacks only
// report. The computation checks it between steps, notices within a tenth of a second, and returns what it
// has with a status that says so. A callback may request a stop, too, which is noticed before the next step.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace attmirror {

// A handle: copies refer to the same request. One that was not made by make() is never requested and costs nothing.
class StopRequest {
 public:
  StopRequest() = default;
  static StopRequest make() { return StopRequest(std::make_shared<std::atomic<bool>>(false)); }
  // Uses a flag of your own, such as one that a signal handler sets. It must outlive all copies.
  static StopRequest of(std::atomic<bool>& flag) noexcept {
    return StopRequest(std::shared_ptr<std::atomic<bool>>(std::shared_ptr<void>(), &flag));
  }

  // May be called from any thread, any number of times, also from a signal handler. It cannot be undone.
  void request() const noexcept {
    if (flag_) flag_->store(true, std::memory_order_release);
  }
  bool requested() const noexcept { return flag_ && flag_->load(std::memory_order_acquire); }

 private:
  static_assert(std::atomic<bool>::is_always_lock_free);
  explicit StopRequest(std::shared_ptr<std::atomic<bool>> flag) : flag_(std::move(flag)) {}

  std::shared_ptr<std::atomic<bool>> flag_;
};

}  // namespace attmirror

// Things made ahead by a thread of their own, and taken in order: batches, while the last one is computed on. Internal.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace attmirror {

template <class Thing>
class MadeAhead {
 public:
  // make(first), make(first + 1), ... up to `end`, at most `depth` of them ahead. What make() throws, next() throws.
  MadeAhead(std::int64_t first, std::int64_t end, std::size_t depth, std::function<Thing(std::int64_t)> make)
      : depth_(depth),
        make_(std::move(make)),
        worker_([this, first, end](const std::stop_token& stop) { work(first, end, stop); }) {}

  // May be called once for each.
  Thing next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty() || failure_ != nullptr; });
    if (ready_.empty()) std::rethrow_exception(failure_);
    Thing thing = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return thing;
  }

 private:
  void work(std::int64_t first, std::int64_t end, const std::stop_token& stop) {
    try {
      for (std::int64_t i = first; i < end; ++i) {
        {
          std::unique_lock lock(mutex_);
          if (!changed_.wait(lock, stop, [&] { return ready_.size() < depth_; })) return;
        }
        Thing thing = make_(i);
        {
          const std::lock_guard lock(mutex_);
          ready_.push_back(std::move(thing));
        }
        changed_.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      changed_.notify_all();
    }
  }

  std::size_t depth_;
  std::function<Thing(std::int64_t)> make_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Thing> ready_;
  std::exception_ptr failure_;
  std::jthread worker_;  // the last member: it ends before the others do
};

}  // namespace attmirror

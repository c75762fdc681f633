// What several runs of a sweep have in common: datasets and the arrays of files. Internal.
//
// A thousand runs on one file read it once, and neighbours with equal data settings share a generated dataset. Many
// threads ask at once: the first one makes what is asked for, the others wait for it. What is kept is bounded; a
// dataset that is dropped lives on as long as a run uses it.
#pragma once

#include "descent/model_plan.hpp"
#include <attmirror/data/dataset.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>

namespace attmirror {

// The most recently used values of some kind, by name.
template <class Value>
class SharedValues {
 public:
  using Pointer = std::shared_ptr<const Value>;

  SharedValues(std::size_t max_count, std::size_t max_bytes) : max_count_(max_count), max_bytes_(max_bytes) {}

  // The value of this name, made by `make` unless it is there. What `make` throws goes to all who wait; the next one
  // to ask tries again.
  Pointer get(const std::string& name, const std::function<Pointer()>& make,
              const std::function<std::size_t(const Value&)>& bytes_of) {
    std::promise<Pointer> promise;
    std::shared_future<Pointer> waiting;
    {
      const std::scoped_lock lock(mutex_);
      for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
        if (entry->name != name) continue;
        entries_.splice(entries_.begin(), entries_, entry);
        waiting = entry->value;
        break;
      }
      if (!waiting.valid()) entries_.push_front({name, promise.get_future().share(), 0});
    }
    if (waiting.valid()) return waiting.get();
    try {
      Pointer value = make();
      promise.set_value(value);
      const std::scoped_lock lock(mutex_);
      for (Entry& entry : entries_)
        if (entry.name == name) entry.bytes = bytes_of(*value);
      drop_oldest();
      return value;
    } catch (...) {
      promise.set_exception(std::current_exception());
      const std::scoped_lock lock(mutex_);
      entries_.remove_if([&name](const Entry& entry) { return entry.name == name; });
      throw;
    }
  }

 private:
  struct Entry {
    std::string name;
    std::shared_future<Pointer> value;
    std::size_t bytes;  // 0: under way
  };

  void drop_oldest() {
    std::size_t bytes = 0, count = 0;
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      bytes += entry->bytes;
      ++count;
      // The newest one stays whatever its size.
      if (entry->bytes > 0 && count > 1 && (count > max_count_ || bytes > max_bytes_))
        entry = entries_.erase(entry);
      else
        ++entry;
    }
  }

  const std::size_t max_count_, max_bytes_;
  std::mutex mutex_;
  std::list<Entry> entries_;
};

class SweepCache {
 public:
  SharedValues<Dataset> data{64, std::size_t{256} << 20};
  SharedValues<ModelPlan> models{64, std::size_t{64} << 20};  // those with arrays from files
};

}  // namespace attmirror

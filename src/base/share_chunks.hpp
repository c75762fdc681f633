// A loop over chunks on a pool's threads, or in place where there is no pool. Internal.
#pragma once

#include <attmirror/base/thread_pool.hpp>

#include <cstddef>

namespace attmirror {

template <class F>
void share(ThreadPool* pool, std::ptrdiff_t chunks, F&& f) {
  if (pool)
    pool->run(chunks, f);
  else
    for (std::ptrdiff_t c = 0; c < chunks; ++c) f(c);
}

}  // namespace attmirror

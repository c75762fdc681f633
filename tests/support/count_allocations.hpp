// Counts allocations, at malloc, because Eigen and aligned operator new end there both. count_allocations.cpp
// replaces the program's malloc: attmirror_add_tests(... COUNT_ALLOCATIONS). Sanitizers have a malloc of their own:
// under them there is nothing here, and ATTMIRROR_COUNTS_ALLOCATIONS is not defined.
#pragma once

#include <atomic>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ATTMIRROR_COUNTS_ALLOCATIONS 1

namespace attmirror::test {
extern std::atomic<long> allocations;  // so far, in all threads
}

#endif

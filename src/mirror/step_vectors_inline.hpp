// Walking over the arrays of a step vector by vector, for kernels: several at a time, whole ones in place, the rest
// in buffers.
#pragma once

#include "base/float_simd.hpp"
#include "mirror/step_loops.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

// The arrays of a chunk by their types.
template <class T>
struct Pointers {
  T* weights;
  const T* gradient;
  float* master;
  float* momentum;
};

template <class T>
Pointers<T> pointers(const kernels::StepArrays& arrays) {
  return {static_cast<T*>(arrays.weights), static_cast<const T*>(arrays.gradient),
          static_cast<float*>(arrays.master), static_cast<float*>(arrays.momentum)};
}

// A number of vectors known at compile time.
template <int count>
struct Count {
  static constexpr int value = count;
};

// Room for one T per vector, in a way that compilers do not know how much: they would unroll the loops over it, and
// then have no registers left for constants.
template <class T, int count>
class Batch {
 public:
  [[gnu::always_inline]] Batch() : items_(room_) { asm("" : "+r"(items_) : : "memory"); }
  [[gnu::always_inline]] T& operator[](int i) { return items_[i]; }

 private:
  T room_[count];
  T* items_;
};

template <class T>
class Batch<T, 1> {
 public:
  [[gnu::always_inline]] T& operator[](int) { return item_; }

 private:
  T item_{};
};

// body(first) for groups of vectors of a batch; within a group loops are unrolled.
template <int count>
constexpr int group = count < 4 ? 1 : 4;

template <int count, class Body>
[[gnu::always_inline]] inline void for_groups(Body body) {
  if constexpr (count == 1) {
    body(0);
  } else {
    int end = count;
    asm("" : "+r"(end));
    for (int first = 0; first < end; first += group<count>) body(first);
  }
}

// Less than one vector from i on, in buffers with zeros behind.
template <class T, class Body>
[[gnu::always_inline]] inline void in_buffers(const Pointers<T>& p, std::ptrdiff_t i, std::ptrdiff_t size,
                                              Body body) {
  T weights[float_lanes] = {}, gradient[float_lanes] = {};
  float master[float_lanes] = {}, momentum[float_lanes] = {};
  const auto take = [&](auto* buffer, const auto* array) {
    if (array) __builtin_memcpy(buffer, array + i, static_cast<std::size_t>(size) * sizeof *buffer);
  };
  const auto give = [&](auto* array, const auto* buffer) {
    if (array) __builtin_memcpy(array + i, buffer, static_cast<std::size_t>(size) * sizeof *buffer);
  };
  take(weights, p.weights);
  take(gradient, p.gradient);
  take(master, p.master);
  take(momentum, p.momentum);
  body(Pointers<T>{weights, gradient, master, momentum}, std::ptrdiff_t{0}, Count<1>{});
  give(p.weights, weights);
  give(p.master, master);
  give(p.momentum, momentum);
}

// Whole batches and vectors in place, the rest in buffers.
template <int batch, class T, class Body>
[[gnu::always_inline]] inline void for_vectors(const Pointers<T>& p, std::ptrdiff_t begin,
                                               std::ptrdiff_t size, Body body) {
  std::ptrdiff_t i = begin;
  for (; i + batch * float_lanes <= size; i += batch * float_lanes) body(p, i, Count<batch>{});
  if constexpr (batch > 1)
    for (; i + float_lanes <= size; i += float_lanes) body(p, i, Count<1>{});
  if (i < size) in_buffers(p, i, size - i, body);
}

// How many numbers come before the first that starts a line of the cache: stores across two lines take twice as long.
template <class T>
std::ptrdiff_t before_line(const T* p, std::ptrdiff_t size) {
  constexpr std::uintptr_t line = 64;
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  if (address % sizeof(T) != 0) return 0;
  const auto count = static_cast<std::ptrdiff_t>((line - address % line) % line / sizeof(T));
  return count < size ? count : size;
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA

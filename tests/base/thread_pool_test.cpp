#include "support/same_bits.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/thread_pool.hpp>

#include <atomic>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace attmirror {
namespace {

TEST(FixedChunks, CoverEverythingOnceInOrder) {
  const bool holds = rc::check("chunks tile 0..total", [] {
    const auto total = *rc::gen::inRange<std::ptrdiff_t>(0, 100'000);
    const auto grain = *rc::gen::inRange<std::ptrdiff_t>(1, 3'000);
    const auto most = *rc::gen::inRange<std::ptrdiff_t>(1, 100);
    const Chunking parts = fixed_chunks(total, grain, most);
    RC_ASSERT(parts.total == total);
    RC_ASSERT(parts.count <= most);
    std::ptrdiff_t next = 0;
    for (std::ptrdiff_t c = 0; c < parts.count; ++c) {
      RC_ASSERT(parts.begin(c) == next);
      RC_ASSERT(parts.end(c) > parts.begin(c));
      RC_ASSERT(c + 1 == parts.count || (parts.end(c) - parts.begin(c)) % grain == 0);
      next = parts.end(c);
    }
    RC_ASSERT(next == total);
  });
  EXPECT_TRUE(holds);
}

TEST(FixedChunks, HugeArgumentsDoNotOverflow) {
  constexpr std::ptrdiff_t huge = std::numeric_limits<std::ptrdiff_t>::max();
  const Chunking one = fixed_chunks(10, huge, 7);
  EXPECT_EQ(one.count, 1);
  EXPECT_EQ(one.end(0), 10);
  const Chunking many = fixed_chunks(huge, 1024, 64);
  EXPECT_EQ(many.count, 64);
  EXPECT_EQ(many.end(63), huge);
}

TEST(FixedChunks, RefusesBadArguments) {
  EXPECT_THROW(fixed_chunks(-1, 1, 1), Error);
  EXPECT_THROW(fixed_chunks(1, 0, 1), Error);
  EXPECT_THROW(fixed_chunks(1, 1, 0), Error);
}

class Pools : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ThreadPool, Pools, ::testing::Values(1, 2, 3, 8));

TEST_P(Pools, EachChunkRunsExactlyOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.threads(), GetParam());
  for (const std::ptrdiff_t chunks : {0, 1, 2, 7, 64, 1000}) {
    std::vector<std::atomic<int>> calls(static_cast<std::size_t>(chunks));
    pool.run(chunks, [&](std::ptrdiff_t chunk) { ++calls[static_cast<std::size_t>(chunk)]; });
    for (const std::atomic<int>& count : calls) EXPECT_EQ(count, 1);
  }
}

// Numbers of wild magnitudes: the order of additions shows in the bits.
double chunked_sum(ThreadPool& pool, const std::vector<double>& x) {
  const Chunking parts = fixed_chunks(static_cast<std::ptrdiff_t>(x.size()), 64, 100);
  std::vector<double> partial(static_cast<std::size_t>(parts.count));
  pool.run(parts.count, [&](std::ptrdiff_t c) {
    double sum = 0;
    for (std::ptrdiff_t i = parts.begin(c); i < parts.end(c); ++i) sum += x[static_cast<std::size_t>(i)];
    partial[static_cast<std::size_t>(c)] = sum;
  });
  double total = 0;
  for (const double sum : partial) total += sum;
  return total;
}

TEST(ThreadPool, SumsHaveTheSameBitsForAnyNumberOfThreads) {
  std::vector<double> x(50'000);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = std::sin(static_cast<double>(i)) * std::pow(10.0, static_cast<double>(i % 17));
  ThreadPool one(1), two(2), eight(8);
  const double alone = chunked_sum(one, x);
  for (int repeat = 0; repeat < 20; ++repeat) {
    EXPECT_TRUE(test::same_bits(chunked_sum(two, x), alone));
    EXPECT_TRUE(test::same_bits(chunked_sum(eight, x), alone));
  }
}

TEST_P(Pools, ManyShortRunsSeeTheirOwnData) {
  ThreadPool pool(GetParam());
  std::vector<std::ptrdiff_t> seen(9);
  for (std::ptrdiff_t round = 0; round < 5'000; ++round) {
    const std::ptrdiff_t chunks = round % 9 + 1;
    pool.run(chunks, [&, round](std::ptrdiff_t chunk) {
      seen[static_cast<std::size_t>(chunk)] = round * 16 + chunk;
    });
    for (std::ptrdiff_t c = 0; c < chunks; ++c) ASSERT_EQ(seen[static_cast<std::size_t>(c)], round * 16 + c);
  }
}

TEST_P(Pools, RethrowsTheExceptionOfTheLowestChunkAfterAllHaveRun) {
  ThreadPool pool(GetParam());
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::atomic<int> finished{0};
    try {
      pool.run(40, [&](std::ptrdiff_t chunk) {
        if (chunk == 5 || chunk == 6 || chunk == 39)
          throw std::runtime_error("chunk " + std::to_string(chunk));
        ++finished;
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "chunk 5");
    }
    EXPECT_EQ(finished, 37);
  }
  std::atomic<int> after{0};
  pool.run(10, [&](std::ptrdiff_t) { ++after; });  // no trace of it in the next run
  EXPECT_EQ(after, 10);
}

TEST_P(Pools, NestedRunsRunInline) {
  ThreadPool pool(GetParam());
  std::atomic<int> calls{0}, elsewhere{0};
  pool.run(6, [&](std::ptrdiff_t) {
    const std::thread::id outer = std::this_thread::get_id();
    pool.run(5, [&](std::ptrdiff_t) {
      ++calls;
      if (std::this_thread::get_id() != outer) ++elsewhere;
    });
  });
  EXPECT_EQ(calls, 30);
  EXPECT_EQ(elsewhere, 0);
}

TEST_P(Pools, CallersFromSeveralThreadsDoNotDisturbEachOther) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> calls(4);
  {
    std::vector<std::jthread> callers;
    for (auto& count : calls) {
      callers.emplace_back([&pool, &count] {
        for (int i = 0; i < 500; ++i) pool.run(8, [&](std::ptrdiff_t) { ++count; });
      });
    }
  }
  for (const auto& count : calls) EXPECT_EQ(count, 4'000);
}

TEST(ThreadPool, CallsTheCallableItselfAndNotACopy) {
  struct Counter {
    std::atomic<int> calls{0};
    void operator()(std::ptrdiff_t) { ++calls; }
  } counter;
  ThreadPool pool(2);
  pool.run(12, counter);
  EXPECT_EQ(counter.calls, 12);
  const auto constant = [&](std::ptrdiff_t) { ++counter.calls; };
  pool.run(3, constant);
  EXPECT_EQ(counter.calls, 15);
}

TEST(ThreadPool, WorkersReallyShareTheWork) {
  ThreadPool pool(2);
  std::atomic<int> inside{0};
  // Each chunk waits for the other: one thread alone would never get there.
  pool.run(2, [&](std::ptrdiff_t) {
    ++inside;
    while (inside < 2) std::this_thread::yield();
  });
  EXPECT_EQ(inside, 2);
}

// Waits until `count` threads of this process sleep, as the system sees it (man 5 proc, stat).
void wait_for_sleepers(int count) {
  for (int sleepers = -1; sleepers < count; std::this_thread::yield()) {
    sleepers = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string stat;
      std::getline(std::ifstream(task.path() / "stat"), stat);
      const auto name_end = stat.rfind(") ");  // after it comes the state
      sleepers += name_end != std::string::npos && stat[name_end + 2] == 'S' ? 1 : 0;
    }
  }
}

TEST(ThreadPool, WakesUpFromSleep) {
  ThreadPool pool(4);
  for (int i = 0; i < 3; ++i) {
    wait_for_sleepers(3);
    std::atomic<int> calls{0};
    pool.run(16, [&](std::ptrdiff_t) { ++calls; });
    EXPECT_EQ(calls, 16);
  }
}

TEST(ThreadPool, CanBeDestroyedAtOnceIdleOrAsleep) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(4);
  ThreadPool asleep(4);
  wait_for_sleepers(3);
}

TEST(ThreadPool, RefusesImpossibleNumbers) {
  EXPECT_THROW(ThreadPool(-1), Error);
  EXPECT_THROW(ThreadPool(ThreadPool::max_threads + 1), Error);
  EXPECT_GE(ThreadPool(0).threads(), 1);
  ThreadPool pool(2);
  EXPECT_THROW(pool.run(-1, [](std::ptrdiff_t) {}), Error);
  EXPECT_THROW(pool.run(std::ptrdiff_t{1} << 33, [](std::ptrdiff_t) {}), Error);
}

}  // namespace
}  // namespace attmirror

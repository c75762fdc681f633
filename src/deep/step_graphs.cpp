#include "deep/step_graphs.hpp"

#include <attmirror/base/error.hpp>

#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <torch/version.h>
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 10)
#include <ATen/core/CachingHostAllocator.h>
#define ATTMIRROR_HOST_ALLOCATOR 1
#endif

namespace attmirror::deep {

#if TORCH_VERSION_MAJOR >= 2

namespace {

namespace memory = c10::cuda::CUDACachingAllocator;

// How far the host may be ahead of the GPU. It would otherwise fill page-locked memory with batches that wait for
// their turn, and notice a wish to stop an epoch late.
constexpr std::size_t steps_in_flight = 8;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// The allocator knows no device before LibTorch has used it.
c10::DeviceIndex index_in_use(at::Device device) {
  at::empty({1}, at::TensorOptions().device(device));
  return device.index();
}

// `end` throws where a recording has got so far that there is nothing left to end.
template <class End>
void end_if_begun(const End& end) {
  try {
    end();
  } catch (const std::exception&) {
  }
}

// Page-locked memory has an allocator of its own. That of LibTorch 2.11 has pools, too, and refuses one that nobody
// holds any more.
template <class Allocator>
concept HasPools = requires(Allocator& host, at::cuda::MempoolId_t pool) {
  host.release_pool(pool);
};

template <class Allocator>
void hold_host_pool(Allocator& host, at::cuda::MempoolId_t pool) {
  if constexpr (HasPools<Allocator>) {
    host.begin_allocate_to_pool(pool, [](c10::Stream) { return false; });
    host.end_allocate_to_pool(pool);
  }
}
template <class Allocator>
void release_host_pool(Allocator& host, at::cuda::MempoolId_t pool) {
  if constexpr (HasPools<Allocator>) host.release_pool(pool);
}
template <class Allocator>
void end_host_pool_use(Allocator& host, at::cuda::MempoolId_t pool) {
  if constexpr (HasPools<Allocator>) {
    host.end_allocate_to_pool(pool);
    host.release_pool(pool);
  }
}

// The pool lives as long as somebody has begun to use it and not released it.
void hold_pool(c10::DeviceIndex device, at::cuda::MempoolId_t pool) {
  memory::beginAllocateToPool(device, pool, [](cudaStream_t) { return false; });
  memory::endAllocateToPool(device, pool);
#if defined(ATTMIRROR_HOST_ALLOCATOR)
  hold_host_pool(*at::getHostAllocator(at::kCUDA), pool);
#endif
}
void release_pool(c10::DeviceIndex device, at::cuda::MempoolId_t pool) {
  memory::releasePool(device, pool);
#if defined(ATTMIRROR_HOST_ALLOCATOR)
  release_host_pool(*at::getHostAllocator(at::kCUDA), pool);
#endif
}

// A recording that failed leaves the stream and both allocators in the middle of it: each would refuse the next one.
void abandon(cudaStream_t stream, c10::DeviceIndex device, at::cuda::MempoolId_t pool) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &status) != cudaSuccess || status != cudaStreamCaptureStatusNone) {
    cudaGraph_t unfinished = nullptr;
    cudaStreamEndCapture(stream, &unfinished);
    if (unfinished != nullptr) cudaGraphDestroy(unfinished);
  }
  cudaGetLastError();
  end_if_begun([&] {
    memory::endAllocateToPool(device, pool);
    memory::releasePool(device, pool);
  });
#if defined(ATTMIRROR_HOST_ALLOCATOR)
  end_if_begun([&] { end_host_pool_use(*at::getHostAllocator(at::kCUDA), pool); });
#endif
}

// While it lives, whatever draws from the device's default generator draws from `own`.
struct GeneratorUse {
  at::Generator generator, usual;
  GeneratorUse(c10::DeviceIndex device, const at::Generator& own)
      : generator(at::cuda::detail::getDefaultCUDAGenerator(device)), usual(generator.graphsafe_get_state()) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.graphsafe_set_state(own);
  }
  ~GeneratorUse() {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.graphsafe_set_state(usual);
  }
  GeneratorUse(const GeneratorUse&) = delete;
  GeneratorUse& operator=(const GeneratorUse&) = delete;
};

// Each recording has a generator of its own, because one that fails leaves its generator unusable.
struct Recording {
  at::Generator generator;
  std::unique_ptr<at::cuda::CUDAGraph> graph;
};

}  // namespace

struct StepGraphs::State {
  // While it lives, memory for this stream comes from the pool.
  struct PoolUse {
    State& state;
    explicit PoolUse(State& of) : state(of) {
      memory::beginAllocateToPool(state.device, state.pool,
                                  [own = state.stream.stream()](cudaStream_t other) { return other == own; });
    }
    ~PoolUse() {
      memory::endAllocateToPool(state.device, state.pool);
      memory::releasePool(state.device, state.pool);
    }
  };

  explicit State(at::Device of)
      : device(index_in_use(of)),
        stream(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device)),
        guard(stream),
        pool(at::cuda::graph_pool_handle()) {
    // Whoever waits for one sleeps, and leaves the processor to those who make batches.
    for (std::size_t i = 0; i < steps_in_flight; ++i)
      done.emplace_back(cudaEventDisableTiming | cudaEventBlockingSync);
    cudaDeviceSynchronize();  // what other streams have begun is there for this one
    hold_pool(device, pool);
  }
  ~State() {
    recordings.clear();
    release_pool(device, pool);
  }

  // One piece of memory for all steps to come, as large as the first has needed and a third more. Steps of many sizes
  // otherwise take it in pieces, none of which fits a step that is a little larger.
  void reserve(const std::function<void()>& first) {
    memory::resetPeakStats(device);
    const auto before = memory::getDeviceStats(device).allocated_bytes[0].current;
    first();
    const auto peak = memory::getDeviceStats(device).allocated_bytes[0].peak;
    stream.synchronize();
    memory::emptyCache();
    const PoolUse in_pool(*this);
    at::empty({(peak - before) / 3 * 4}, at::TensorOptions(at::kByte).device(at::Device(at::kCUDA, device)));
    reserved = true;
  }

  void wait_for_room() {
    at::cuda::CUDAEvent& oldest = done[next % steps_in_flight];
    if (next >= steps_in_flight) oldest.synchronize();
  }
  void count() { done[next++ % steps_in_flight].record(stream); }

  c10::DeviceIndex device;
  c10::cuda::CUDAStream stream;
  c10::cuda::CUDAStreamGuard guard;
  at::cuda::MempoolId_t pool;
  std::vector<Recording> recordings;
  std::vector<at::cuda::CUDAEvent> done;
  std::size_t next = 0;
  bool reserved = false;
};

bool StepGraphs::available(at::Device device) { return device.is_cuda(); }

StepGraphs::StepGraphs(at::Device device) : state_(std::make_unique<State>(device)) {}
StepGraphs::~StepGraphs() = default;

std::size_t StepGraphs::size() const { return state_->recordings.size(); }

void StepGraphs::forget() {
  state_->stream.synchronize();
  state_->recordings.clear();
}

void StepGraphs::run(const std::function<void()>& work) {
  state_->wait_for_room();
  if (!state_->reserved) {
    state_->reserve(work);
  } else {
    const State::PoolUse in_pool(*state_);
    work();
  }
  state_->count();
}

std::size_t StepGraphs::record(const std::function<void()>& work) {
  State& state = *state_;
  Recording recording{at::cuda::detail::createCUDAGenerator(state.device),
                      std::make_unique<at::cuda::CUDAGraph>()};
  const GeneratorUse draws(state.device, recording.generator);
  try {
    // Other threads may do as they like meanwhile: batches are made ahead in page-locked memory.
    recording.graph->capture_begin(state.pool, cudaStreamCaptureModeThreadLocal);
    work();
    recording.graph->capture_end();
  } catch (const std::exception& error) {
    abandon(state.stream.stream(), state.device, state.pool);
    throw environment_error(first_line(error.what()));
  }
  state.recordings.push_back(std::move(recording));
  return state.recordings.size() - 1;
}

void StepGraphs::repeat(std::size_t recorded, std::uint64_t seed) {
  state_->wait_for_room();
  Recording& recording = state_->recordings.at(recorded);
  recording.generator.set_current_seed(seed);
  recording.graph->replay();
  state_->count();
}

#else

struct StepGraphs::State {};
bool StepGraphs::available(at::Device) { return false; }
StepGraphs::StepGraphs(at::Device) { throw bad_input("CUDA graphs need LibTorch 2"); }
StepGraphs::~StepGraphs() = default;
std::size_t StepGraphs::size() const { return 0; }
void StepGraphs::forget() {}
void StepGraphs::run(const std::function<void()>& work) { work(); }
std::size_t StepGraphs::record(const std::function<void()>&) {
  throw bad_input("CUDA graphs need LibTorch 2");
}
void StepGraphs::repeat(std::size_t, std::uint64_t) {}

#endif

}  // namespace attmirror::deep

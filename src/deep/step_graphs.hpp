// Work of a GPU that is recorded once and then repeated by one call: CUDA graphs.
//
// A training step starts some 200 kernels, and the host needs longer to start them than the GPU to compute
// them. Recorded, they are one launch. What is recorded has its addresses and numbers in it: whatever differs
// between steps must lie in device memory, and that memory must stay where it is. The only number that is not
// so is the seed of LibTorch's generator, which repeat() sets.
//
// All recorded work shares one pool of memory, and work that is run() takes it from there, too: steps come one after
// another, and none needs what another left. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <torch/types.h>

namespace attmirror::deep {

class StepGraphs {
 public:
  // Whether this build can record for the device.
  static bool available(at::Device device);

  // From here to the end of this object, the calling thread works on a stream of its own.
  explicit StepGraphs(at::Device device);
  ~StepGraphs();

  void run(const std::function<void()>& work);

  // Calls work(), of which the GPU does nothing yet, and returns the number for repeat(). Throws Error (environment)
  // where something in it cannot be recorded; what was recorded before can still be repeated, and other work recorded.
  std::size_t record(const std::function<void()>& work);
  void repeat(std::size_t recorded, std::uint64_t seed);

  std::size_t size() const;
  void forget();  // all that is recorded

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attmirror::deep

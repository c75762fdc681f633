// Several processes that share every batch: each computes a part of the gradient, and all add theirs up. Internal.
//
// All have the same weights at all times, since they start from the same and take the same steps: only gradients
// travel. Who we are is told by the environment: of mpirun (OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK) or of torchrun
// (RANK, WORLD_SIZE, LOCAL_RANK). They meet at MASTER_ADDR and MASTER_PORT where these are set, otherwise in a file
// in the run folder, for which they must see the same file system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <torch/types.h>

namespace attmirror::deep {

struct ProcessPlace {
  std::int64_t rank = 0, size = 1, local_rank = 0;
};

// Throws Error (bad input) for an environment that contradicts itself.
ProcessPlace process_place();

class Processes {
 public:
  virtual ~Processes() = default;
  const ProcessPlace& place() const { return place_; }
  bool alone() const { return place_.size == 1; }
  bool writes() const { return place_.rank == 0; }

  // Adds up, in place, over all processes. Throws Error (environment) when another has ended.
  virtual void add_up(at::Tensor& numbers) = 0;

 protected:
  explicit Processes(ProcessPlace place) : place_(place) {}

 private:
  ProcessPlace place_;
};

// One process alone, or a group over gloo (CPU) or NCCL (GPUs). Waits for the others. Throws Error (bad input) where
// this build has no way to talk to them.
std::unique_ptr<Processes> join_processes(const ProcessPlace& place, at::Device device,
                                          const std::filesystem::path& folder);

// ---- for those who join them
// ------------------------------------------------------------------------------------------

struct MeetingPlace {
  std::string address = {};  // of a store that process 0 serves; empty: the file
  std::uint16_t port = 0;
  std::filesystem::path file = {};
  bool one_machine = false;
};
MeetingPlace meeting_place(const ProcessPlace& place, const std::filesystem::path& folder);

std::unique_ptr<Processes> join_by_gloo(const ProcessPlace& place, const std::filesystem::path& folder);
std::unique_ptr<Processes> join_by_nccl(const ProcessPlace& place, at::Device device,
                                        const std::filesystem::path& folder);

}  // namespace attmirror::deep

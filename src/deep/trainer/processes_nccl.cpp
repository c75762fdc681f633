// Processes with a GPU each, joined by NCCL through c10d. wait() makes the stream wait, not the program.
#include "deep/trainer/group_processes.hpp"

#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace attmirror::deep {

std::unique_ptr<Processes> join_by_nccl(const ProcessPlace& place, at::Device device,
                                        const std::filesystem::path& folder) {
  using Group = c10d::ProcessGroupNCCL;
  return std::make_unique<GroupProcesses<Group>>(place, folder, [&](const MeetingPlace&) {
    c10::cuda::set_device(device.index());
    auto options = Group::Options::create();
    options->timeout = operation_timeout;
    return options;
  });
}

}  // namespace attmirror::deep

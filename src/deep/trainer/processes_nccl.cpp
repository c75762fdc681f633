// Processes with a GPU each, joined by NCCL through c10d. wait() makes the stream wait, not the program.
#include "deep/trainer/process_store.hpp"
#include "deep/trainer/processes.hpp"
#include <attmirror/base/error.hpp>

#include <chrono>
#include <exception>
#include <vector>

#include <c10/cuda/CUDAFunctions.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace attmirror::torch {

namespace {

// Long enough for the first process to write a checkpoint on a slow disk; those that ended are noticed at once.
constexpr std::chrono::minutes operation_timeout{30};

class NCCLProcesses : public Processes {
 public:
  NCCLProcesses(const ProcessPlace& place, ::at::Device device, const std::filesystem::path& folder)
      : Processes(place) {
    const MeetingPlace meeting = meeting_place(place, folder);
    try {
      ::c10::cuda::set_device(device.index());
      auto options = Group::Options::create();
      options->timeout = operation_timeout;
      group_ = c10::make_intrusive<Group>(open_store(meeting, place), static_cast<int>(place.rank),
                                          static_cast<int>(place.size), options);
    } catch (const std::exception& error) {
      throw environment_error(
          fmt::format("the {} processes did not find each other: {}", place.size, first_line(error.what())));
    }
  }

  void add_up(::at::Tensor& numbers) override {
    try {
      std::vector<::at::Tensor> tensors{numbers};
      group_->allreduce(tensors)->wait();
    } catch (const std::exception& error) {
      throw environment_error(fmt::format("another of the {} processes has ended: {}", this->place().size,
                                          first_line(error.what())));
    }
  }

 private:
  using Group = ::c10d::ProcessGroupNCCL;
  c10::intrusive_ptr<Group> group_;
};

}  // namespace

std::unique_ptr<Processes> join_by_nccl(const ProcessPlace& place, ::at::Device device,
                                        const std::filesystem::path& folder) {
  return std::make_unique<NCCLProcesses>(place, device, folder);
}

}  // namespace attmirror::torch

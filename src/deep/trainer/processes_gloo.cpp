// Processes on CPUs, joined by gloo through c10d. Compiled where gloo's headers are those of LibTorch's gloo.
#include "deep/trainer/process_store.hpp"
#include "deep/trainer/processes.hpp"
#include <attmirror/base/error.hpp>

#include <chrono>
#include <exception>
#include <vector>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace attmirror::torch {

namespace {

// Long enough for the first process to write a checkpoint on a slow disk; those that ended are noticed at once.
constexpr std::chrono::minutes operation_timeout{30};

class GlooProcesses : public Processes {
 public:
  GlooProcesses(const ProcessPlace& place, const std::filesystem::path& folder) : Processes(place) {
    const MeetingPlace meeting = meeting_place(place, folder);
    try {
      auto options = Group::Options::create(operation_timeout);
      options->devices.push_back(meeting.one_machine ? Group::createDeviceForHostname("127.0.0.1")
                                                     : Group::createDefaultDevice());
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
  using Group = ::c10d::ProcessGroupGloo;
  c10::intrusive_ptr<Group> group_;
};

}  // namespace

std::unique_ptr<Processes> join_by_gloo(const ProcessPlace& place, const std::filesystem::path& folder) {
  return std::make_unique<GlooProcesses>(place, folder);
}

}  // namespace attmirror::torch

// Processes joined by a group of c10d: what gloo and NCCL have in common. Internal.
#pragma once

#include "deep/trainer/process_store.hpp"
#include "deep/trainer/processes.hpp"
#include <attmirror/base/error.hpp>

#include <chrono>
#include <exception>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace attmirror::deep {

// Long enough for the first process to write a checkpoint on a slow disk; those that ended are noticed at once.
constexpr std::chrono::minutes operation_timeout{30};

template <class Group>
class GroupProcesses : public Processes {
 public:
  // `make_options(meeting)` returns the options of the group.
  template <class MakeOptions>
  GroupProcesses(const ProcessPlace& place, const std::filesystem::path& folder,
                 const MakeOptions& make_options)
      : Processes(place) {
    const MeetingPlace meeting = meeting_place(place, folder);
    try {
      group_ = c10::make_intrusive<Group>(open_store(meeting, place), static_cast<int>(place.rank),
                                          static_cast<int>(place.size), make_options(meeting));
    } catch (const std::exception& error) {
      throw environment_error(
          fmt::format("the {} processes did not find each other: {}", place.size, first_line(error.what())));
    }
  }

  void add_up(at::Tensor& numbers) override {
    try {
      std::vector<at::Tensor> tensors{numbers};
      group_->allreduce(tensors)->wait();
    } catch (const std::exception& error) {
      throw environment_error(fmt::format("another of the {} processes has ended: {}", this->place().size,
                                          first_line(error.what())));
    }
  }

 private:
  c10::intrusive_ptr<Group> group_;
};

}  // namespace attmirror::deep

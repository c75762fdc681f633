// Processes on CPUs, joined by gloo through c10d. Compiled where gloo's headers are those of LibTorch's gloo.
#include "deep/trainer/group_processes.hpp"

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace attmirror::deep {

std::unique_ptr<Processes> join_by_gloo(const ProcessPlace& place, const std::filesystem::path& folder) {
  using Group = c10d::ProcessGroupGloo;
  return std::make_unique<GroupProcesses<Group>>(place, folder, [](const MeetingPlace& meeting) {
    auto options = Group::Options::create(operation_timeout);
    options->devices.push_back(meeting.one_machine ? Group::createDeviceForHostname("127.0.0.1")
                                                   : Group::createDefaultDevice());
    return options;
  });
}

}  // namespace attmirror::deep

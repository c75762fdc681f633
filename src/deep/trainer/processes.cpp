#include "deep/trainer/processes.hpp"

#include <attmirror/base/error.hpp>
#include <attmirror/base/fingerprint.hpp>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace attmirror::deep {

namespace {

std::optional<std::int64_t> environment_number(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  const std::string_view view(text);
  std::int64_t value = 0;
  const auto [rest, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc{} || rest != view.data() + view.size() || value < 0)
    throw bad_input(fmt::format("the environment's {} is \"{}\": expected a whole number", name, view));
  return value;
}

class OneProcess : public Processes {
 public:
  OneProcess() : Processes({}) {}
  void add_up(at::Tensor&) override {}
};

}  // namespace

ProcessPlace process_place() {
  ProcessPlace place;
  const char *size_name = "WORLD_SIZE", *rank_name = "RANK", *local_name = "LOCAL_RANK";
  if (!environment_number(size_name)) {
    size_name = "OMPI_COMM_WORLD_SIZE";
    rank_name = "OMPI_COMM_WORLD_RANK";
    local_name = "OMPI_COMM_WORLD_LOCAL_RANK";
  }
  const auto size = environment_number(size_name);
  if (!size || *size <= 1) return place;
  const auto rank = environment_number(rank_name);
  if (!rank || *rank >= *size)
    throw bad_input(fmt::format("the environment's {} is {}, and {} is {}: expected a rank below it",
                                size_name, *size, rank_name, rank ? fmt::format("{}", *rank) : "missing"));
  place.size = *size;
  place.rank = *rank;
  place.local_rank = environment_number(local_name).value_or(*rank);
  return place;
}

std::unique_ptr<Processes> join_processes(const ProcessPlace& place, at::Device device,
                                          const std::filesystem::path& folder) {
  if (place.size == 1) return std::make_unique<OneProcess>();
  if (device.is_cuda()) {
#if ATTMIRROR_NCCL
    return join_by_nccl(place, device, folder);
#else
    throw bad_input(fmt::format(
        "there are {} processes with GPUs, and this build cannot join them: it was made without NCCL "
        "(nccl.h) or for a LibTorch without GPUs",
        place.size));
#endif
  }
#if ATTMIRROR_GLOO
  return join_by_gloo(place, folder);
#else
  (void)folder;
  throw bad_input(
      fmt::format("there are {} processes, and this build cannot join them: it was made without gloo, "
                  "install libgloo-dev",
                  place.size));
#endif
}

MeetingPlace meeting_place(const ProcessPlace& place, const std::filesystem::path& folder) {
  MeetingPlace meeting;
  if (const char* address = std::getenv("MASTER_ADDR"); address != nullptr && *address != '\0') {
    const auto port = environment_number("MASTER_PORT");
    if (!port || *port == 0 || *port > 65535)
      throw bad_input(
          fmt::format("the environment's MASTER_ADDR is {}, and MASTER_PORT is {}: expected 1 to 65535",
                      address, port ? fmt::format("{}", *port) : "missing"));
    meeting.address = address;
    meeting.port = static_cast<std::uint16_t>(*port);
    return meeting;
  }
  if (folder.empty())
    throw bad_input("several processes need MASTER_ADDR and MASTER_PORT, or a run folder to meet in");
  // A name that only the processes of this job know, so that a file which a killed job left behind is nobody's.
  Fingerprint job;
  bool known = false;
  for (const char* name :
       {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_precondition_transports"})
    if (const char* value = std::getenv(name); value != nullptr) {
      job.add(std::string_view(value));
      known = true;
    }
  if (!known)
    throw bad_input(
        fmt::format("there are {} processes, and nothing says where they meet: set MASTER_ADDR and "
                    "MASTER_PORT, or start them by mpirun or torchrun",
                    place.size));
  meeting.file = folder / fmt::format(".meeting-{:016x}", job.value());
  meeting.one_machine = environment_number("OMPI_COMM_WORLD_LOCAL_SIZE").value_or(0) == place.size;
  return meeting;
}

}  // namespace attmirror::deep

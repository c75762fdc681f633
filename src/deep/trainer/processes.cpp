#include "deep/trainer/processes.hpp"

#include <attmirror/base/error.hpp>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace attmirror::torch {

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
  void add_up(::at::Tensor&) override {}
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

std::unique_ptr<Processes> join_processes(const ProcessPlace& place, ::at::Device,
                                          const std::filesystem::path&) {
  if (place.size == 1) return std::make_unique<OneProcess>();
  throw bad_input(fmt::format(
      "there are {} processes, and this build has no way to join them: install libgloo-dev", place.size));
}

}  // namespace attmirror::torch

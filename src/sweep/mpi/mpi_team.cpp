#include "sweep/mpi/mpi_team.hpp"

#include <attmirror/base/error.hpp>

#include <chrono>
#include <climits>
#include <future>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <mpi.h>

namespace attmirror {

namespace {

using namespace std::chrono_literals;

enum Tag : int {
  batch_tag = 1,   // rank 0 to another: the numbers of runs
  answer_tag = 2,  // and back: rows as bytes
  leave_tag = 3,   // rank 0 to another: there is nothing left
  left_tag = 4,    // and back: nothing more will come
};

// How often somebody who has nothing to do looks for a message.
constexpr auto idle_look = 200us;
// How often somebody at work looks whether it shall leave.
constexpr auto busy_look = 2ms;

std::optional<MPI_Status> look(int source, int tag) {
  int there = 0;
  MPI_Status status;
  MPI_Iprobe(source, tag, MPI_COMM_WORLD, &there, &status);
  if (there == 0) return std::nullopt;
  return status;
}

// The message that look() has seen.
template <class T>
std::vector<T> receive(const MPI_Status& seen, MPI_Datatype type) {
  int count = 0;
  MPI_Get_count(&seen, type, &count);
  std::vector<T> values(static_cast<std::size_t>(count));
  MPI_Recv(values.data(), count, type, seen.MPI_SOURCE, seen.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return values;
}

void send(int to, int tag, const void* data, std::size_t count, MPI_Datatype type) {
  if (count > INT_MAX)
    throw environment_error(
        fmt::format("a batch of {} bytes is too large to send: keep fewer arrays", count));
  MPI_Send(data, static_cast<int>(count), type, to, tag, MPI_COMM_WORLD);
}

}  // namespace

MpiSession::MpiSession() {
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
    throw environment_error("MPI cannot start");
  if (provided < MPI_THREAD_FUNNELED) {
    MPI_Finalize();
    throw environment_error("this MPI does not allow threads beside it");
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

MpiSession::~MpiSession() { MPI_Finalize(); }

std::string MpiSession::broadcast(std::string text) {
  auto size = static_cast<std::uint64_t>(text.size());
  MPI_Bcast(&size, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (size > INT_MAX) throw environment_error("a text is too large to send to other processes");
  text.resize(size);
  MPI_Bcast(text.data(), static_cast<int>(size), MPI_CHAR, 0, MPI_COMM_WORLD);
  return text;
}

MpiTeam::~MpiTeam() {
  for (int helper = 0; helper < helpers(); ++helper)
    MPI_Send(nullptr, 0, MPI_CHAR, helper + 1, leave_tag, MPI_COMM_WORLD);
  // Answers that are still on their way are taken and dropped: whoever wanted them is gone.
  for (int left = 0; left < helpers();) {
    const std::optional<MPI_Status> seen = look(MPI_ANY_SOURCE, MPI_ANY_TAG);
    if (!seen) {
      std::this_thread::sleep_for(idle_look);
      continue;
    }
    receive<char>(*seen, MPI_CHAR);
    if (seen->MPI_TAG == left_tag) ++left;
  }
}

void MpiTeam::give(int helper, std::span<const std::int64_t> runs) {
  send(helper + 1, batch_tag, runs.data(), runs.size(), MPI_INT64_T);
}

std::vector<SweepTeam::Answer> MpiTeam::take() {
  std::vector<Answer> answers;
  while (const std::optional<MPI_Status> seen = look(MPI_ANY_SOURCE, answer_tag)) {
    const std::vector<char> bytes = receive<char>(*seen, MPI_CHAR);
    answers.push_back({seen->MPI_SOURCE - 1, parse_rows(std::string(bytes.begin(), bytes.end()))});
  }
  return answers;
}

void serve_team(const SweepPlan& plan, const SweepOptions& options) {
  for (;;) {
    const std::optional<MPI_Status> seen = look(0, MPI_ANY_TAG);
    if (!seen) {
      std::this_thread::sleep_for(idle_look);
      continue;
    }
    if (seen->MPI_TAG == leave_tag) break;
    const std::vector<std::int64_t> runs = receive<std::int64_t>(*seen, MPI_INT64_T);
    const StopRequest leave = StopRequest::make();
    std::future<std::vector<RunRow>> rows =
        std::async(std::launch::async, [&] { return compute_rows(plan, runs, options, leave); });
    while (rows.wait_for(busy_look) != std::future_status::ready)
      if (look(0, leave_tag)) leave.request();
    const std::string bytes = to_bytes(rows.get());
    if (leave.requested()) break;
    send(0, answer_tag, bytes.data(), bytes.size(), MPI_CHAR);
  }
  MPI_Recv(nullptr, 0, MPI_CHAR, 0, leave_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  // Batches that were given ahead of time are taken and dropped, then nothing is on its way any more.
  while (const std::optional<MPI_Status> seen = look(0, batch_tag)) receive<std::int64_t>(*seen, MPI_INT64_T);
  MPI_Send(nullptr, 0, MPI_CHAR, 0, left_tag, MPI_COMM_WORLD);
}

}  // namespace attmirror

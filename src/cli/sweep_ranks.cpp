#include "cli/sweep_ranks.hpp"

#include "base/json.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#if defined(ATTMIRROR_MPI)
#include "sweep/mpi/mpi_team.hpp"
#endif

namespace attmirror::cli {

namespace {

// How many processes the launcher started: Open MPI, or one that speaks PMI (MPICH, Slurm's srun --mpi).
int number_from(std::initializer_list<const char*> variables) {
  for (const char* name : variables)
    if (const char* text = std::getenv(name)) return std::max(1, std::atoi(text));
  return 1;
}

int processes() { return number_from({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}); }
int processes_here() { return number_from({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}); }

}  // namespace

#if defined(ATTMIRROR_MPI)

struct Ranks::Session {
  MpiSession mpi;
};

Ranks::Ranks() {
  if (processes() > 1) session_ = std::make_unique<Session>();
}

Ranks::~Ranks() {
  // Rank 0 did not come to start(): an empty text sends the others home.
  if (session_ && rank() == 0 && !started_) session_->mpi.broadcast("");
}

int Ranks::rank() const { return session_ ? session_->mpi.rank() : 0; }
int Ranks::size() const { return session_ ? session_->mpi.size() : 1; }

std::unique_ptr<SweepTeam> Ranks::start(const SweepPlan& plan, const std::string& name) {
  if (!session_) return nullptr;
  const Json message = {{"name", name}, {"folder", plan.folder.string()}, {"text", plan.text}};
  started_ = true;
  session_->mpi.broadcast(message.dump());
  return std::make_unique<MpiTeam>(session_->mpi);
}

void Ranks::serve(SweepOptions options) {
  const std::string text = session_->mpi.broadcast("");
  if (text.empty()) return;
  const Json message = Json::parse(text);
  const SweepPlan plan =
      parse_sweep(message.at("text").get<std::string>(), message.at("name").get<std::string>(),
                  message.at("folder").get<std::string>());
  serve_team(plan, options);
}

#else

struct Ranks::Session {};

Ranks::Ranks() {
  if (processes() > 1)
    throw bad_input(fmt::format(
        "mpirun started {} processes, but this attmirror was built without MPI: install libopenmpi-dev and "
        "build it again, or start it without mpirun",
        processes()));
}

Ranks::~Ranks() = default;
int Ranks::rank() const { return 0; }
int Ranks::size() const { return 1; }
std::unique_ptr<SweepTeam> Ranks::start(const SweepPlan&, const std::string&) { return nullptr; }
void Ranks::serve(SweepOptions) {}

#endif

int Ranks::threads_each() const {
  if (size() == 1) return 0;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / processes_here());
}

}  // namespace attmirror::cli

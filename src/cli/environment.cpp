#include "cli/environment.hpp"

#include "cli/screen.hpp"

#include <fmt/format.h>

namespace attmirror::cli {

NamedTexts common_environment() {
  return {
      {"ATTMIRROR_ISA",
       "the instruction set to compute with, sse2, avx2 or avx512, instead of the best one that the "
       "machine has; the option --isa takes precedence"},
      {"NO_COLOR", "if it is set and not empty, nothing is colored; only terminals ever get color"},
      {"TERM", "the kind of the terminal; dumb, or none at all, gets no color"},
      {"COLUMNS",
       "the width of the screen in letters, instead of the terminal's own (80 without a terminal)"},
  };
}

NamedTexts sweep_environment() {
  return {
      {"OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_LOCAL_SIZE",
       "set by Open MPI's mpirun: how many processes take part, and how many of them run on this machine"},
      {"PMI_SIZE, MPI_LOCALNRANKS", "the same, set by MPICH and by srun"},
  };
}

NamedTexts deep_environment() {
  return {
      {"WORLD_SIZE, RANK, LOCAL_RANK",
       "set by torchrun: how many processes train together, and which of them this one is; without them, "
       "what mpirun sets (OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_LOCAL_RANK, "
       "OMPI_COMM_WORLD_LOCAL_SIZE)"},
      {"MASTER_ADDR, MASTER_PORT", "where the processes meet; without them they meet in the run folder"},
      {"PMIX_NAMESPACE, OMPI_MCA_ess_base_jobid, OMPI_MCA_orte_precondition_transports",
       "set by mpirun: the name of the job, by which processes that meet in a folder recognize each other"},
      {"OMP_WAIT_POLICY", "how idle threads of LibTorch wait; set to passive unless you have set it"},
  };
}

std::string environment_help() {
  std::string text = "Environment variables that attmirror reads\n";
  const auto add = [&text](const char* title, const NamedTexts& variables) {
    text += fmt::format("\n{}:\n", title);
    for (const auto& [names, what] : variables)
      text += wrapped(names, "  ", 80) + wrapped(what, "      ", 80);
  };
  add("All subcommands", common_environment());
  add("attmirror sweep", sweep_environment());
  add("attmirror deep", deep_environment());
  add("The Python package",
      {{"ATTMIRROR_STEP_LIBRARIES",
        "the folder in which the compiled steps of attmirror.torch are looked for first"}});
  return text;
}

}  // namespace attmirror::cli

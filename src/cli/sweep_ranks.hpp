// `attmirror sweep` under mpirun: the same command on every rank.
#pragma once

#include <attmirror/sweep/sweep.hpp>

#include <functional>
#include <memory>
#include <string>

namespace attmirror::cli {

// This process and the others of its job. Without mpirun there are no others, and MPI is not touched.
class Ranks {
 public:
  // Throws Error (bad input) when mpirun started several processes and the command was built without MPI: each would
  // run the whole sweep and fight for one file.
  Ranks();
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const;
  int size() const;
  int threads_each()
      const;  // so that all processes of this machine together use its cores; 0 for one process alone

  // On rank 0: tells the others the sweep (text, its name and folder), and gives the team; null for one process alone.
  // They wait for this call, or for the end of this object.
  std::unique_ptr<SweepTeam> start(const SweepPlan& plan, const std::string& name);

  // On the others: waits for the sweep, and helps until it is done.
  void serve(SweepOptions options);

 private:
  struct Session;
  std::unique_ptr<Session> session_;
  bool started_ = false;
};

}  // namespace attmirror::cli

// The ranks of an MPI job as a team: rank 0 hands out batches, writes and computes too; the others compute.
//
// This is a target of its own (attmirror::mpi), so that a program that links the library does not have to link MPI.
// Every call to MPI comes from the main thread of its process (MPI_THREAD_FUNNELED). Waiting is done by looking now and
// then: MPI's own waiting keeps a core busy, which with more ranks than cores is another process's core.
#pragma once

#include <attmirror/sweep/sweep.hpp>

#include <span>
#include <string>
#include <vector>

namespace attmirror {

// MPI from its beginning to its end; one in a process. Throws Error (environment) when MPI cannot start.
class MpiSession {
 public:
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // What rank 0 says, on every rank.
  std::string broadcast(std::string text);

 private:
  int rank_ = 0, size_ = 1;
};

// On rank 0. The destructor sends the others home, and waits until each has left its batch.
class MpiTeam final : public SweepTeam {
 public:
  explicit MpiTeam(const MpiSession& session) : session_(session) {}
  ~MpiTeam() override;

  int helpers() const override { return session_.size() - 1; }
  void give(int helper, std::span<const std::int64_t> runs) override;
  std::vector<Answer> take() override;

 private:
  const MpiSession& session_;
};

// On the others: computes what rank 0 gives until it says that all is done.
void serve_team(const SweepPlan& plan, const SweepOptions& options);

}  // namespace attmirror

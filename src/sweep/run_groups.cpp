#include "sweep/run_groups.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace attmirror {

std::vector<RunPiece> cut_into_pieces(std::vector<GroupedRun> runs, double least_work) {
  const auto width = static_cast<std::size_t>(lane_width());
  std::map<std::string, std::vector<GroupedRun>> groups;
  for (GroupedRun& run : runs) groups[run.group].push_back(std::move(run));
  std::vector<RunPiece> pieces;
  for (auto& [group, members] : groups) {
    std::ranges::stable_sort(members, std::greater{}, &GroupedRun::work);
    const bool alone = group.empty();
    const RunPiece empty{.engine = alone ? RunPiece::Engine::single : RunPiece::Engine::lanes};
    RunPiece piece = empty;
    for (const GroupedRun& run : members) {
      piece.indices.push_back(run.index);
      piece.work += run.work;
      if (alone || (piece.indices.size() % width == 0 && piece.work >= least_work))
        pieces.push_back(std::exchange(piece, empty));
    }
    if (!piece.indices.empty()) pieces.push_back(std::move(piece));
  }
  std::ranges::stable_sort(pieces, std::greater{}, &RunPiece::work);
  return pieces;
}

GroupedRun ungrouped(std::size_t index, const DescentTask& task) {
  if (task.objective != nullptr) {
    double numbers = 0;
    for (const BlockShape& shape : task.objective->blocks())
      numbers += static_cast<double>(shape.rows * shape.cols);
    return {.index = index, .work = static_cast<double>(task.options.steps) * numbers};
  }
  const Dataset& data = task.model->data();
  const auto d = static_cast<double>(data.dim());
  return {.index = index,
          .work = static_cast<double>(task.options.steps) * d *
                  (static_cast<double>(data.total_tokens()) + static_cast<double>(data.total_queries()) * d)};
}

GroupedRun grouped(std::size_t index, const DescentTask& task) {
  GroupedRun run = ungrouped(index, task);
  if (!why_not_in_lanes(task).empty()) return run;
  run.group = lane_group(task);
  run.work /= static_cast<double>(lane_width());
  return run;
}

std::vector<DescentRun> train_piece(std::span<const DescentTask> tasks, const RunPiece& piece,
                                    const LaneOptions& how) {
  if (piece.engine == RunPiece::Engine::lanes) {
    std::vector<DescentTask> lanes;
    for (const std::size_t i : piece.indices) lanes.push_back(tasks[i]);
    return descend_in_lanes(lanes, how);
  }
  const DescentTask& task = tasks[piece.indices.front()];
  DescentOptions options = task.options;
  options.threads = 1;
  DescentCallbacks callbacks{.stop = how.stop};
  if (how.on_pulse) callbacks.on_pulse = [&](const Descent& run) { how.on_pulse(run.step()); };
  if (task.objective != nullptr) return {descend(*task.objective, task.optimizer, options, callbacks)};
  return {descend(*task.model, task.optimizer, options, callbacks)};
}

}  // namespace attmirror

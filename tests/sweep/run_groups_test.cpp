// Runs are cut into pieces: each once, its own kind together, whole vectors, the longest first.
#include "sweep/run_groups.hpp"

#include <attmirror/data/generators.hpp>

#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

std::vector<GroupedRun> many_runs(std::size_t count) {
  std::vector<GroupedRun> runs;
  for (std::size_t i = 0; i < count; ++i)
    runs.push_back({.index = 100 + i,
                    .group = i % 7 == 0   ? ""
                             : i % 3 == 0 ? "a"
                                          : "b",
                    .work = static_cast<double>(1 + i * 37 % 11)});
  return runs;
}

TEST(RunGroups, EveryRunIsInOnePieceOfItsGroup) {
  for (const std::size_t count : {0, 1, 5, 40, 201})
    for (const double least_work : {0.0, 30.0, 1e9}) {
      const std::vector<GroupedRun> runs = many_runs(count);
      std::map<std::size_t, GroupedRun> by_index;
      for (const GroupedRun& run : runs) by_index[run.index] = run;
      std::map<std::size_t, int> seen;
      for (const RunPiece& piece : cut_into_pieces(runs, least_work)) {
        ASSERT_FALSE(piece.indices.empty());
        const std::string& group = by_index.at(piece.indices.front()).group;
        double work = 0;
        for (const std::size_t index : piece.indices) {
          ++seen[index];
          EXPECT_EQ(by_index.at(index).group, group);
          work += by_index.at(index).work;
        }
        EXPECT_DOUBLE_EQ(piece.work, work);
        EXPECT_EQ(piece.engine, group.empty() ? RunPiece::Engine::single : RunPiece::Engine::lanes);
        if (group.empty()) {
          EXPECT_EQ(piece.indices.size(), 1u);
        }
        EXPECT_TRUE(std::ranges::is_sorted(piece.indices, std::greater{},
                                           [&](std::size_t index) { return by_index.at(index).work; }));
      }
      EXPECT_EQ(seen.size(), count);
      EXPECT_TRUE(std::ranges::all_of(seen, [](const auto& times) { return times.second == 1; }));
    }
}

TEST(RunGroups, PiecesAreWholeVectorsAndTheLongestComeFirst) {
  const auto width = static_cast<std::size_t>(lane_width());
  std::vector<GroupedRun> runs;
  for (std::size_t i = 0; i < 5 * width + 1; ++i) runs.push_back({.index = i, .group = "a", .work = 1});
  const std::vector<RunPiece> vectors = cut_into_pieces(runs);
  ASSERT_EQ(vectors.size(), 6u);
  for (std::size_t k = 0; k < 5; ++k) EXPECT_EQ(vectors[k].indices.size(), width);
  EXPECT_EQ(vectors[5].indices, (std::vector<std::size_t>{5 * width}));

  const auto wanted = static_cast<double>(width + 1);  // more than one vector, so two
  const std::vector<RunPiece> longer = cut_into_pieces(runs, wanted);
  ASSERT_EQ(longer.size(), 3u);
  EXPECT_EQ(longer[0].indices.size(), 2 * width);
  EXPECT_EQ(longer[2].indices.size(), width + 1);
}

TEST(RunGroups, TasksAreGroupedByWhatLanesAskFor) {
  const Dataset data = generate(SphereData{.samples = 3, .tokens = 4, .dim = 5, .seed = 1});
  const Attention model(data);
  const DescentTask fits{&model, MirrorDescent{.p = 3}, {.steps = 10}},
      longer{&model, MirrorDescent{.p = 3, .lr = 0.5}, {.steps = 20}}, alone{&model, Adam{}, {.steps = 10}};
  EXPECT_EQ(grouped(0, fits).group, lane_group(fits));
  EXPECT_EQ(grouped(0, fits).group, grouped(1, longer).group);
  EXPECT_DOUBLE_EQ(2 * grouped(0, fits).work, grouped(1, longer).work);
  EXPECT_EQ(grouped(2, alone).group, "");
  EXPECT_EQ(ungrouped(7, fits).group, "");
  EXPECT_EQ(ungrouped(7, fits).index, 7u);
}

}  // namespace
}  // namespace attmirror

// Folders of attmirror deep train as others read them: whole, under way, damaged; and as a page.
#include "pages/training_folder.hpp"

#include "base/atomic_file.hpp"
#include "support/files.hpp"
#include <attmirror/pages/run_page.hpp>

#include <cmath>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

namespace fs = std::filesystem;

constexpr const char* config =
    R"({"format": "attmirror deep training", "format_version": 1, "data": {"train": "train.tsv"},
        "model": {"kind": "encoder", "blocks": 2, "heads": 3, "width": 48},
        "optimizer": {"name": "md", "p": 1.1, "lr": 0.001}, "train": {"trials": 2}})";

std::string line(int trial, int epoch, const std::string& loss, const std::string& test_accuracy) {
  return "{\"trial\": " + std::to_string(trial) + ", \"epoch\": " + std::to_string(epoch) +
         ", \"step\": " + std::to_string(10 * epoch) + ", \"train_loss\": " + loss +
         ", \"train_accuracy\": 0.5, \"test_loss\": null, \"test_accuracy\": " + test_accuracy +
         ", \"seconds\": 60, \"weight_norm\": 3, \"K\": {\"norm\": 1, \"largest\": 0.5, \"above_0.06\": "
         "0.25, "
         "\"sparsity\": 0.1}}\n";
}

fs::path write_run(const test::TemporaryFolder& folder, const std::string& name, const std::string& metrics,
                   const std::string& results = "") {
  const fs::path run = folder / name;
  fs::create_directory(run);
  write_file_atomically(run / "config.json", config);
  if (!metrics.empty()) write_file_atomically(run / "metrics.jsonl", metrics);
  if (!results.empty()) write_file_atomically(run / "results.json", results);
  return run;
}

const std::string two_trials = line(0, 1, "0.7", "0.6") + line(0, 2, "0.5", "null") +
                               line(0, 3, "0.4", "0.8") + line(1, 1, "0.6", "0.7") +
                               line(1, 2, "null", "0.5");

TEST(TrainingFolder, IsRead) {
  const test::TemporaryFolder folder;
  const fs::path run =
      write_run(folder, "run", two_trials,
                R"({"status": "completed", "trials": [{"trial": 0, "status": "reached accuracy"},
                    {"trial": 1, "status": "diverged"}]})");
  EXPECT_EQ(source_kind(run), "training");
  const TrainingFolder read = load_training(run);
  EXPECT_EQ(read.status, "completed");
  EXPECT_EQ(read.optimizer_text(), "md p = 1.1, lr = 0.001");
  EXPECT_EQ(read.model_text(), "encoder, 2 blocks, 3 heads, width 48");
  EXPECT_EQ(read.value("data.train"), "train.tsv");
  EXPECT_EQ(read.value("data.none"), "");
  ASSERT_EQ(read.trials.size(), 2u);
  EXPECT_EQ(read.trials[0].status, "reached accuracy");
  EXPECT_EQ(read.trials[1].status, "diverged");
  ASSERT_EQ(read.trials[0].epochs.size(), 3u);
  EXPECT_TRUE(std::isnan(read.trials[0].epochs[1].test_accuracy));
  EXPECT_TRUE(std::isnan(read.trials[1].epochs[1].train_loss));
  EXPECT_EQ(read.trials[0].best_test_accuracy(), (std::pair<double, std::int64_t>{0.8, 3}));
  EXPECT_EQ(read.trials[1].best_test_accuracy(), (std::pair<double, std::int64_t>{0.7, 1}));
  EXPECT_EQ(read.trials[1].last_test_accuracy(), 0.5);
  EXPECT_EQ(read.trials[0].epochs[0].weights.at("K.above_0.06"), 0.25);
}

TEST(TrainingFolder, UnderWay) {
  const test::TemporaryFolder folder;
  const std::string half = line(0, 4, "0.3", "0.9");
  const TrainingFolder growing =
      load_training(write_run(folder, "growing", line(0, 3, "0.4", "0.8") + half.substr(0, half.size() / 2)));
  EXPECT_EQ(growing.status, "unfinished");
  ASSERT_EQ(growing.trials.size(), 1u);
  EXPECT_EQ(growing.trials[0].epochs.size(), 1u);
  EXPECT_EQ(growing.trials[0].status, "running");
  // An epoch that was trained again, after a kill between metrics and checkpoint, counts once.
  const TrainingFolder again = load_training(write_run(
      folder, "again", line(0, 1, "0.7", "0.6") + line(0, 2, "0.5", "0.7") + line(0, 1, "0.6", "0.5")));
  ASSERT_EQ(again.trials[0].epochs.size(), 1u);
  EXPECT_EQ(again.trials[0].epochs[0].train_loss, 0.6);
  const fs::path empty = write_run(folder, "empty", "");
  EXPECT_TRUE(load_training(empty).trials.empty());
  EXPECT_NE(to_html(page_of({empty})).find("No epoch has ended yet"), std::string::npos);
}

TEST(TrainingFolder, Refusals) {
  const test::TemporaryFolder folder;
  test::expect_bad_input({"nothing"}, [&] { load_training(folder / "nothing"); });
  test::expect_bad_input({"not a folder of attmirror deep train"}, [&] { load_training(folder.path()); });
  write_file_atomically(folder / "config.json", "{\"format\": ");
  test::expect_bad_input({"not a folder of attmirror deep train"}, [&] { load_training(folder.path()); });
  write_file_atomically(folder / "config.json", "{\"format\": \"another\"}");
  test::expect_bad_input({"not a folder of attmirror deep train"}, [&] { load_training(folder.path()); });
  const fs::path no_json = write_run(folder, "a", line(0, 1, "0.7", "0.6") + "oops\n");
  test::expect_bad_input({"metrics.jsonl, line 2", "no JSON"}, [&] { load_training(no_json); });
  const fs::path no_epoch = write_run(folder, "b", "{\"trial\": 0}\n");
  test::expect_bad_input({"metrics.jsonl, line 1", "epoch", "missing"}, [&] { load_training(no_epoch); });
  const fs::path negative = write_run(folder, "c", "{\"trial\": -1, \"epoch\": 1, \"step\": 1}\n");
  test::expect_bad_input({"line 1", "trial", "-1"}, [&] { load_training(negative); });
  const fs::path results = write_run(folder, "d", line(0, 1, "0.7", "0.6"), "[1]");
  test::expect_bad_input({"results.json", "status"}, [&] { load_training(results); });
}

const Figure& figure_of(const Page& page, const std::string& id) {
  for (const PageBlock& block : page.sections.front().blocks)
    if (const auto* figure = std::get_if<Figure>(&block); figure && figure->id == id) return *figure;
  throw std::runtime_error("no figure " + id);
}

// A trial that has stopped counts with its last number.
TEST(TrainingFolder, CurvesHaveBandsOverTrials) {
  const test::TemporaryFolder folder;
  const fs::path run = write_run(folder, "run", two_trials);
  const fs::path other = write_run(folder, "other", line(0, 1, "0.3", "0.9"));
  const Page page = page_of({run, other});
  const Figure& figure = figure_of(page, "training-test-accuracy");
  ASSERT_EQ(figure.series.size(), 2u);
  const Series& both = figure.series[0];
  EXPECT_EQ(both.x, (std::vector<double>{1, 2, 3}));
  ASSERT_EQ(both.y.size(), 3u);
  EXPECT_NEAR(both.y[0], 0.65, 1e-12);
  EXPECT_NEAR(both.y[1], (0.6 + 0.5) / 2, 1e-12);  // trial 0 was not evaluated
  EXPECT_NEAR(both.y[2], (0.8 + 0.5) / 2, 1e-12);  // trial 1 has ended
  EXPECT_NEAR(both.high[0] - both.y[0], std::sqrt(0.5) * 0.1, 1e-12);
  EXPECT_TRUE(figure.series[1].low.empty());
  EXPECT_EQ(figure.series[1].mark, Series::Mark::points);
  const std::string html = to_html(page);
  for (const char* words :
       {"Training run", "Training other", "Hoyer", "md p = 1.1", "figure_training-weights-largest"})
    EXPECT_NE(html.find(words), std::string::npos) << words;
  EXPECT_EQ(page_of({run}).title, "Training run");
}

}  // namespace
}  // namespace attmirror

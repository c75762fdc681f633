// Trainings of attmirror 0.1.0, resumed by this version.
//
// LibTorch and the BLAS below it round in their own way on every machine. Where this one gives the weights of 0.1.0
// to a training in one go, it must give them to a resumed one as well; elsewhere the two are near.
#include "cli/old_files.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/data/safetensors.hpp>

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<json> epochs_of(const fs::path& run) {
  std::vector<json> epochs;
  std::istringstream lines(file_text(run / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    epochs.push_back(json::parse(line));
    for (const char* key : {"seconds", "epoch_seconds", "tokens_per_second"}) epochs.back().erase(key);
  }
  return epochs;
}

// The files of weights that a training leaves.
std::vector<std::string> finals_of(const fs::path& run) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(run))
    if (entry.path().filename().string().starts_with("final"))
      names.push_back(entry.path().filename().string());
  return names;
}

void expect_near_weights(const fs::path& old, const fs::path& ours) {
  const Safetensors a = load_safetensors(old), b = load_safetensors(ours);
  EXPECT_EQ(a.metadata, b.metadata);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (const auto& [name, tensor] : a.tensors) {
    ASSERT_TRUE(b.tensors.contains(name)) << name;
    const std::vector<double> x = tensor.to_doubles(name), y = b.tensors.at(name).to_doubles(name);
    ASSERT_EQ(x.size(), y.size()) << name;
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-2) << name << " at " << i;
  }
}

class OldTraining : public ::testing::TestWithParam<const char*> {
 protected:
  const TemporaryFolder folder;
  void SetUp() override {
    fs::copy(fixture("files-0.1.0/deep"), folder.path(), fs::copy_options::recursive);
    unpack_old("deep.tar.xz", folder.path());
  }

  json train(const std::string& name, const fs::path& run, const Words& more = {}) const {
    const Outcome outcome = attmirror_command(
        Words{"deep", "train", (folder / (name + ".toml")).string(), "--json", "-o", run.string()} + more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out);
  }
};

TEST_P(OldTraining, GoesOnToTheSameWeights) {
  const std::string name = GetParam();
  if (name == "sign" && std::ranges::count(components(), "xz") == 0)
    GTEST_SKIP() << "this build does not read the images, an .xz file";
  const fs::path half = folder / name / "half", whole = folder / name / "whole",
                 fresh = folder / name / "fresh";
  const std::size_t before = epochs_of(half).size();
  const json answer = train(name, half, {"--resume"}), results = read_json(whole / "results.json");
  train(name, fresh);
  EXPECT_EQ(answer["status"], "completed");
  ASSERT_EQ(answer["trials"].size(), results["trials"].size());
  for (std::size_t i = 0; i < results["trials"].size(); ++i)
    for (const char* seed : {"init_seed", "order_seed", "dropout_seed"})
      EXPECT_EQ(answer["trials"][i][seed], results["trials"][i][seed]);

  const std::vector<json> there = epochs_of(whole), here = epochs_of(half);
  ASSERT_EQ(there.size(), here.size());
  ASSERT_LT(before, here.size());
  for (std::size_t i = 0; i < there.size(); ++i) {
    for (const char* number : {"trial", "epoch", "step", "lr"}) EXPECT_EQ(there[i][number], here[i][number]);
    EXPECT_NEAR(there[i]["train_loss"], here[i]["train_loss"], 1e-2) << "epoch " << i;
  }
  EXPECT_EQ(std::vector(there.begin(), there.begin() + static_cast<std::ptrdiff_t>(before)),
            std::vector(here.begin(), here.begin() + static_cast<std::ptrdiff_t>(before)));
  const bool rounds_alike = epochs_of(fresh) == there;
  if (rounds_alike) {
    EXPECT_EQ(there, here);
  }
  for (const std::string& file : finals_of(whole)) {
    expect_near_weights(whole / file, half / file);
    if (rounds_alike) {
      EXPECT_EQ(load_safetensors(whole / file), load_safetensors(half / file)) << file;
    }
  }
  auto config = without_origin(read_json(whole / "config.json"));
  if (config["optimizer"]["name"] == "muon")
    config["optimizer"]["name"] = "muon-adamw";  // its name since then
  EXPECT_EQ(config, without_origin(read_json(half / "config.json")));
}

INSTANTIATE_TEST_SUITE_P(Optimizers, OldTraining, ::testing::Values("md", "muon", "adamw", "sign"));

}  // namespace
}  // namespace attmirror::test

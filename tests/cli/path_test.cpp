// attmirror path: the table, the folder, local paths, refusals and Ctrl-C.
#include "cli/command.hpp"
#include "data/npy.hpp"
#include <attmirror/data/npz.hpp>
#include <attmirror/descent/path_folder.hpp>
#include <attmirror/mirror/direction.hpp>

#include <csignal>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

using Json = nlohmann::json;

class PathCommand : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
  const std::string data = small_data(folder), out = (folder / "path").string();

  Json path(const Words& options, int code = 0) {
    const Outcome outcome = attmirror_command(Words{"path", data, "--json"} + options);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    return Json::parse(outcome.out);
  }
};

TEST_F(PathCommand, NearsTheMaxMarginSolutionAndKeepsItsPoints) {
  const Json result = path({"--norm", "1.75", "--radii", "10:1e3:3", "--starts", "1", "-o", out});
  EXPECT_EQ(result["status"], "converged");
  EXPECT_EQ(result["kind"], "global");
  ASSERT_EQ(result["points"].size(), 3U);
  const Json &first = result["points"][0], &last = result["points"][2];
  EXPECT_EQ(last["margin_status"], "certified");
  EXPECT_LT(last["directional_bregman"], 1e-4);
  EXPECT_GT(first["directional_bregman"], last["directional_bregman"]);
  EXPECT_GT(last["margin_ratio"], 0.97);
  EXPECT_LE(last["margin_ratio"], 1 + 1e-9);
  EXPECT_LE(last["gap"], 1e-8);

  const std::vector<PathPoint> points = load_path(out);
  ASSERT_EQ(points.size(), 3U);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(points[k].status, PointStatus::converged);
    EXPECT_NEAR(lp_norm(points[k].parameters.W, 1.75), points[k].radius, 1e-9 * points[k].radius);
    EXPECT_EQ(points[k].loss, result["points"][k]["loss"].get<double>());
    EXPECT_EQ(points[k].selected.tokens, result["points"][k]["selected"].get<std::vector<std::int64_t>>());
    EXPECT_GT(points[k].parameters.v.size(), 0);  // fixed, and kept
  }
  std::istringstream lines(file_text(folder / "path" / "metrics.jsonl"));
  std::string line;
  std::size_t count = 0;
  for (; std::getline(lines, line); ++count)
    EXPECT_EQ(Json::parse(line)["gap"], result["points"][count]["gap"]);
  EXPECT_EQ(count, 3U);
  const Json config = Json::parse(file_text(folder / "path" / "config.json"));
  EXPECT_EQ(config["format"], "attmirror path");
  EXPECT_EQ(config["norm"], "1.75");
  EXPECT_EQ(config["starts"], 1);
}

TEST_F(PathCommand, GivesEqualBytesForAnyNumberOfThreads) {
  path({"--radii", "1,30", "--starts", "3", "-o", out});
  path({"--radii", "1,30", "--starts", "3", "--threads", "2", "-o", out + "2"});
  for (const char* name : {"path.npz", "metrics.jsonl", "config.json"})
    EXPECT_EQ(file_text(folder / "path" / name), file_text(folder / "path2" / name)) << name;
}

TEST_F(PathCommand, HasPathsOfAllParameterizations) {
  const Json factors = path({"--params", "KQ", "--norm", "nuclear", "--radii", "100", "--starts", "1"});
  EXPECT_EQ(factors["norm"], "nuclear");
  EXPECT_LT(1 - factors["points"][0]["correlation"].get<double>(), 0.02);
  EXPECT_TRUE(factors["points"][0]["directional_bregman"].is_null());
  const Json prompt = path({"--params", "prompt", "--radii", "5", "--starts", "1"});
  EXPECT_EQ(prompt["points"][0]["status"], "converged");
  const std::string joint = (folder / "joint.npz").string();
  ASSERT_EQ(attmirror_command({"generate", "--kind", "joint-prompt", "-o", joint, "--quiet"}).code, 0);
  const Outcome outcome = attmirror_command({"path", joint, "--params", "prompt", "--train", "p,v", "--radii",
                                             "1000", "--decoder-scale", "2", "--starts", "1", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out)["points"][0];
  EXPECT_EQ(result["decoder_radius"], 2000.0);
  EXPECT_LT(result["log_loss"].get<double>(), -1000);
  EXPECT_LT(1 - result["correlation"].get<double>(), 1e-6);
}

TEST_F(PathCommand, FollowsGivenTokensAndDirections) {
  const std::string run = (folder / "run").string();
  ASSERT_EQ(attmirror_command({"train", data, "--normalized", "--steps", "500", "--quiet", "-o", run}).code,
            0);
  for (const Words& start :
       {Words{"--select", "run:" + run}, Words{"--start", "run:" + run}, Words{"--select", "global"}}) {
    const Json result = path(Words{"--radii", "1e3,1e4"} + start);
    EXPECT_EQ(result["kind"], "local");
    EXPECT_LT(1 - result["points"][1]["correlation"].get<double>(), 1e-5);
  }
  path({"--radii", "100", "-o", out, "--starts", "0"});
  NamedArrays arrays = load_npz(folder / "path" / "path.npz");
  const std::vector<double> W = arrays.at("W").to_doubles();
  const auto side = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(W.size()))));
  save_npz(folder / "W0.npz", {{"W", Array({side, side}, std::span<const double>(W))}});
  const Json again = path({"--radii", "100", "--start", "file:" + (folder / "W0.npz").string()});
  EXPECT_LT(again["points"][0]["evaluations"],
            60);  // it is there already; what is left is the look for saddles
}

TEST_F(PathCommand, PrintsATable) {
  const Outcome outcome = attmirror_command({"path", data, "--radii", "1,100", "--starts", "0"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* word :
       {"stationarity", "selected tokens", "margin ratio", "converged", "global path of W"})
    EXPECT_NE(outcome.out.find(word), std::string::npos) << outcome.out;
}

TEST_F(PathCommand, SaysThatARadiusWasNotReached) {
  const Json result = path({"--radii", "1,1000", "--starts", "0", "--max-iterations", "5"}, 1);
  EXPECT_EQ(result["status"], "stopped");
}

TEST_F(PathCommand, RefusesInOneSentenceAndWritesNothing) {
  expect_refusal({"path", data, "--norm", "nuclear", "-o", out}, 2, {"nuclear", "(K,Q)"});
  expect_refusal({"path", data, "--params", "KQ", "--norm", "2", "-o", out}, 2, {"nuclear"});
  expect_refusal({"path", data, "--radii", "3,2", "-o", out}, 2, {"radii[1]", "ascending"});
  expect_refusal({"path", data, "--radii", "1:x:3"}, 2, {"1:x:3"});
  expect_refusal({"path", data, "--start", "W0.npy"}, 2, {"start", "file:PATH"});
  expect_refusal({"path", data, "--start", "file:a.npy", "--select", "global"}, 2, {"both"});
  expect_refusal({"path", data, "--select", "global", "--starts", "3"}, 2, {"--starts", "local"});
  expect_refusal({"path", data, "--overwrite"}, 2, {"-o FOLDER"});
  expect_refusal({"path", data, "--tol", "0", "-o", out}, 2, {"tol is 0"});
  expect_refusal({"path", (folder / "none.npz").string()}, 2, {"none.npz"});
  EXPECT_FALSE(std::filesystem::exists(out));
  path({"--radii", "1", "--starts", "0", "-o", out});
  const std::string before = file_text(folder / "path" / "path.npz");
  expect_refusal({"path", data, "--radii", "2", "-o", out}, 2, {"--overwrite"});
  EXPECT_EQ(file_text(folder / "path" / "path.npz"), before);
  path({"--radii", "2", "--starts", "0", "-o", out, "--overwrite"});
  EXPECT_NE(file_text(folder / "path" / "path.npz"), before);
  // A run's folder is not a path's to replace.
  const std::string run = (folder / "run").string();
  ASSERT_EQ(attmirror_command({"train", data, "--steps", "3", "--quiet", "-o", run}).code, 0);
  const std::string config = file_text(folder / "run" / "config.json");
  EXPECT_EQ(attmirror_command({"path", data, "--radii", "1", "--starts", "0", "-o", run, "--overwrite"}).code,
            2);
  EXPECT_EQ(file_text(folder / "run" / "config.json"), config);
}

TEST_F(PathCommand, WritesWhatIsDoneOnCtrlC) {
  const std::string large = (folder / "large.npz").string();
  ASSERT_EQ(attmirror_command({"generate", "--samples", "60", "--tokens", "40", "--dim", "30", "--seed", "1",
                               "-o", large, "--quiet"})
                .code,
            0);
  RunningCommand command(
      {"path", large, "--norm", "1.3", "--radii", "1:1e4:400", "--starts", "4", "--quiet", "-o", out});
  ASSERT_TRUE(command.wait_until([&] { return command.catches(SIGINT) && command.cpu_seconds() > 0.5; }));
  command.signal(SIGINT);
  const Outcome outcome = command.wait();
  EXPECT_EQ(outcome.code, 130);
  EXPECT_NE(outcome.err.find("interrupted after"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("the same command with --resume continues"), std::string::npos) << outcome.err;
  EXPECT_LT(load_path(out).size(), 400U);
}

// Whatever stops it, --resume computes the radii that are missing, and the files are those of a path that was
// never stopped.
class PathResumed : public PathCommand {
 protected:
  const Words words = {"--norm", "1.3", "--radii", "1:1e3:24", "--starts", "2"};
  const std::string whole = (folder / "whole").string();

  void expect_same_files() {
    for (const char* name : {"config.json", "metrics.jsonl", "path.npz"})
      EXPECT_EQ(file_text(std::filesystem::path(out) / name), file_text(std::filesystem::path(whole) / name))
          << name;
  }
};

TEST_F(PathResumed, AfterAKill) {
  const std::string large = (folder / "large.npz").string();
  ASSERT_EQ(attmirror_command({"generate", "--samples", "30", "--tokens", "20", "--dim", "15", "--seed", "1",
                               "-o", large, "--quiet"})
                .code,
            0);
  for (const Words& kind : {Words{}, Words{"--select", "global"}}) {
    Words all = Words{"path", large, "--norm", "1.3", "--radii", "1:1e3:24", "--quiet"} + kind;
    if (kind.empty()) all = all + Words{"--starts", "2"};
    const int code = attmirror_command(all + Words{"-o", whole, "--overwrite"}).code;
    const std::vector<PathPoint> points = load_path(whole);
    ASSERT_EQ(points.size(), 24U);
    {
      RunningCommand command(all + Words{"-o", out, "--overwrite"});
      FileChanges saved(std::filesystem::path(out) / "path.npz");
      ASSERT_TRUE(command.wait_until([&] { return saved.seen() >= 1; }));
      command.signal(SIGKILL);
      command.wait();
    }
    const std::size_t kept = load_path(out).size();
    EXPECT_GE(kept, 1U);
    const Outcome resumed = attmirror_command(all + Words{"-o", out, "--resume"});
    EXPECT_EQ(resumed.code, code) << resumed.err;
    expect_same_files();
  }
}

TEST_F(PathResumed, WhenFinishedOrWithMoreRadii) {
  path(words + Words{"-o", whole});
  path(words + Words{"-o", out});
  const std::string before = file_text(folder / "path" / "path.npz");
  const Outcome again = attmirror_command(Words{"path", data, "-o", out, "--resume"} + words);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.err.find("resuming after 24 of 24 radii"), std::string::npos) << again.err;
  EXPECT_EQ(file_text(folder / "path" / "path.npz"), before) << "there was nothing left to do";
  // A path may be made longer.
  path({"--radii", "1,10", "--starts", "2", "-o", out, "--overwrite"});
  const Outcome longer =
      attmirror_command({"path", data, "--radii", "1,10,100", "--starts", "2", "-o", out, "--resume"});
  EXPECT_EQ(longer.code, 0) << longer.err;
  EXPECT_NE(longer.err.find("resuming after 2 of 3 radii"), std::string::npos) << longer.err;
  path({"--radii", "1,10,100", "--starts", "2", "-o", whole, "--overwrite"});
  expect_same_files();
}

TEST_F(PathResumed, RefusesAnotherPath) {
  path({"--radii", "1,10", "--starts", "1", "-o", out});
  const std::string before = file_text(folder / "path" / "path.npz");
  const auto refuse = [&](const Words& other, std::string_view why) {
    expect_refusal(Words{"path", data, "-o", out, "--resume"} + other, 2, {why});
  };
  refuse({"--radii", "1,10", "--starts", "2"},
         "cannot resume the path in " + out + ": starts is 1 there and 2 here");
  refuse({"--radii", "1,10", "--starts", "1", "--norm", "3"}, "norm is 2 there and 3 here");
  refuse({"--radii", "1,10", "--starts", "1", "--loss", "exponential"}, "loss is logistic there");
  refuse({"--radii", "1,20,30", "--starts", "1"}, "radius 10 is finished: expected 20");
  refuse({"--radii", "1", "--starts", "1"}, "radius 10 is finished: expected at most 1 radii");
  refuse({"--overwrite"}, "both --resume and --overwrite");
  expect_refusal({"path", data, "--resume"}, 2, {"--resume is given without a folder"});
  expect_refusal({"path", data, "-o", out}, 2, {"already holds a path: give --resume to continue it"});
  EXPECT_EQ(file_text(folder / "path" / "path.npz"), before);
  // Nothing there yet: a script may say --resume always.
  const std::string fresh = (folder / "fresh").string();
  EXPECT_EQ(path({"--radii", "1", "--starts", "0", "-o", fresh, "--resume"})["points"].size(), 1U);
}

TEST_F(PathCommand, NothingToFollowIsRefused) {
  const std::string zero = (folder / "zero.npy").string();
  save_npy(zero, Array({10, 10}, std::vector<double>(100)));
  expect_refusal({"path", data, "--radii", "1,10", "--start", "file:" + zero}, 2, {"W = 0", "a direction"});
  NamedArrays arrays = load_npz(data);
  arrays.at("v") = Array(std::vector<double>(10));
  const std::string blind = (folder / "blind.npz").string();
  save_npz(blind, arrays);
  expect_refusal({"path", blind, "--radii", "1,10"}, 2, {"gradient of the loss is 0"});
}

}  // namespace
}  // namespace attmirror::test

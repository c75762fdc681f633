// What the folders of all results have in common: one writer, no links inside, nothing of others replaced; and info and
// report know each of them.
#include "cli/command.hpp"
#include "cli/old_files.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class Folders : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
  const std::string data = small_data(folder), out = (folder / "out").string();
  const fs::path mine = folder / "mine.txt";

  Folders() { std::ofstream(mine) << "mine"; }

  static void succeed(const Words& words) {
    const Outcome outcome = attmirror_command(words + Words{"--quiet"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }
  Json info(const fs::path& path) const {
    const Outcome outcome = attmirror_command({"info", path.string(), "--json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(attmirror_command({"info", path.string()}).code, 0);
    return outcome.out.empty() ? Json() : Json::parse(outcome.out);
  }

  // Puts a link to a file of the user's in the place of a file, and expects a refusal that changes nothing.
  void refuse_link(const fs::path& file, const Words& words) const {
    const fs::path kept = folder / "kept";
    const bool there = fs::exists(file);
    if (there) fs::rename(file, kept);
    fs::create_symlink(mine, file);
    expect_refusal(words, 2, {file.string() + " is a symbolic link"});
    EXPECT_TRUE(fs::is_symlink(file));
    EXPECT_EQ(file_text(mine), "mine");
    fs::remove(file);
    if (there) fs::rename(kept, file);
  }
};

TEST_F(Folders, LinksInsideARunAreRefused) {
  const Words words{"train", data, "--steps", "20", "-o", out};
  succeed(words);
  const std::string before = file_text(out + "/result.json");
  for (const char* name : {"metrics.jsonl", "checkpoint.npz", "trace.npz", "final.npz"}) {
    refuse_link(fs::path(out) / name, {"train", data, "--steps", "40", "-o", out, "--resume"});
    refuse_link(fs::path(out) / name, words + Words{"--overwrite"});
  }
  EXPECT_EQ(file_text(out + "/result.json"), before);
  // The folder itself may be a link.
  fs::create_directory_symlink(out, folder / "link");
  succeed({"train", data, "--steps", "40", "-o", (folder / "link").string(), "--resume"});
}

TEST_F(Folders, LinksInsideANextTokenRunAreRefused) {
  const Words words{"next-token", "--steps", "20", "--resume", "-o", out};
  succeed(words);
  const Words more{"next-token", "--steps", "40", "--ov-steps", "20", "--resume", "-o", out};
  for (const char* name : {"sentences.txt", "targets.npz", "final.npz", "W_kq", "W_kq/metrics.jsonl"})
    refuse_link(fs::path(out) / name, more);
  succeed(more);
}

TEST_F(Folders, LinksInsideAReproductionAreRefused) {
  const Words words{"reproduce", "p2-lemma", "--quick", "-o", out};
  succeed(words);
  for (const char* name : {"results/p2-lemma.json", "report.html", "results", "figures"})
    if (fs::exists(fs::path(out) / name)) refuse_link(fs::path(out) / name, words);
  succeed(words);
}

TEST_F(Folders, AReproductionKeepsPagesOfOthers) {
  const Words words{"reproduce", "p2-lemma", "--quick", "-o", out};
  succeed(words);
  std::ofstream(out + "/report.html") << "mine";
  expect_refusal(words, 2, {"report.html", "no page of attmirror reproduce"});
  EXPECT_EQ(file_text(out + "/report.html"), "mine");
  // A page of ours, but of something else.
  succeed({"train", data, "--steps", "5", "-o", (folder / "run").string()});
  fs::remove(out + "/report.html");
  succeed({"report", (folder / "run").string(), "--overwrite", "-o", out + "/report.html"});
  expect_refusal(words, 2, {"no page of attmirror reproduce"});
  fs::remove(out + "/report.html");
  succeed(words);
  // Somebody's own folder of results is none of ours.
  const fs::path own = folder / "own";
  fs::create_directories(own / "results");
  std::ofstream(own / "results" / "accuracy.json") << "{\"accuracy\": 0.9}";
  expect_refusal({"reproduce", "p2-lemma", "--quick", "-o", own.string()}, 2, {"holds other things"});
}

TEST_F(Folders, NextTokenHasOneWriter) {
  const Words words{"next-token", "--steps", "100000000", "--quiet", "-o", out};
  RunningCommand command(words);
  ASSERT_TRUE(command.wait_until([&] { return fs::exists(out + "/sentences.txt"); }));
  expect_refusal(words + Words{"--resume"}, 3, {out, "is in use"});
  command.signal(SIGKILL);
  command.wait();
}

TEST_F(Folders, APathHasOneWriter) {
  const std::string large = (folder / "large.npz").string();
  succeed({"generate", "--samples", "60", "--tokens", "40", "--dim", "30", "-o", large});
  RunningCommand command({"path", large, "--norm", "1.3", "--radii", "1:1e4:400", "--quiet", "-o", out});
  ASSERT_TRUE(command.wait_until([&] { return command.catches(SIGINT) && fs::exists(out); }));
  expect_refusal({"path", data, "--radii", "1", "-o", out, "--overwrite"}, 3, {out, "is in use"});
  command.signal(SIGKILL);
  command.wait();
  // Nothing was written yet: the folder may be used.
  succeed({"path", data, "--radii", "1", "--starts", "0", "-o", out});
}

TEST_F(Folders, BelongToOneKind) {
  const std::string path = (folder / "path").string();
  succeed({"path", data, "--radii", "1", "--starts", "0", "-o", path});
  for (const Words& words :
       {Words{"train", data}, Words{"next-token"}, Words{"reproduce", "p2-lemma", "--quick"}})
    expect_refusal(words + Words{"--overwrite", "-o", path}, 2, {"holds a result of attmirror path"});
}

// Killed just behind config.json, a run must not end as completed without its data.
TEST_F(Folders, NextTokenWritesWhatIsMissingWhenItGoesOn) {
  const Words words{"next-token", "--steps", "20", "--embedding", "gaussian", "-o", out};
  const std::string whole = (folder / "whole").string();
  succeed({"next-token", "--steps", "20", "--embedding", "gaussian", "-o", whole});
  fs::create_directory(out);
  fs::copy_file(whole + "/config.json", out + "/config.json");
  std::ofstream(out + "/.sentences.txt.tmp-1-0") << "half";
  succeed(words + Words{"--resume"});
  for (const char* name : {"sentences.txt", "vocabulary.txt", "embedding.npy", "targets.npz", "final.npz"})
    EXPECT_EQ(file_text(fs::path(out) / name), file_text(fs::path(whole) / name)) << name;
  EXPECT_FALSE(fs::exists(out + "/.sentences.txt.tmp-1-0"));
  // Also where all stages have ended.
  fs::remove(out + "/vocabulary.txt");
  succeed(words + Words{"--resume"});
  EXPECT_EQ(file_text(out + "/vocabulary.txt"), file_text(whole + "/vocabulary.txt"));
}

TEST_F(Folders, LeftoversOfKilledWritersAreRemoved) {
  const std::string path = (folder / "path").string();
  const Words words{"path", data, "--radii", "1", "--starts", "0", "-o", path};
  succeed(words);
  std::ofstream(path + "/.path.npz.tmp-1-0") << "half";
  std::ofstream(path + "/.notes.txt.tmp-1-0") << "mine";
  succeed(words + Words{"--overwrite"});
  EXPECT_FALSE(fs::exists(path + "/.path.npz.tmp-1-0"));
  EXPECT_TRUE(fs::exists(path + "/.notes.txt.tmp-1-0"));
}

// All that attmirror writes, described and on one page.
TEST_F(Folders, EveryKindIsDescribedAndReported) {
  const auto place = [&](const char* name) { return (folder / name).string(); };
  succeed({"train", data, "--steps", "50", "-o", place("run")});
  succeed({"path", data, "--radii", "1,10", "--starts", "0", "-o", place("path")});
  succeed({"next-token", "--steps", "20", "-o", place("words")});
  succeed({"reproduce", "p2-lemma", "--quick", "-o", place("papers")});
  succeed({"margin", data, "-o", place("svm.npz")});
  std::ofstream(place("sweep.toml"))
      << "[data]\ngenerator = \"sphere\"\n[train]\nsteps = 20\n[grid]\nseed = \"1:2\"\n";
  succeed({"sweep", place("sweep.toml"), "-o", place("sweep.db")});
  unpack_old("deep.tar.xz", folder.path());
  const std::vector<std::pair<std::string, std::string>> kinds{
      {"run", "run"},          {"path", "path"},      {"words", "next-token"}, {"papers", "reproduction"},
      {"svm.npz", "solution"}, {"sweep.db", "sweep"}, {"md/whole", "training"}};
  Words report{"report", "--json", "-o", place("report.html")};
  for (const auto& [name, kind] : kinds) {
    EXPECT_EQ(info(folder / name)["kind"], kind) << name;
    const Outcome alone = attmirror_command(
        {"report", "--quiet", "--overwrite", (folder / name).string(), "-o", place("one.html")});
    EXPECT_EQ(alone.code, 0) << name << ": " << alone.err;
    report.push_back((folder / name).string());
  }
  const Outcome mixed = attmirror_command(report);
  ASSERT_EQ(mixed.code, 0) << mixed.err;
  const Json answer = Json::parse(mixed.out);
  for (std::size_t i = 0; i < kinds.size(); ++i) EXPECT_EQ(answer["sources"][i]["kind"], kinds[i].second);
  const std::string html = file_text(place("report.html"));
  for (const char* words : {"Report of 7 results", "Run run", "Run W<sub>kq</sub>", "Path path",
                            "Max-margin solution svm.npz", "Training whole", "Sweep", "id=\"p2-lemma\""})
    EXPECT_NE(html.find(words), std::string::npos) << words;

  EXPECT_EQ(info(folder / "path")["points"].size(), 2u);
  EXPECT_EQ(info(folder / "papers")["experiments"][0]["id"], "p2-lemma");
  EXPECT_EQ(info(folder / "svm.npz")["status"], "certified");
  for (const auto& [name, content] : {std::pair{"run/trace.npz", "trace"},
                                      {"run/final.npz", "final"},
                                      {"run/checkpoint.npz", "checkpoint"},
                                      {"path/path.npz", "path"},
                                      {"words/targets.npz", "targets"},
                                      {"words/final.npz", "final"}})
    EXPECT_EQ(info(folder / name)["content"], content) << name;
  EXPECT_EQ(info(data)["kind"], "dataset");
  EXPECT_EQ(info(folder / "sign/whole/final.safetensors")["kind"], "weights");
  EXPECT_EQ(info(folder / "sign/half/checkpoint.safetensors")["content"], "checkpoint");
}

// What 0.1.0 wrote has its place, too.
TEST_F(Folders, OfTheFirstVersionAreDescribedAndReported) {
  const OldFiles files;
  Words report{"report", "--quiet", "-o", (folder / "report.html").string()};
  for (const OldCommand& command : files.commands({"paths", "svm"})) {
    SCOPED_TRACE(command.name);
    const fs::path old = files / command.name;
    EXPECT_EQ(info(old)["kind"], old.extension() == ".npz" ? "solution" : "path");
    report.push_back(old.string());
  }
  const Outcome outcome = attmirror_command(report);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

}  // namespace
}  // namespace attmirror::test

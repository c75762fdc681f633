// attmirror next-token: what it prints and keeps, contradictions, refusals, kill -9 and resume.
#include "cli/command.hpp"
#include "support/paths.hpp"
#include <attmirror/data/npz.hpp>
#include <attmirror/descent/run_folder.hpp>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Who follows whom, and two sentences after q that agree: a > b > c.
constexpr const char* good_text =
    "a x\nb y\nc z\nq w\n"
    "a b q x\n"
    "b c q y\n";

class NextToken : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
  const std::string out = (folder / "run").string(), text = (folder / "sentences.txt").string();

  void write(const std::string& sentences) const { std::ofstream(text) << sentences; }
  std::string file(const char* name, const std::string& content) const {
    std::ofstream(folder / name) << content;
    return (folder / name).string();
  }
  static Json run(const Words& options, int code = 0) {
    const Outcome outcome = attmirror_command(Words{"next-token", "--json"} + options);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    return Json::parse(outcome.out);
  }
  // Refused with `words`, and nothing is written.
  void refused(const Words& options, int code, std::initializer_list<std::string_view> words) const {
    expect_refusal(Words{"next-token"} + options + Words{"-o", out}, code, words);
    EXPECT_FALSE(fs::exists(out));
  }
};

TEST_F(NextToken, TrainsGeneratedSentencesInTwoStages) {
  const Json result = run({"--vocab", "20", "--sentences", "100", "--seed", "1", "-o", out});
  EXPECT_EQ(result["status"], "completed");
  EXPECT_EQ(result["realizable"], true);
  EXPECT_EQ(result["vocabulary"], 20);
  EXPECT_EQ(result["sentences"], 100);
  ASSERT_EQ(result["stages"].size(), 2U);
  const Json &first = result["stages"][0], &second = result["stages"][1];
  EXPECT_EQ(first["stage"], "W_ov");
  EXPECT_LT(first["direction_W_ov"], 1e-12);
  EXPECT_NEAR(first["norm_rate"], 1, 1e-9);
  EXPECT_NEAR(std::log(first["loss"].get<double>()), std::log(8.2e-13), 0.02);
  EXPECT_EQ(second["stage"], "W_kq");
  EXPECT_LT(second["direction_W_kq"], 0.05);
  EXPECT_EQ(second["accuracy"], 1);
  EXPECT_EQ(result["targets"]["W_ov"]["status"], "certified");
  EXPECT_NEAR(result["targets"]["W_ov"]["norm"], std::sqrt(19.0), 1e-9);
  EXPECT_EQ(result["targets"]["W_kq"]["status"], "certified");
  EXPECT_LE(result["targets"]["W_kq"]["gap"], 1e-10);
  EXPECT_EQ(result["accuracy"], 1);
  EXPECT_EQ(result["unseen_accuracy"]["non-comparable"], 1);
  EXPECT_GT(result["unseen_accuracy"]["same-order"], .8) << "some rest on pairs that training never compared";
  EXPECT_LT(result["unseen_accuracy"]["longer"], 1);
  EXPECT_EQ(result["extended_order"]["holds"], true);

  EXPECT_EQ(Json::parse(file_text(fs::path(out) / "result.json")), result);
  const NamedArrays last = load_npz(fs::path(out) / "final.npz");
  EXPECT_EQ(last.at("W_ov").shape(), (Shape{20, 20}));
  EXPECT_EQ(last.at("W_kq").shape(), (Shape{20, 20}));
  EXPECT_TRUE(load_npz(fs::path(out) / "targets.npz").contains("lambda_W_kq"));
  const SavedRun stage = load_run(fs::path(out) / "W_kq");
  EXPECT_EQ(stage.parameters.matrix("W_kq").rows(), 20);
  EXPECT_EQ(stage.records.back().metrics.front().name, "accuracy");
  // What it wrote is what it reads: the same training from the file.
  const Json again = run({(fs::path(out) / "sentences.txt").string(), "--vocabulary",
                          (fs::path(out) / "vocabulary.txt").string()});
  EXPECT_EQ(again["stages"][0]["loss"], first["loss"]);
  EXPECT_NEAR(again["stages"][1]["loss"].get<double>() / second["loss"].get<double>(), 1, 1e-6);
  EXPECT_EQ(attmirror_command({"info", (fs::path(out) / "W_kq").string()}).code, 0);
}

TEST_F(NextToken, SaysThatThereAreNoTargets) {
  write(good_text);
  const Json json = run({text, "--optimizer", "adagrad", "--steps", "20"});
  ASSERT_EQ(json["targets"]["left_out"].size(), 1u) << json;
  EXPECT_EQ(json["targets"]["left_out"][0], "theory names no norm whose margin adagrad maximizes");
  EXPECT_TRUE(json["targets"]["W_kq"].is_null()) << json;
}

TEST_F(NextToken, ReadsSentences) {
  write(good_text);
  const std::string more = file("unseen.txt", "a c q x\nb c c q y\n");
  const Outcome outcome = attmirror_command({"next-token", text, "--test", more, "--steps", "2000"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* words : {"2 sentences", "8 words", "successors from the two-word lines", "realizable",
                            "W_kq*", "certified", "extended order", "1.0000 on unseen ones"})
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
  const Json joint =
      run({text, "--stages", "joint", "--embedding", "gaussian", "--dim", "12", "--steps", "3000"});
  ASSERT_EQ(joint["stages"].size(), 1U);
  EXPECT_EQ(joint["accuracy"], 1);
  EXPECT_GT(joint["stages"][0]["norm_W_ov"], 0);
  for (const Words& optimizer :
       {Words{"--optimizer", "md", "--p", "1.5"}, Words{"--optimizer", "adam", "--lr", ".05"}})
    EXPECT_EQ(run(Words{text, "--steps", "3000"} + optimizer)["accuracy"], 1);
}

TEST_F(NextToken, NamesTheCycle) {
  write("a x\nb y\nc z\nq w\na b q x\nb c q y\nc a q z\n");
  const Outcome outcome = attmirror_command({"next-token", text, "-o", out});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("after q: a > b (line 5) > c (line 6) > a (line 7)"), std::string::npos)
      << outcome.err;
  EXPECT_FALSE(fs::exists(out));
  const Json json = run({text}, 1);
  EXPECT_EQ(json["status"], "contradictory");
  EXPECT_EQ(json["query"], "q");
  EXPECT_EQ(json["cycle"], (Json{"a", "b", "c"}));
  EXPECT_EQ(json["lines"], (Json{5, 6, 7}));

  const Json cyclic = run({text, "--cyclic", "--readout", "attention", "--steps", "2000", "-o", out});
  EXPECT_EQ(cyclic["realizable"], false);
  EXPECT_EQ(cyclic["targets"]["finite"]["converged"], true);
  EXPECT_EQ(cyclic["stages"].size(), 1U);
}

TEST_F(NextToken, NamesOtherContradictions) {
  write("a x\nb y\nq w\na b q z\n");
  refused({text}, 1, {"line 4", "\"a b q\"", "\"z\""});
  write("a x\na y\nb z\nq w\na b q x\n");
  refused({text}, 1, {"\"a\" has 2 successors", "\"x\"", "\"y\""});
  // Li et al.: the label is one of the words.
  write("a b q a\nb a q b\n");
  refused({text}, 1, {"after q: a > b (line 1) > a (line 2)"});
}

TEST_F(NextToken, SkipsWhatTheModelCannotExplain) {
  // Line 5 is kept; 6 contradicts it; 7 has a label that follows no word; "e" of 9 has no successor; 3 and 8 are short.
  write("a x\nb y\n\nq w\na b q x\nb a q y\na b q z\nalone\na e q x\na b q x\n");
  refused({text}, 2, {"line 3 is empty", "--skip-unexplained leaves such lines out"});
  const Json result = run({text, "--skip-unexplained", "--steps", "200", "-o", out});
  EXPECT_EQ(result["realizable"], true);
  EXPECT_EQ(result["sentences"], 1);
  const Json& skipped = result["skipped"];
  EXPECT_EQ(skipped["sentences"], 5);
  EXPECT_EQ(skipped["kept"], 2) << "the line is there twice";
  EXPECT_EQ(skipped["skipped"],
            (Json{{"too short", 2}, {"no successor", 1}, {"unexplained label", 1}, {"contradiction", 1}}));
  EXPECT_EQ(skipped["first_lines"],
            (Json{{"no successor", 9}, {"unexplained label", 7}, {"contradiction", 6}}));
  // What is kept can be trained on again, without the option.
  EXPECT_EQ(
      run({out + "/sentences.txt", "--vocabulary", out + "/vocabulary.txt", "--steps", "200"})["sentences"],
      1);
  const std::string screen =
      attmirror_command({"next-token", text, "--skip-unexplained", "--steps", "50"}).out;
  for (const char* word : {"kept        2 of 5 sentences", "2 of fewer than two words", "(first in line 9)",
                           "1 whose last word is the successor of no other (first in line 7)",
                           "1 that contradict sentences kept before them (first in line 6)"})
    EXPECT_NE(screen.find(word), std::string::npos) << word << " is not in:\n" << screen;
}

TEST_F(NextToken, OfContradictionsTheFirstStay) {
  const std::string collocations = "a x\nb y\nc z\nq w\n";
  write(collocations + "a b q x\nb c q y\nc a q z\n");
  EXPECT_EQ(run({text, "--skip-unexplained", "--steps", "50"})["skipped"]["first_lines"]["contradiction"], 7);
  write(collocations + "c a q z\nb c q y\na b q x\n");
  EXPECT_EQ(run({text, "--skip-unexplained", "--steps", "50"})["skipped"]["first_lines"]["contradiction"], 7);
  // Where cycles are wanted they stay; labels without explanation do not.
  write(collocations + "a b q x\nb c q y\nc a q z\na b q w x\nb c q a\n");
  const Json cyclic =
      run({text, "--skip-unexplained", "--cyclic", "--readout", "attention", "--steps", "200"});
  EXPECT_EQ(cyclic["realizable"], false);
  EXPECT_EQ(cyclic["skipped"]["skipped"], (Json{{"no successor", 1}, {"unexplained label", 1}}));
  // Of several successors the most frequent.
  write("a y\na x\na x\nb y\nq w\na b q x\n");
  EXPECT_EQ(run({text, "--skip-unexplained", "--steps", "50"})["skipped"]["ambiguous_words"], 1);
}

TEST_F(NextToken, MessagesNameTheOptionThatSkips) {
  write("a x\nb y\nq w\na b q z\na b q x\n");
  refused({text}, 1, {"line 4", "1 of 2 sentences is like that", "--skip-unexplained leaves out"});
  write("a x\nb y\nq w\na b q x\nb a q y\n");
  refused({text}, 1,
          {"after q: a > b", "--skip-unexplained leaves out those that contradict earlier ones", "--cyclic"});
  write("a x\na y\nb z\nq w\na b q x\n");
  refused({text}, 1, {"2 successors", "--skip-unexplained takes the most frequent"});
  write("a x\nq w\na b q x\n");
  refused({text}, 2, {"\"b\" has no successor", "--skip-unexplained leaves such lines out"});
  refused({"--skip-unexplained"}, 2, {"--skip-unexplained is given", "generated"});
  write("a x\nq w\na q z\n");
  refused({text, "--skip-unexplained"}, 1,
          {"none of 1 sentences is left", "1 whose last word is the successor of no other"});
  EXPECT_EQ(run({text, "--skip-unexplained"}, 1)["kind"], "nothing left");
}

// The example text: a few hundred plain sentences, of which a third can be explained and are learned.
TEST_F(NextToken, LearnsFromOrdinaryText) {
  const std::string ordinary = (source_folder() / "examples" / "ordinary_text.txt").string();
  refused({ordinary}, 1, {"so that no attention predicts it", "--skip-unexplained"});
  const Json result =
      run({ordinary, "--skip-unexplained", "--lr", "0.05", "--ov-lr", "0.5", "--steps", "1000"});
  EXPECT_EQ(result["skipped"]["sentences"], 320);
  EXPECT_GT(result["skipped"]["kept"], 80);
  EXPECT_GT(result["skipped"]["skipped"]["contradiction"], 0);
  EXPECT_EQ(result["accuracy"], 1);
}

TEST_F(NextToken, RefusesBadSentences) {
  write("a x\n\nq w\na q x\n");
  refused({text}, 2, {"sentences.txt", "line 2", "empty"});
  write("a x\nq w\na\na q x\n");
  refused({text}, 2, {"line 3", "one word"});
  write("a a\na a a\n");
  refused({text}, 2, {"sentences.txt has one word, \"a\""});
  write("a x\nq w\na b q x\n");
  refused({text}, 2, {"line 3", "\"b\"", "successor"});
  write(good_text);
  const std::string words = file("words.txt", "a\nb\nc\nq\nx\ny\nz\n");
  refused({text, "--vocabulary", words}, 2, {"\"w\"", "not in the vocabulary"});
  const std::string more = file("unseen.txt", "a c q x\na zebra q x\n");
  refused({text, "--test", more}, 2, {"unseen.txt", "line 2", "zebra"});
  write("");
  refused({text}, 2, {"sentences.txt"});
  refused({(folder / "none.txt").string()}, 2, {"none.txt"});
  write("a x\nq w\n\xff\xfe q x\n");
  refused({text}, 2, {"line 3", "UTF-8"});
}

TEST_F(NextToken, RefusesOptionsThatMakeNoSense) {
  write(good_text);
  refused({"--vocab", "1"}, 2, {"vocabulary is 1"});
  refused({"--sentences", "0"}, 2, {"sentences is 0"});
  refused({"--lengths", "6:4"}, 2, {"max_length is 4"});
  refused({"--lengths", "x"}, 2, {"lengths"});
  refused({"--order", "four"}, 2, {"order is \"four\""});
  refused({text, "--vocab", "8"}, 2, {"--vocab is given", "sentences come from"});
  refused({"--collocations", "copy"}, 2, {"--collocations is given", "generated"});
  refused({"--embedding", "two-hot"}, 2, {"two-hot"});
  refused({"--embedding", "one-hot", "--dim", "7"}, 2, {"--dim is given"});
  refused({"--embedding", "orthonormal", "--dim", "7"}, 2, {"dim", "7"});
  refused({"--embedding", "file:none.npy"}, 2, {"none.npy"});
  refused({"--stages", "three"}, 2, {"stages is \"three\""});
  refused({"--stages", "joint", "--ov-steps", "5"}, 2, {"--ov-steps is given", "joint"});
  refused({"--stages", "joint", "--readout", "attention"}, 2, {"attention"});
  refused({"--optimizer", "md", "--p", "1"}, 2, {"p is 1"});
  refused({"--optimizer", "adagrad", "--targets", "on"}, 2, {"targets is on", "adagrad"});
  refused({"--ov-lr", "0"}, 2, {"ov-lr is 0"});
  refused({"--steps", "0"}, 2, {"ov-steps is 0 and init is zero"});
  refused({"--jacobian", "textbook"}, 2, {"--jacobian is given", "safe"});
  refused({"--schedule", "polyak", "--normalized"}, 2, {"polyak", "normalized"});
  refused({"--readout", "attention", "--unseen", "5"}, 2, {"--unseen is given", "attention"});
  refused({"--collocations", "zzz", text}, 2, {"expected auto, lines, copy or bigrams"});
  refused({"--keep", "zzz"}, 2, {"expected auto, parameters or metrics"});
  refused({"--steps", "-3"}, 2, {"steps is -3"});
  refused({"--resume", "--overwrite"}, 2, {"both --resume and --overwrite"});
  expect_refusal({"next-token", "--resume"}, 2, {"--resume is given without a run folder"});
}

TEST_F(NextToken, KeepsWhatIsThere) {
  run({"--steps", "20", "-o", out});
  expect_refusal({"next-token", "--steps", "20", "-o", out}, 2,
                 {"already holds a run", "--resume", "--overwrite"});
  expect_refusal({"next-token", "--steps", "20", "--seed", "2", "--resume", "-o", out}, 2, {"cannot resume"});
  // A run that is refused leaves every byte where it was.
  const auto bytes = [&] {
    std::string all;
    for (const char* name : {"config.json", "sentences.txt", "targets.npz", "final.npz", "result.json",
                             "W_ov/final.npz", "W_kq/final.npz"})
      all += file_text(fs::path(out) / name);
    return all;
  };
  const std::string before = bytes();
  const Words same{"next-token", "--steps", "20", "--resume", "-o", out};
  for (const Words& other : {Words{"--seed", "3"}, Words{"--lr", "0.3"}, Words{"--stages", "joint"},
                             Words{"--readout", "attention"}, Words{"--cyclic"},
                             Words{"--record", "every:10"}, Words{"--embedding", "gaussian"}})
    expect_refusal(same + other, 2, {"cannot resume"});
  expect_refusal({"next-token", "--steps", "40", "--resume", "-o", out}, 2,
                 {"ov_steps is 20 there and 40 here", "W_kq was trained with that W_ov"});
  EXPECT_EQ(bytes(), before);
  const Json again = run({"--steps", "20", "--resume", "-o", out});
  EXPECT_EQ(again["status"], "completed");
  const Json longer = run({"--steps", "40", "--ov-steps", "20", "--resume", "-o", out});
  EXPECT_EQ(longer["steps"], 40);
  EXPECT_EQ(Json::parse(file_text(fs::path(out) / "config.json"))["steps"], 40);
  const Json straight = run({"--steps", "40", "--ov-steps", "20"});
  EXPECT_EQ(longer["loss"], straight["loss"]);
  run({"--steps", "20", "--embedding", "gaussian", "--overwrite", "-o", out});
  EXPECT_TRUE(fs::exists(fs::path(out) / "embedding.npy"));
  run({"--steps", "20", "--targets", "off", "--overwrite", "-o", out});
  EXPECT_FALSE(fs::exists(fs::path(out) / "embedding.npy"));
  EXPECT_FALSE(fs::exists(fs::path(out) / "targets.npz"));
  run({"--steps", "20", "--stages", "joint", "--overwrite", "-o", out});
  EXPECT_FALSE(fs::exists(fs::path(out) / "W_kq"));
  std::ofstream(fs::path(out) / "config.json") << "{\"format\": \"something\"}";
  expect_refusal({"next-token", "--steps", "20", "--overwrite", "-o", out}, 2, {"holds something else"});
}

// The sentences of the user are in the folder: they stay.
TEST_F(NextToken, InfoRefusesADamagedAnswer) {
  const std::string out = (folder / "damaged").string();
  ASSERT_EQ(attmirror_command({"next-token", "--vocab", "4", "--sentences", "6", "--steps", "2", "--ov-steps",
                               "2", "--quiet", "-o", out})
                .code,
            0);
  for (const char* answer :
       {R"({"status": 5})", R"({"status": "completed", "stages": [3]})",
        R"({"status": "completed", "stages": [{"stage": "W_ov", "steps": "many"}]})", "[", "7"}) {
    std::ofstream(out + "/result.json") << answer;
    if (std::string_view(answer) == "7") {  // no answer: it is unfinished
      EXPECT_EQ(attmirror_command({"info", out}).code, 0);
      continue;
    }
    expect_refusal({"info", out}, 2, {"damaged"});
  }
}

TEST_F(NextToken, LeavesFilesOfOthersAlone) {
  write(good_text);
  expect_refusal({"next-token", text, "-o", folder.path().string()}, 2, {"already holds sentences.txt"});
  EXPECT_EQ(file_text(text), good_text);
}

// Two sentences of the same words cannot both be predicted: no table may say so.
TEST_F(NextToken, TiesCountOnce) {
  write("a x\nb y\nq z\na b q x\nb a q y\n");
  for (const char* steps : {"100", "3000"}) {
    const Json result = run({text, "--cyclic", "--steps", steps});
    EXPECT_LE(result["accuracy"], 0.5);
    EXPECT_EQ(result["stages"][1]["accuracy"], result["accuracy"]);
  }
}

// Killed in either stage and resumed: the files of a run that was never stopped.
TEST_F(NextToken, SurvivesKills) {
  const std::string whole = (folder / "whole").string();
  const Words words{"next-token",         "--steps",    "60000",       "--ov-steps", "60000",
                    "--record",           "every:2000", "--embedding", "gaussian",   "--quiet",
                    "--checkpoint-every", "0"};
  ASSERT_EQ(attmirror_command(words + Words{"-o", whole}).code, 0);
  for (const char* stage : {"W_ov", "W_kq"}) {
    RunningCommand killed(words + Words{"--resume", "-o", out});
    killed.wait_until([&] { return fs::exists(fs::path(out) / stage / "checkpoint.npz"); });
    killed.signal(SIGKILL);
    killed.wait();
  }
  RunningCommand stopped(words + Words{"--resume", "-o", out});
  stopped.wait_until([&] { return fs::exists(fs::path(out) / "W_kq" / "metrics.jsonl"); });
  stopped.signal(SIGINT);
  const int code = stopped.wait().code;
  EXPECT_TRUE(code == 130 || code == 0) << code;
  ASSERT_EQ(attmirror_command(words + Words{"--resume", "-o", out}).code, 0);
  for (const char* name :
       {"final.npz", "W_ov/trace.npz", "W_ov/metrics.jsonl", "W_kq/trace.npz", "W_kq/metrics.jsonl"})
    EXPECT_TRUE(file_text(fs::path(out) / name) == file_text(fs::path(whole) / name)) << name;
}

TEST_F(NextToken, AFullDiskIsASentence) {
  const Outcome outcome =
      attmirror_command({"next-token", "--steps", "50", "-o", out}, {.file_size_limit = 2000});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("cannot write"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace attmirror::test

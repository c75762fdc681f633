// attmirror train: what it computes, what it prints, and what it refuses.
#include "cli/command.hpp"
#include "data/npy.hpp"
#include "support/paths.hpp"
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/descent/run_folder.hpp>

#include <cmath>
#include <fstream>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

using Json = nlohmann::json;

// Entry `index` along the first axis.
Array slice(const Array& array, std::int64_t index) {
  const Shape shape(array.shape().begin() + 1, array.shape().end());
  const std::size_t bytes = array.bytes().size() / static_cast<std::size_t>(array.shape()[0]);
  const auto part = array.bytes().subspan(static_cast<std::size_t>(index) * bytes, bytes);
  return {array.dtype(), shape, {part.begin(), part.end()}};
}

double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::abs(a[i] - b[i]));
    size = std::max(size, std::abs(b[i]));
  }
  return difference / size;
}

// The published loop in PyTorch, recorded, and the same run through the command.
TEST(Train, FollowsTheReferenceTrajectories) {
  const NamedArrays golden = load_npz(fixture("golden_local.npz"));
  const TemporaryFolder folder;
  const std::string data = (folder / "data.npz").string(), W0 = (folder / "W0.npy").string();
  for (std::int64_t seed = 0; seed < 3; ++seed) {
    save_npz(data, {{"X", slice(golden.at("X"), seed)},
                    {"Y", slice(golden.at("Y"), seed)},
                    {"Z", slice(golden.at("Z"), seed)},
                    {"v", slice(golden.at("v"), seed)}});
    for (const char* p : {"2", "3"}) {
      const std::vector<std::int64_t> steps = slice(golden.at(fmt::format("p{}_steps", p)), seed).to_int64();
      const Array weights = slice(golden.at(fmt::format("p{}_W", p)), seed);
      ASSERT_EQ(steps[0], 0);
      save_npy(W0, slice(weights, 0));
      const std::string run = (folder / fmt::format("run{}-{}", p, seed)).string();
      const Outcome outcome = attmirror_command({"train", data, "--p", p, "--lr", "0.1", "--normalized",
                                                 "--eps", "paper", "--init", "file:" + W0, "--steps", "500",
                                                 "--record", "100,500", "-o", run, "--json"});
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      const NamedArrays trace = load_npz(run + "/trace.npz");
      ASSERT_EQ(trace.at("step").to_int64(), (std::vector<std::int64_t>{100, 500}));
      for (std::size_t r = 0; r < steps.size(); ++r) {
        if (steps[r] != 100 && steps[r] != 500) continue;
        const std::vector<double> ours = slice(trace.at("W"), steps[r] == 100 ? 0 : 1).to_doubles();
        const double error = relative_error(ours, slice(weights, static_cast<std::int64_t>(r)).to_doubles());
        EXPECT_LT(error, steps[r] == 100 ? 1e-11 : 1e-9)
            << "seed " << seed + 1 << ", p " << p << ", step " << steps[r];
      }
    }
  }
}

TEST(Train, PrintsWhatTheContractNames) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder), run = (folder / "run").string();
  const Outcome outcome = attmirror_command(
      {"train", data, "--p", "3", "--steps", "2000", "--lr", "0.1", "--normalized", "-o", run, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const Json result = Json::parse(outcome.out);
  EXPECT_EQ(result["status"], "completed");
  EXPECT_EQ(result["steps"], 2000);
  EXPECT_EQ(result["selected"], Json({3, 2, 6, 2, 6, 2}));
  EXPECT_EQ(result["globally_optimal"], true);
  EXPECT_EQ(result["p"], 3.0);
  EXPECT_EQ(result["output"], run);
  EXPECT_GT(result["max_softmax"], 0.99);
  EXPECT_GT(result["norm"], 1.0);
  EXPECT_GT(result["seconds"], 0.0);
  EXPECT_LT(result["loss"], 0.5);
  EXPECT_EQ(file_text(run + "/result.json"), outcome.out);

  const Json config = Json::parse(file_text(run + "/config.json"));
  EXPECT_EQ(config["optimizer"]["p"], 3.0);
  EXPECT_EQ(config["optimizer"]["eps"], "exact");
  EXPECT_EQ(config["init"]["seed"], 0);
  EXPECT_EQ(config["data"]["dim"], 10);
  const NamedArrays last = load_npz(run + "/final.npz");
  EXPECT_EQ(last.at("W").shape(), (Shape{10, 10}));
  EXPECT_EQ(last.at("selected").to_int64(), (std::vector<std::int64_t>{3, 2, 6, 2, 6, 2}));
  EXPECT_EQ(load_npz(run + "/trace.npz").at("W").shape()[0],
            load_npz(run + "/trace.npz").at("step").shape()[0]);

  const Outcome text = attmirror_command({"train", data, "--p", "3", "--steps", "2000", "--normalized"});
  for (const char* word : {"completed", "2000", "(3, 2, 6, 2, 6, 2)", "yes, all 6", "‖W‖_3"})
    EXPECT_NE(text.out.find(word), std::string::npos) << word << " is not in\n" << text.out;
  const Outcome quiet = attmirror_command({"train", data, "--steps", "20", "--quiet"});
  EXPECT_EQ(quiet.out + quiet.err, "");
}

TEST(Train, TrainsEachParameterization) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder);
  const auto blocks = [&](const Words& options) {
    const std::string run = (folder / "run").string();
    Words words{"train", data, "--steps", "50", "--normalized", "--quiet", "--overwrite", "-o", run};
    words.insert(words.end(), options.begin(), options.end());
    const Outcome outcome = attmirror_command(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::string names;
    for (const auto& [name, array] : load_npz(run + "/trace.npz"))
      if (name.size() == 1) names += name;
    const SavedRun saved = load_run(run);
    EXPECT_EQ(saved.records.back().step, 50);
    EXPECT_EQ(saved.step, 50);
    return names;
  };
  EXPECT_EQ(blocks({}), "W");
  EXPECT_EQ(blocks({"--train", "W,v"}), "Wv");
  EXPECT_EQ(blocks({"--params", "KQ", "--rank", "2"}), "KQ");
  EXPECT_EQ(blocks({"--params", "KQ", "--train", "Q", "--init", "normal:0.3", "--init-seed", "7"}), "Q");
  EXPECT_EQ(blocks({"--params", "prompt", "--loss", "exponential"}), "p");
  EXPECT_EQ(blocks({"--loss", "sigmoid"}), "W");
  EXPECT_EQ(load_run(folder / "run").config.loss, "sigmoid");
  EXPECT_EQ(blocks({"--params", "prompt", "--train", "p,v", "--optimizer", "gd"}), "pv");
  EXPECT_EQ(blocks({"--keep", "metrics"}), "");
}

// --jacobian and --powers choose between evaluations of the same formulas: the eps floor with the safe Jacobian ends
// where an independent computation of P1's Setting B does, and the shortcuts for p = 3 agree with the general power.
TEST(Train, TakesTheChosenEvaluation) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder);
  const auto final_W = [&](const Words& extra) {
    const std::string run = (folder / "run").string();
    Words words{"train", data, "--normalized", "--eps", "paper", "-o", run, "--overwrite", "--quiet"};
    words.insert(words.end(), extra.begin(), extra.end());
    EXPECT_EQ(attmirror_command(words).code, 0);
    return load_npz(run + "/final.npz").at("W").to_doubles();
  };
  const std::vector<double> safe = final_W({"--p", "2", "--steps", "2000", "--jacobian", "safe"});
  EXPECT_NEAR(safe[12], -7.558, 1e-3 * 7.558);
  EXPECT_NEAR(safe[34], -1.247, 1e-3 * 1.247);
  const std::vector<double> textbook = final_W({"--p", "2", "--steps", "2000", "--jacobian", "textbook"});
  EXPECT_EQ(textbook, final_W({"--p", "2", "--steps", "2000"}));
  EXPECT_GT(relative_error(textbook, safe), 1e-4);

  const std::vector<double> fast = final_W({"--p", "3", "--steps", "300"});
  const std::vector<double> general = final_W({"--p", "3", "--steps", "300", "--powers", "general"});
  EXPECT_LT(relative_error(fast, general), 1e-11);
  EXPECT_NE(fast, general);
}

TEST(Train, StartsFromTheEndOfAnotherRun) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder), first = (folder / "a").string(),
                    second = (folder / "b").string();
  const Words common{"train", data, "--params", "KQ", "--rank", "3", "--quiet"};
  const auto train = [&](Words more) {
    more.insert(more.begin(), common.begin(), common.end());
    EXPECT_EQ(attmirror_command(more).code, 0);
  };
  train({"--steps", "30", "-o", first});
  train({"--steps", "0", "--init", "file:" + first + "/final.npz", "-o", second});
  EXPECT_EQ(load_npz(first + "/final.npz").at("K"), load_npz(second + "/final.npz").at("K"));
  EXPECT_EQ(load_npz(first + "/final.npz").at("Q"), load_npz(second + "/final.npz").at("Q"));
}

TEST(Train, StopsEarlyWhenAskedTo) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder);
  const Outcome saturated = attmirror_command(
      {"train", data, "--normalized", "--steps", "100000", "--saturation", "0.9", "--json"});
  EXPECT_EQ(saturated.code, 0);
  EXPECT_EQ(Json::parse(saturated.out)["status"], "saturated");
  EXPECT_LT(Json::parse(saturated.out)["steps"], 10000);
  const Outcome late =
      attmirror_command({"train", data, "--normalized", "--steps", "1e12", "--max-seconds", "0.2", "--json"});
  EXPECT_EQ(late.code, 0);
  EXPECT_EQ(Json::parse(late.out)["status"], "out_of_time");
}

TEST(Train, SaysThatItDiverged) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder), run = (folder / "run").string();
  const Words words{"train", data, "--p", "1.01", "--lr", "100", "--normalized", "--json", "-o", run};
  const Outcome outcome = attmirror_command(words);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("diverged at step"), std::string::npos) << outcome.err;
  EXPECT_EQ(Json::parse(outcome.out)["status"], "diverged");
  EXPECT_TRUE(Json::parse(outcome.out)["loss"].is_null());
  // It would again, and says so.
  Words again = words;
  again.push_back("--resume");
  EXPECT_EQ(attmirror_command(again).code, 1);
  EXPECT_EQ(attmirror_command({"info", run}).code, 0);
}

TEST(Train, RefusesUnknownEvaluations) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder);
  expect_refusal({"train", data, "--jacobian", "exact"}, 2, {"jacobian is \"exact\"", "safe or textbook"});
  expect_refusal({"train", data, "--powers", "slow"}, 2, {"powers is \"slow\"", "fast or general"});
  expect_refusal({"train", data, "--optimizer", "gd", "--powers", "general"}, 2, {"powers is given"});
}

TEST(Train, RefusesBadOptions) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder);
  const auto refuse = [&](const Words& options, std::initializer_list<std::string_view> words) {
    Words all{"train", data};
    all.insert(all.end(), options.begin(), options.end());
    expect_refusal(all, 2, words);
  };
  refuse({"--p", "0.9"}, {"attmirror: --p is 0.9: expected a finite number greater than 1\n"});
  refuse({"--p", "1"}, {"p is 1:"});
  refuse({"--p", "nan"}, {"p is nan: expected a finite number greater than 1"});
  refuse({"--p", "inf"}, {"p is inf:"});
  refuse({"--p", "three"}, {"p is \"three\": expected a number"});
  refuse({"--lr", "0"}, {"lr is 0: expected a finite number greater than 0"});
  refuse({"--lr", "-0.1"}, {"lr is -0.1:"});
  refuse({"--steps", "-1"}, {"steps is -1"});
  refuse({"--steps", "1.5"}, {"steps is \"1.5\": expected a whole number"});
  refuse({"--steps", "99999999999999999999"}, {"steps is \"99999999999999999999\""});
  refuse({"--params", "V"}, {"params is \"V\": expected W, KQ or prompt"});
  refuse({"--rank", "2"}, {"rank is 2, but --params is W"});
  refuse({"--params", "KQ", "--rank", "11"}, {"rank is 11: expected 1 to 10"});
  refuse({"--params", "KQ", "--init", "zero"}, {"K and Q both start at 0"});
  refuse({"--train", "K"}, {"cannot train K"});
  refuse({"--train", "W,W"}, {"listed twice"});
  refuse({"--train", "z"}, {"block is \"z\""});
  refuse({"--init", "ones"}, {"init is \"ones\""});
  refuse({"--init", "normal:-1"}, {"std of the initialization is -1"});
  refuse({"--init", "file:/no/W0.npy"}, {"cannot read /no/W0.npy"});
  refuse({"--optimizer", "sgd"}, {"optimizer is \"sgd\""});
  refuse({"--optimizer", "gd", "--p", "3"}, {"p of gradient descent"});
  refuse({"--eps-value", "1"}, {"eps is exact"});
  refuse({"--record", "sometimes"}, {"record is \"sometimes\""});
  refuse({"--keep", "all"}, {"keep is \"all\""});
  refuse({"--data-path", "river"}, {"data-path is \"river\"", "auto, block or stream"});
  refuse({"--storage", "float16"}, {"storage is \"float16\"", "float64 or float32"});
  refuse({"--saturation", "1.5"}, {"saturation is 1.5"});
  refuse({"--max-seconds", "-1"}, {"seconds is -1"});
  refuse({"--checkpoint-every", "-1", "-o", "x"}, {"checkpoint-every is -1"});
  refuse({"--resume"}, {"--resume is given without a run folder"});
  refuse({"--resume", "--overwrite", "-o", "x"}, {"both --resume and --overwrite"});
  refuse({"--record", "every:1", "--steps", "1e8"}, {"100000002 records", "--keep metrics"});
}

TEST(Train, RefusesBadStarts) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder), W0 = (folder / "W0.npy").string();
  std::vector<double> numbers(100, 0.5);
  save_npy(W0, Array({4, 25}, numbers));
  expect_refusal({"train", data, "--init", "file:" + W0}, 2, {"W has shape (4, 25): expected (10, 10)"});
  numbers[13] = std::numeric_limits<double>::infinity();
  save_npy(W0, Array({10, 10}, numbers));
  expect_refusal({"train", data, "--init", "file:" + W0}, 2, {"W[1,3] is inf: expected a finite number"});
  expect_refusal({"train", data, "--params", "KQ", "--init", "file:" + W0}, 2,
                 {"needs an .npz file with K and Q"});
  expect_refusal({"train", data, "--init", "file:" + data + "x"}, 2, {"cannot read"});
  save_npz(folder / "w.npz", {{"w", Array({10, 10}, std::vector<double>(100))}});
  expect_refusal({"train", data, "--init", "file:" + (folder / "w.npz").string()}, 2,
                 {"holds none of the blocks"});
  expect_refusal({"train", data, "--params", "prompt", "--key-weights", W0}, 2, {"key weights[1,3] is inf"});
}

TEST(Train, RefusesBadData) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder), bad = (folder / "bad.npz").string();
  const NamedArrays good = load_npz(data);
  const auto with = [&](const std::string& name, std::size_t index, double value) {
    NamedArrays arrays = good;
    std::vector<double> numbers = arrays.at(name).to_doubles();
    numbers[index] = value;
    arrays.at(name) = Array(arrays.at(name).shape(), numbers);
    save_npz(bad, arrays);
  };
  const auto refuse = [&](std::initializer_list<std::string_view> words) {
    expect_refusal({"train", bad}, 2, words);
  };
  with("X", 8 * 10 + 23, std::nan(""));
  refuse({"bad.npz", "X[1,2,3] is", "nan: expected a finite number"});
  with("Z", 12, std::numeric_limits<double>::infinity());
  refuse({"Z[1,2] is inf"});
  with("v", 4, -std::numeric_limits<double>::infinity());
  refuse({"v[4] is -inf"});
  with("Y", 5, 0);
  refuse({"labels[5] is 0: expected -1 or +1", "Y"});
  NamedArrays arrays = good;
  arrays.at("Z") = Array({5, 10}, std::vector<double>(50));
  save_npz(bad, arrays);
  refuse({"Z has shape (5, 10): expected (6, 10)"});
  arrays = good;
  arrays.erase("Y");
  save_npz(bad, arrays);
  refuse({"missing array Y"});
  arrays = good;
  arrays.erase("v");
  save_npz(bad, arrays);
  refuse({"the data have no decoder v"});
  const std::string whole = file_text(data);
  std::ofstream(bad, std::ios::binary) << whole.substr(0, whole.size() - 100);
  refuse({"bad.npz"});
  expect_refusal({"train", (folder / "none.npz").string()}, 2, {"none.npz: No such file or directory"});
  expect_refusal({"train", folder.path().string()}, 2, {"Is a directory"});
}

TEST(Train, RefusesPlacesItCannotWriteTo) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder);
  expect_refusal({"train", data, "-o", data}, 3, {"data.npz: Not a directory"});
  expect_refusal({"train", data, "-o", data + "/run"}, 3, {"Not a directory"});
  expect_refusal({"train", data, "-o", "/proc/run"}, 3, {"/proc/run"});
}

TEST(Train, LeavesARunAloneUnlessTold) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder), run = (folder / "run").string();
  const Words words{"train", data, "--steps", "20", "--quiet", "-o", run};
  ASSERT_EQ(attmirror_command(words).code, 0);
  const std::string before = file_text(run + "/result.json");
  expect_refusal(words, 2, {"already holds a run", "--resume", "--overwrite"});
  EXPECT_EQ(file_text(run + "/result.json"), before);
  Words overwrite = words;
  overwrite.insert(overwrite.end(), {"--overwrite", "--p", "3"});
  EXPECT_EQ(attmirror_command(overwrite).code, 0);
  EXPECT_EQ(Json::parse(file_text(run + "/result.json"))["p"], 3.0);
  // Somebody else's folder is not ours to replace.
  const std::filesystem::path other = folder / "other";
  std::filesystem::create_directory(other);
  std::ofstream(other / "config.json") << "{\"theirs\": true}";
  expect_refusal({"train", data, "-o", other.string()}, 2, {"already holds a run"});
  expect_refusal({"train", data, "-o", other.string(), "--overwrite"}, 2,
                 {"config.json", "not the configuration of an attmirror run"});
  EXPECT_EQ(file_text(other / "config.json"), "{\"theirs\": true}");
}

// At its end a run says whether attention has made up its mind, and where it has chosen other tokens than the best.
TEST(Train, SaysThatItIsNotSaturated) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder), run = (folder / "run").string();
  const auto result = [&](const Words& options) {
    const Outcome outcome = attmirror_command(Words{"train", data, "--json"} + options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out);
  };
  const Json early = result({"--steps", "3", "-o", run});
  EXPECT_EQ(early["unsaturated"], 6);
  EXPECT_LT(early["min_max_softmax"], 0.9);
  EXPECT_LE(early["min_max_softmax"], early["max_softmax"]);
  EXPECT_EQ(Json::parse(file_text(run + "/result.json"))["unsaturated"], 6);
  const std::string text = attmirror_command({"train", data, "--steps", "3"}).out;
  for (const char* word :
       {"not saturated     6 of 6 sequences give no token a probability of 0.9 (the smallest maximum is",
        "try more --steps, --normalized or a larger --lr"})
    EXPECT_NE(text.find(word), std::string::npos) << word << " is not in:\n" << text;
  // What is in use already is not advised; a run that ended tells the same when it is asked again.
  EXPECT_NE(attmirror_command({"train", data, "--steps", "3", "--normalized"})
                .out.find("try more --steps or a larger --lr"),
            std::string::npos);
  EXPECT_EQ(
      attmirror_command({"train", data, "--steps", "3", "--resume", "-o", run}).out.find("not saturated") ==
          std::string::npos,
      false);
  EXPECT_NE(attmirror_command({"train", data, "--steps", "3", "--penalty", "1"})
                .out.find("with a smaller --penalty"),
            std::string::npos);
  const Json late = result({"--steps", "20000", "--normalized"});
  EXPECT_EQ(late["unsaturated"], 0);
  EXPECT_GE(late["min_max_softmax"], 0.9);
  EXPECT_EQ(attmirror_command({"train", data, "--steps", "20000", "--normalized"}).out.find("not saturated"),
            std::string::npos);
}

TEST(Train, ListsTheTokensThatAreNotTheBest) {
  const TemporaryFolder folder;
  const std::string data = (folder / "data.npz").string();
  ASSERT_EQ(
      attmirror_command({"generate", "--samples", "30", "--tokens", "9", "--dim", "3", "-o", data}).code, 0);
  const Words train{"train", data, "--steps", "300", "--normalized"};
  const Json result = Json::parse(attmirror_command(train + Words{"--json"}).out);
  std::vector<std::size_t> different;
  for (std::size_t i = 0; i < 30; ++i)
    if (result["selected"][i] != result["optimal"][i]) different.push_back(i);
  ASSERT_GT(different.size(), 10U) << "the test wants more than fit on the screen";
  ASSERT_EQ(result["differences"].size(), different.size());
  const std::string text = attmirror_command(train).out;
  for (std::size_t k = 0; k < different.size(); ++k) {
    const std::size_t i = different[k];
    EXPECT_EQ(result["differences"][k], (Json{{"sequence", i},
                                              {"query", 0},
                                              {"selected", result["selected"][i]},
                                              {"optimal", result["optimal"][i]}}));
    const std::string line = fmt::format("  sequence {} selects token {}; the best is {}\n", i,
                                         result["selected"][i].get<int>(), result["optimal"][i].get<int>());
    EXPECT_EQ(text.find(line) != std::string::npos, k < 10) << line << text;
  }
  EXPECT_NE(text.find(fmt::format("  and {} more\n", different.size() - 10)), std::string::npos) << text;
}

}  // namespace
}  // namespace attmirror::test

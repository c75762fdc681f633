#include "base/atomic_file.hpp"
#include "support/files.hpp"
#include "support/same_bits.hpp"
#include <attmirror/data/generators.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/descent/run_folder.hpp>

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

class RunFolderTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "deep/er/run";
  const Dataset data = generate(SphereData{.samples = 5, .tokens = 4, .dim = 3, .seed = 2, .min_tokens = {}});
  const Attention model{data};
  const MirrorDescent rule{.p = 1.75, .normalized = true};

  DescentOptions options(std::int64_t steps) const {
    DescentOptions result;
    result.steps = steps;
    result.record = RecordSchedule::every(10);
    return result;
  }
  RunConfig config(std::int64_t steps) const {
    return describe_run(model, rule, options(steps), {"data.npz", {}, {}});
  }

  // Trains from `checkpoint` to `steps` and writes all files.
  void train(RunFolder& run, std::int64_t steps, const std::optional<Checkpoint>& checkpoint) const {
    Descent descent =
        checkpoint ? Descent(model, rule, options(steps), *checkpoint) : Descent(model, rule, options(steps));
    DescentCallbacks callbacks;
    callbacks.on_record = [&](const Record& record) { run.append(record); };
    const DescentRun done = descent.run(callbacks);
    run.finish(model, done, descent.checkpoint(), config(steps));
  }
  void train_new(std::int64_t steps) const {
    RunFolder run(path);
    run.begin(config(steps));
    train(run, steps, std::nullopt);
  }
};

TEST_F(RunFolderTest, WritesWhatItPromises) {
  train_new(25);
  const NamedArrays trace = load_npz(path / "trace.npz"), last = load_npz(path / "final.npz");
  EXPECT_EQ(trace.at("step").to_int64(), (std::vector<std::int64_t>{0, 10, 20, 25}));
  EXPECT_EQ(trace.at("W").shape(), (Shape{4, 3, 3}));
  EXPECT_FALSE(trace.contains("v"));  // not trained
  EXPECT_EQ(last.at("W").shape(), (Shape{3, 3}));
  EXPECT_EQ(last.at("fixed_v").shape(), (Shape{3}));
  EXPECT_EQ(last.at("selected").shape(), (Shape{5}));
  std::ifstream metrics(path / "metrics.jsonl");
  std::vector<std::int64_t> steps;
  for (std::string line; std::getline(metrics, line);) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json.size(), 4u);
    steps.push_back(json.at("step"));
  }
  EXPECT_EQ(steps, (std::vector<std::int64_t>{0, 10, 20, 25}));
}

TEST_F(RunFolderTest, IsReadBack) {
  train_new(25);
  const SavedRun run = load_run(path);
  const DescentRun expected = descend(model, rule, options(25));
  EXPECT_TRUE(is_run_folder(path));
  EXPECT_EQ(run.step, 25);
  EXPECT_EQ(run.result->status, RunStatus::completed);
  EXPECT_EQ(run.result->selected, expected.selected);
  EXPECT_EQ(run.result->loss, expected.loss);
  EXPECT_TRUE(test::same_bits(run.parameters.W, expected.last().W));
  EXPECT_EQ(run.parameters.v, expected.last().v);
  ASSERT_EQ(run.records.size(), expected.records.size());
  EXPECT_TRUE(test::same_bits(run.records[1].parameters.W, expected.records[1].parameters.W));
  EXPECT_EQ(run.records[1].parameters.v, expected.records[1].parameters.v);
  EXPECT_EQ(run.records[1].loss, expected.records[1].loss);
}

TEST_F(RunFolderTest, ReadsARunThatWasKilled) {
  {
    RunFolder run(path);
    run.begin(config(100));
    EXPECT_EQ(load_run(path).parameters.W.size(), 0);
    Descent descent(model, rule, options(30));
    descent.run();
    run.save(descent.checkpoint());
  }
  const SavedRun run = load_run(path);
  EXPECT_FALSE(run.result);
  EXPECT_EQ(run.step, 30);
  EXPECT_EQ(run.parameters.W, descend(model, rule, options(30)).last().W);
  EXPECT_EQ(run.records.size(), 4u);
}

// A kill between a record and the next checkpoint leaves lines in metrics.jsonl that the resumed run makes again.
TEST_F(RunFolderTest, ResumesWithoutDoubleOrMissingRecords) {
  train_new(64);
  const std::string metrics = read_text_file(path / "metrics.jsonl");
  const auto trace = read_file(path / "trace.npz");
  RunFolder run(path);
  run.begin(config(64));
  Descent descent(model, rule, options(33));
  descent.run();
  run.save(descent.checkpoint());
  std::ofstream(path / "metrics.jsonl", std::ios::app) << R"({"step":40,"loss":0.5,"max_softmax":1,"norm":2})"
                                                          "\n{\"st";
  const auto checkpoint = run.checkpoint(config(64));
  ASSERT_TRUE(checkpoint);
  run.resume(config(64), checkpoint);
  EXPECT_EQ(checkpoint->step, 33);
  train(run, 64, checkpoint);
  EXPECT_EQ(read_text_file(path / "metrics.jsonl"), metrics);
  EXPECT_EQ(read_file(path / "trace.npz"), trace);
}

TEST_F(RunFolderTest, KnowsWhenThereIsNothingLeftToDo) {
  train_new(25);
  RunFolder run(path);
  EXPECT_TRUE(run.holds_run());
  EXPECT_TRUE(run.finished(config(25)));
  EXPECT_TRUE(run.finished(config(10)));
  EXPECT_FALSE(run.finished(config(26)));
  const auto checkpoint = run.checkpoint(config(40));
  ASSERT_TRUE(checkpoint);
  EXPECT_TRUE(run.finished(config(25)));  // looking changes nothing
  run.resume(config(40), checkpoint);
  EXPECT_FALSE(std::filesystem::exists(path / "result.json"));
  EXPECT_FALSE(run.finished(config(25)));
}

TEST_F(RunFolderTest, RefusesAnotherConfiguration) {
  train_new(25);
  RunFolder run(path);
  RunConfig other = config(25);
  std::get<MirrorDescent>(other.optimizer).lr = 0.25;
  expect_bad_input({"cannot resume", "optimizer.lr is 0.1 there and 0.25 here"},
                   [&] { run.checkpoint(other); });
  expect_bad_input({"optimizer.lr"}, [&] { run.finished(other); });
  EXPECT_TRUE(std::filesystem::exists(path / "result.json"));
  std::filesystem::remove(path / "config.json");
  expect_bad_input({"config.json is missing"}, [&] { run.checkpoint(config(25)); });
}

TEST_F(RunFolderTest, NamesTheDamagedFile) {
  train_new(25);
  const std::string result = read_text_file(path / "result.json");
  std::ofstream(path / "result.json") << "{\"status\": 7";
  expect_bad_input({"result.json", "damaged"}, [&] { load_run(path); });
  std::ofstream(path / "result.json") << result;
  NamedArrays arrays = load_npz(path / "final.npz");
  arrays.at("format_version") = Array::scalar(std::int64_t{99});
  save_npz(path / "final.npz", arrays);
  expect_bad_input({"final.npz", "format_version is 99"}, [&] { load_run(path); });
  arrays.erase("format_version");
  save_npz(path / "final.npz", arrays);
  expect_bad_input({"final.npz", "format_version"}, [&] { load_run(path); });
}

TEST_F(RunFolderTest, IsLockedWhileInUse) {
  const RunFolder run(path);
  expect_error(ErrorKind::environment, {"is in use"}, [&] { RunFolder second(path); });
}

TEST_F(RunFolderTest, RefusesImpossiblePlaces) {
  std::ofstream(folder / "file");
  expect_error(ErrorKind::environment, {"file: Not a directory"}, [&] { RunFolder run(folder / "file"); });
  expect_error(ErrorKind::environment, {"Not a directory"}, [&] { RunFolder run(folder / "file/run"); });
  expect_bad_input({"is not a run folder"}, [&] { load_run(folder.path()); });
  EXPECT_FALSE(is_run_folder(folder.path()));
}

TEST_F(RunFolderTest, KeepsTheLastFiniteCheckpoint) {
  RunFolder run(path);
  run.begin(config(25));
  Descent descent(model, rule, options(5));
  descent.run();
  Checkpoint checkpoint = descent.checkpoint();
  run.save(checkpoint);
  checkpoint.step = 6;
  checkpoint.weights.W(0, 0) = std::numeric_limits<double>::infinity();
  run.save(checkpoint);
  EXPECT_EQ(load_checkpoint(path / "checkpoint.npz").step, 5);
}

TEST(RunConfigTest, SurvivesJson) {
  const Dataset data = generate(SphereData{.samples = 5, .tokens = 4, .dim = 3, .seed = 2, .min_tokens = {}});
  const Attention model(data, Prompt{Matrix::Identity(3, 3)}, Exponential{}, {{Block::p, Block::v}});
  DescentOptions options;
  options.steps = 7;
  options.saturation = 0.9;
  options.max_seconds = 1.5;
  options.record = RecordSchedule::parse("0,3,5");
  options.keep = Keep::metrics;
  options.init.kind = InitKind::normal;
  options.init.std = 0.1;
  options.init.seed = ~std::uint64_t{0};
  options.init.given.v = Vector::Ones(3);
  const Optimizer optimizers[] = {
      MirrorDescent{.p = 1.1, .lr = 0.3, .normalized = true, .eps = EpsPolicy::paper, .eps_value = 1e-15},
      MirrorDescent{.p = 1.1, .jacobian = Jacobian::textbook, .power_path = PowerPath::general},
      GradientDescent{.lr = 0.2, .normalized = true}};
  for (const Optimizer& optimizer : optimizers) {
    const RunConfig config = describe_run(model, optimizer, options, {"d.npz", "A.npy", "v.npz"});
    const std::string text = to_json(config);
    const RunConfig back = parse_run_config(text, "config.json");
    EXPECT_EQ(to_json(back), text);
    EXPECT_EQ(to_string(back.optimizer), to_string(optimizer));
    EXPECT_FALSE(first_difference(config, back));
  }
}

TEST(RunConfigTest, NamesTheFirstDifference) {
  const Dataset data = generate(SphereData{.samples = 5, .tokens = 4, .dim = 3, .seed = 2, .min_tokens = {}});
  const Attention model(data);
  DescentOptions options;
  const RunConfig config = describe_run(model, MirrorDescent{}, options, {"d.npz", {}, {}});
  RunConfig other = config;
  other.steps = 5;
  other.saturation = 0.5;
  other.max_seconds = 3;
  other.data_path = "/elsewhere/d.npz";
  other.version = "9";
  EXPECT_FALSE(first_difference(config, other));
  other.isa = "other";
  EXPECT_NE(first_difference(config, other)->find("isa is"), std::string::npos);
  other.init_seed = 4;
  EXPECT_EQ(*first_difference(config, other), "init.seed is 0 there and 4 here");
  options.init.given.W = Matrix::Ones(3, 3);
  const RunConfig from_file = describe_run(model, MirrorDescent{}, options, {"d.npz", {}, "W0.npy"});
  EXPECT_NE(first_difference(config, from_file)->find("init.file is null there"), std::string::npos);
}

TEST(RunConfigTest, RefusesWhatIsNone) {
  expect_bad_input({"c.json", "not the configuration of an attmirror run"},
                   [] { parse_run_config("{\"a\": 1}", "c.json"); });
  expect_bad_input({"c.json"}, [] { parse_run_config("{\"a\": ", "c.json"); });
  expect_bad_input({"c.json"}, [] { parse_run_config("[1, 2]", "c.json"); });
  expect_bad_input({"c.json", "format_version is 2"},
                   [] { parse_run_config(R"({"format": "attmirror run", "format_version": 2})", "c.json"); });
  expect_bad_input({"c.json", "data"},
                   [] { parse_run_config(R"({"format": "attmirror run", "format_version": 1})", "c.json"); });
}

}  // namespace
}  // namespace attmirror::test

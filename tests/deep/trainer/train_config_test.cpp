#include "support/paths.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/train_config.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror {
namespace {

TrainConfig parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_train_config(text, "a.toml", "/place/of/file", overrides);
}

std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    parse(text, overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << text;
  return "";
}

TEST(TrainConfig, DefaultsAreThoseOfTheKind) {
  EXPECT_EQ(parse("").optimizer.p, 1.1);
  EXPECT_EQ(parse("").train.stop_train_accuracy, 0.995);
  EXPECT_EQ(parse("").train.checkpoint_seconds, 120);
  const TrainConfig vit = parse("[data]\nkind = \"images\"\n[model]\nheads = 4\nkind = \"vit\"\n");
  EXPECT_EQ(vit.model.width, 512);
  EXPECT_EQ(vit.model.heads, 4);
  EXPECT_EQ(vit.model.dropout, 0.1);
  const TrainConfig muon = parse("[optimizer]\nname = \"muon-adamw\"\n");
  EXPECT_EQ(muon.optimizer.momentum, 0.95);
  EXPECT_TRUE(muon.optimizer.nesterov);
  EXPECT_EQ(parse("[optimizer]\nname = \"gd\"\n").optimizer.p, 2);
}

TEST(TrainConfig, SeedsFollowTheSeedUnlessSet) {
  const TrainConfig config = parse("[train]\norder_seed = 9\nseed = 4\n");
  EXPECT_EQ(config.train.init_seed, 4u);
  EXPECT_EQ(config.train.order_seed, 9u);
  EXPECT_EQ(config.train.dropout_seed, 4u);
  EXPECT_EQ(parse("[train]\nseed = 4\n", {"train.seed=7"}).train.dropout_seed, 7u);
}

TEST(TrainConfig, PathsAreRelativeToTheFileAndOverridesToTheWorkingDirectory) {
  const TrainConfig config =
      parse("[data]\ntrain = \"x/train.tsv\"\ntest = \"/abs.tsv\"\n", {"data.vocabulary=v.txt"});
  EXPECT_EQ(config.data.train, "/place/of/file/x/train.tsv");
  EXPECT_EQ(config.data.test, "/abs.tsv");
  EXPECT_EQ(config.data.vocabulary, std::filesystem::current_path() / "v.txt");
}

TEST(TrainConfig, OverridesAreTomlOrBareWords) {
  const TrainConfig config = parse("[optimizer]\nname = \"md\"\np = 3\n",
                                   {"optimizer.name=adamw", "optimizer.betas=[0.8, 0.9]", "train.batch=7",
                                    "train.loss=mean", "optimizer.lr=1e-3", "optimizer.name=adam"});
  EXPECT_EQ(config.optimizer.name, "adam");
  EXPECT_EQ(config.optimizer.betas, (std::array<double, 2>{0.8, 0.9}));
  EXPECT_EQ(config.train.batch, 7);
  EXPECT_EQ(config.train.loss, "mean");
  EXPECT_EQ(config.optimizer.lr, 1e-3);
  // The file's p has no use now, and adam's own defaults hold; a p of --set would be a mistake.
  EXPECT_EQ(parse("[optimizer]\np = 3\nlr = 0.5\n", {"optimizer.name=adam"}).optimizer.lr, 0.5);
  EXPECT_NE(refusal("", {"optimizer.name=adam", "optimizer.p=3"}).find("only md takes it"),
            std::string::npos);
  EXPECT_EQ(parse("", {"data.train=run 1/train=x.tsv"}).data.train.filename(), "train=x.tsv");
}

TEST(TrainConfig, WrongKeysAreNamedWithTheirLine) {
  EXPECT_EQ(refusal("[train]\nepochs = 3\nbach = 3\n"),
            "a.toml: line 3: train.bach is 3: there is no such key in [train]; did you mean \"batch\"?");
  EXPECT_EQ(
      refusal("[data]\nbatch = 3\n"),
      "a.toml: line 2: data.batch is 3: there is no such key in [data]; did you mean \"batch\" of [train]?");
  EXPECT_EQ(refusal("[optimiser]\nlr = 3\n"),
            "a.toml: line 1: there is no table \"optimiser\": expected [data], [model], [optimizer] or "
            "[train]; did you "
            "mean \"optimizer\"?");
  EXPECT_EQ(refusal("train = 3\n"), "a.toml: line 1: train is 3: expected a table");
  EXPECT_NE(refusal("[train\n").find("a.toml"), std::string::npos);
}

TEST(TrainConfig, WrongValuesAreNamedWithWhatIsExpected) {
  EXPECT_EQ(refusal("[optimizer]\np = 1\n"),
            "a.toml: line 2: optimizer.p is 1: expected a finite number greater than 1");
  EXPECT_EQ(refusal("[optimizer]\nlr = \"fast\"\n"),
            "a.toml: line 2: optimizer.lr is \"fast\": expected a finite number greater than 0");
  EXPECT_EQ(
      refusal("[optimizer]\n\nname = \"sgd\"\n"),
      "a.toml: line 3: optimizer.name is \"sgd\": expected \"md\", \"gd\", \"sign\", \"signum\", \"adam\", "
      "\"adamw\" or \"muon-adamw\"; did you mean \"gd\"?");
  EXPECT_EQ(refusal("[train]\nbatch = 0\n"),
            "a.toml: line 2: train.batch is 0: expected a whole number from 1 to 16777216");
  EXPECT_EQ(refusal("[train]\nbatch = 2.5\n"),
            "a.toml: line 2: train.batch is 2.5: expected a whole number from 1 to 16777216");
  EXPECT_EQ(refusal("[train]\nseed = -1\n"),
            "a.toml: line 2: train.seed is -1: expected a whole number from 0 to 2^63 - 1");
  for (const char* lr : {"nan", "inf", "-1.0", "0.0"})
    EXPECT_NE(refusal(std::string("[optimizer]\nlr = ") + lr + "\n")
                  .find("expected a finite number greater than 0"),
              std::string::npos);
  EXPECT_NE(refusal("[model]\ndropout = 1.0\n").find("expected a number in [0, 1)"), std::string::npos);
  EXPECT_NE(refusal("[optimizer]\nname = \"adam\"\nbetas = [0.9]\n").find("two numbers"), std::string::npos);
  EXPECT_NE(refusal("[optimizer]\nname = \"adam\"\nbetas = 0.9\n").find("two numbers"), std::string::npos);
  EXPECT_NE(refusal("[train]\ndevice = \"tpu\"\n").find("\"cuda:NUMBER\""), std::string::npos);
  EXPECT_NE(refusal("[data]\ntrain = \"\"\n").find("a path in quotes"), std::string::npos);
}

TEST(TrainConfig, KeysOfOtherKindsAreRefused) {
  EXPECT_EQ(refusal("[optimizer]\nname = \"adam\"\np = 1.5\n"),
            "a.toml: line 3: optimizer.p is given, but optimizer.name is adam: only md takes it");
  EXPECT_EQ(refusal("[model]\npatch = 4\n"),
            "a.toml: line 2: model.patch is given, but model.kind is encoder: only vit takes it");
}

// Programs need not take a message apart.
TEST(TrainConfig, ErrorsNameTheFieldAndItsValue) {
  const auto place = [](const std::string& text, const std::vector<std::string>& overrides = {}) {
    try {
      parse(text, overrides);
    } catch (const Error& error) {
      return error.field() + " = " + error.value();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(place("[optimizer]\np = 0.5\n"), "optimizer.p = 0.5");
  EXPECT_EQ(place("[optimizer]\nname = \"sgd\"\n"), "optimizer.name = sgd");
  EXPECT_EQ(place("[optimizer]\nname = \"adam\"\np = 1.5\n"), "optimizer.p = 1.5");
  EXPECT_EQ(place("", {"train.batch=0"}), "train.batch = 0");
  EXPECT_EQ(place("", {"train.bach=3"}), "train.bach = 3");
  EXPECT_EQ(place("[model]\nwidth = 10\n"), "model.heads = 3");
}

// Version 0.1.0 said muon for what is muon-adamw now: muon of `attmirror train` is another algorithm.
TEST(TrainConfig, WordsOfEarlierVersionsAreAccepted) {
  const TrainConfig before = parse("[optimizer]\nname = \"muon\"\nother_lr = 0.001\n");
  EXPECT_EQ(before.optimizer.name, "muon-adamw");
  EXPECT_EQ(before.optimizer.lr, 0.02);
  EXPECT_EQ(to_json(before), to_json(parse("[optimizer]\nname = \"muon-adamw\"\nother_lr = 0.001\n")));
  EXPECT_EQ(parse("", {"optimizer.name=muon"}).optimizer.name, "muon-adamw");
  std::string json = to_json(before);
  json.replace(json.find("\"muon-adamw\""), 12, "\"muon\"");
  EXPECT_EQ(first_difference(json, before, "config.json"), std::nullopt);
  EXPECT_EQ(first_difference(json, parse("[optimizer]\nname = \"adam\"\n"), "config.json"),
            "optimizer.name was \"muon-adamw\" and is \"adam\"");
  TrainConfig in_code = before;
  in_code.optimizer.name = "muon";
  in_code.validate();
  EXPECT_EQ(to_json(in_code), to_json(before));
}

// max_seconds was time_limit. config.json has kept that name: either version goes on with a run of the other.
TEST(TrainConfig, KeysOfEarlierVersionsAreAccepted) {
  const TrainConfig before = parse("[train]\ntime_limit = 30\n"), now = parse("[train]\nmax_seconds = 30\n");
  EXPECT_EQ(before.train.max_seconds, 30);
  EXPECT_EQ(to_json(before), to_json(now));
  EXPECT_NE(to_json(now).find("\"time_limit\": 30"), std::string::npos);
  EXPECT_EQ(to_json(now).find("max_seconds"), std::string::npos);
  EXPECT_EQ(parse("[train]\nmax_seconds = 30\n", {"train.time_limit=5"}).train.max_seconds, 5);
  EXPECT_EQ(parse("[train]\ntime_limit = 30\n", {"train.max_seconds=5"}).train.max_seconds, 5);
  EXPECT_EQ(refusal("[train]\ntime_limit = 30\nmax_seconds = 40\n"),
            "a.toml: line 3: train.max_seconds is given twice, as max_seconds and as time_limit");
  EXPECT_EQ(refusal("[train]\ntime_limit = -1\n"),
            "a.toml: line 2: train.max_seconds is -1: expected a finite number, 0 or greater");
}

// Whoever fills in the struct is told the same as whoever writes the file.
TEST(TrainConfig, TheStructIsCheckedLikeAFile) {
  const auto refused = [](const auto& change) {
    TrainConfig config;
    change(config);
    try {
      config.validate();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused([](TrainConfig&) {}), "accepted");
  EXPECT_EQ("a.toml: line 2: " + refused([](TrainConfig& c) { c.optimizer.p = 1; }),
            refusal("[optimizer]\np = 1\n"));
  EXPECT_EQ("a.toml: line 2: " + refused([](TrainConfig& c) { c.train.max_seconds = -1; }),
            refusal("[train]\nmax_seconds = -1\n"));
  EXPECT_EQ("a.toml: line 2: " + refused([](TrainConfig& c) { c.train.device = "tpu"; }),
            refusal("[train]\ndevice = \"tpu\"\n"));
  EXPECT_EQ("a.toml: line 2: " + refused([](TrainConfig& c) { c.train.loss = "median"; }),
            refusal("[train]\nloss = \"median\"\n"));
}

// Every key is documented, with its default and its meaning.
TEST(TrainConfig, TheDocumentationHasEveryKey) {
  std::ifstream file(test::source_folder() / "docs/deep-train.md");
  ASSERT_TRUE(file) << "docs/deep-train.md";
  std::string table;
  std::string rows;  // "optimizer.p | 1.1 | meaning"
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| `[")) table = line.substr(4, line.find(']') - 4);
    if (line.empty()) table.clear();
    if (!table.empty() && line.starts_with("| `"))
      rows += table + "." + line.substr(3, line.find('`', 3) - 3) + line.substr(line.find('`', 3) + 1) + "\n";
  }
  for (const ConfigKey& key : train_config_keys()) {
    EXPECT_FALSE(key.meaning.empty()) << key.key;
    const std::string row = key.key + " | " + key.default_text + " | " + key.meaning + " |\n";
    EXPECT_NE(rows.find(row), std::string::npos) << row;
  }
}

TEST(TrainConfig, WhatDoesNotFitTogetherIsRefused) {
  EXPECT_EQ(refusal("[model]\nwidth = 10\n"),
            "a.toml: model.heads is 3: expected a divisor of model.width, 10");
  EXPECT_NE(refusal("[model]\nkind = \"vit\"\n").find("vits images"), std::string::npos);
  EXPECT_NE(refusal("[optimizer]\nnesterov = true\n").find("nothing to look ahead by"), std::string::npos);
  TrainConfig config;
  config.train.batch = -1;
  EXPECT_THROW(config.validate(), Error);
  config = {};
  config.optimizer.lr = NAN;
  EXPECT_THROW(config.validate(), Error);
  config = {};
  config.optimizer.name = "newton";
  EXPECT_THROW(config.validate(), Error);
}

TEST(TrainConfig, SavedEpochsAreAListOrWords) {
  const auto epochs = [](const TrainConfig& config) { return saved_epochs(config.train.save_epochs); };
  EXPECT_EQ(epochs(parse("[train]\nsave_epochs = [10, 1]\n")), (std::vector<std::int64_t>{1, 10}));
  EXPECT_EQ(epochs(parse("[train]\nsave_epochs = \"0,5\"\n")), (std::vector<std::int64_t>{0, 5}));
  EXPECT_EQ(epochs(parse("[train]\nsave_epochs = 7\n")), (std::vector<std::int64_t>{7}));
  EXPECT_EQ(epochs(parse("")), std::vector<std::int64_t>{});
  for (const char* text : {"1,", "-1", "one", "1,,2", "2000000", "[1.5]"})
    EXPECT_NE(refusal("", {std::string("train.save_epochs=") + text}).find("train.save_epochs is"),
              std::string::npos)
        << text;
  EXPECT_NE(refusal("[optimizer]\nattention_p = 0.5\n").find("optimizer.attention_p is 0.5"),
            std::string::npos);
}

// Runs of version 0.1.0 lack keys that came later.
TEST(TrainConfig, RunsWithoutLaterKeysGoOn) {
  const TrainConfig config = parse("[data]\ntrain = \"x\"\n");
  auto json = nlohmann::json::parse(to_json(config));
  EXPECT_FALSE(json["data"].contains("validation"));
  EXPECT_FALSE(json["train"].contains("graphs"));
  EXPECT_EQ(first_difference(json.dump(), config, "config.json"), std::nullopt);
  TrainConfig other = config;
  other.data.validation = 0.1;
  EXPECT_EQ(nlohmann::json::parse(to_json(other))["data"]["validation"], 0.1);
  EXPECT_EQ(first_difference(json.dump(), other, "config.json"), "data.validation was 0.0 and is 0.1");
  json["data"].erase("limit");
  EXPECT_THROW(first_difference(json.dump(), config, "config.json"), Error);
}

TEST(TrainConfig, WrongOverridesAreNamed) {
  EXPECT_EQ(refusal("", {"lr=3"}), "--set lr=3: expected TABLE.KEY=VALUE, as in optimizer.p=1.1");
  EXPECT_EQ(refusal("", {"optimizer.p"}),
            "--set optimizer.p: expected TABLE.KEY=VALUE, as in optimizer.p=1.1");
  EXPECT_NE(refusal("", {"optimizr.p=2"}).find("did you mean \"optimizer\"?"), std::string::npos);
  EXPECT_EQ(refusal("", {"optimizer.p=two"}),
            "--set optimizer.p=two: optimizer.p is \"two\": expected a finite number greater than 1");
  EXPECT_NE(refusal("", {"train.epoch=2"}).find("did you mean \"epochs\"?"), std::string::npos);
}

TEST(TrainConfig, DifferencesThatMatterAreFound) {
  const TrainConfig config =
      parse("[data]\ntrain = \"x\"\n[optimizer]\nbetas = [0.5, 0.25]\nname = \"adam\"\n");
  const std::string json = to_json(config);
  EXPECT_EQ(first_difference(json, config, "config.json"), std::nullopt);
  TrainConfig other = config;
  other.data.train = "elsewhere";
  other.train.threads = 3;
  other.train.checkpoint_seconds = 1;
  other.train.max_seconds = 5;
  other.train.device = "cpu";
  EXPECT_EQ(first_difference(json, other, "config.json"), std::nullopt);
  other = config;
  other.optimizer.betas[1] = 0.5;
  EXPECT_EQ(first_difference(json, other, "config.json"), "optimizer.betas was [0.5,0.25] and is [0.5,0.5]");
  other = config;
  other.train.dropout_seed = 3;
  EXPECT_EQ(first_difference(json, other, "config.json"), "train.dropout_seed was 0 and is 3");
  EXPECT_THROW(first_difference("{}", config, "config.json"), Error);
  EXPECT_THROW(first_difference("no json", config, "config.json"), Error);
  EXPECT_THROW(first_difference("[1]", config, "config.json"), Error);
}

TEST(TrainConfig, ExamplesAreRead) {
  const std::filesystem::path folder = test::source_folder() / "examples/deep";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    ++count;
    const TrainConfig config = load_train_config(entry.path());
    EXPECT_FALSE(config.data.train.empty());
    EXPECT_TRUE(config.data.train.is_absolute()) << entry.path();
  }
  EXPECT_GE(count, 3);
}

}  // namespace
}  // namespace attmirror

// Sweep files: which runs they mean, in which order, with which settings and keys.
#include "support/files.hpp"
#include "support/paths.hpp"
#include "sweep/parsed_sweep.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/sweep/plan.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

// A cell of a run by the name of its column.
Cell cell(const SweepPlan& plan, std::size_t run, std::string_view name) {
  for (std::size_t i = 0; i < plan.columns.size(); ++i)
    if (plan.columns[i].name == name) return plan.runs[run].cells[i];
  ADD_FAILURE() << "no column " << name;
  return {};
}

bool has_column(const SweepPlan& plan, std::string_view name) {
  for (const RowColumn& column : plan.columns)
    if (column.name == name) return true;
  return false;
}

std::set<std::string> keys(const SweepPlan& plan) {
  std::set<std::string> result;
  for (const RunSettings& run : plan.runs) result.insert(run.key);
  return result;
}

TEST(SweepFile, AnEmptyFileIsOneRunByDefault) {
  const SweepPlan plan = test::parsed_sweep("");
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_TRUE(plan.axes.empty());
  EXPECT_EQ(cell(plan, 0, "generator"), Cell{std::string("sphere")});
  EXPECT_EQ(cell(plan, 0, "samples"), Cell{std::int64_t{6}});
  EXPECT_EQ(cell(plan, 0, "p"), Cell{2.0});
  EXPECT_EQ(cell(plan, 0, "steps"), Cell{std::int64_t{1000}});
  EXPECT_EQ(cell(plan, 0, "normalized"), Cell{std::int64_t{0}});
  EXPECT_EQ(cell(plan, 0, "train"), Cell{std::string("W")});
  EXPECT_FALSE(has_column(plan, "init_seed"));  // a start at zero has none
  EXPECT_FALSE(has_column(plan, "norm"));
  EXPECT_FALSE(has_column(plan, "beta1"));
  EXPECT_FALSE(has_column(plan, "eps_value"));
}

TEST(SweepFile, TheLastAxisOfTheFileVariesFastest) {
  const SweepPlan plan = test::parsed_sweep(R"(
[sweep]
name = "order"
description = "three axes"
[grid]
seed = "1:3"
lr = [0.1, 0.2]
[[zip]]
p = [1.75, 2, 3]
steps = [1500, 2000, 20000]
)");
  EXPECT_EQ(plan.name, "order");
  EXPECT_EQ(plan.description, "three axes");
  ASSERT_EQ(plan.runs.size(), 18u);
  EXPECT_EQ(plan.axes, (std::vector<std::string>{"seed", "lr", "p", "steps"}));
  const std::vector<std::int64_t> steps{1500, 2000, 20000};
  const std::vector<double> p{1.75, 2, 3}, lr{0.1, 0.2};
  for (std::size_t i = 0; i < 18; ++i) {
    EXPECT_EQ(cell(plan, i, "p"), Cell{p[i % 3]});
    EXPECT_EQ(cell(plan, i, "steps"), Cell{steps[i % 3]});
    EXPECT_EQ(cell(plan, i, "lr"), Cell{lr[i / 3 % 2]});
    EXPECT_EQ(cell(plan, i, "seed"), Cell{static_cast<std::int64_t>(i / 6 + 1)});
  }
  // The same tables the other way round.
  const SweepPlan turned = test::parsed_sweep(R"(
[[zip]]
p = [1.75, 2, 3]
steps = [1500, 2000, 20000]
[grid]
lr = [0.1, 0.2]
seed = [1, 2, 3]
)");
  EXPECT_EQ(cell(turned, 1, "seed"), Cell{std::int64_t{2}});
  EXPECT_EQ(cell(turned, 17, "p"), Cell{3.0});
  EXPECT_EQ(keys(turned), keys(plan));
}

TEST(SweepFile, ListsReplaceAndMultiply) {
  const SweepPlan plan = test::parsed_sweep(R"(
[train]
lr = 0.1
[grid]
seed = [1, 2]
[[list]]
p = 1.1
lr = 0.01
[[list]]
optimizer = "sign"
[[list]]
)");
  ASSERT_EQ(plan.runs.size(), 6u);
  EXPECT_EQ(cell(plan, 0, "p"), Cell{1.1});
  EXPECT_EQ(cell(plan, 0, "lr"), Cell{0.01});
  EXPECT_EQ(cell(plan, 1, "optimizer"), Cell{std::string("sign")});
  EXPECT_EQ(cell(plan, 1, "p"), Cell{});  // sign descent has none
  EXPECT_EQ(cell(plan, 1, "lr"), Cell{0.1});
  EXPECT_EQ(cell(plan, 2, "p"), Cell{2.0});
  EXPECT_EQ(cell(plan, 5, "seed"), Cell{std::int64_t{2}});
}

TEST(SweepFile, AZipMayLeaveASettingOut) {
  const SweepPlan plan = test::parsed_sweep(R"(
[[zip]]
optimizer = ["md", "sign"]
p = [3, "default"]
[[zip]]
init = ["normal:1", "zero"]
init_seed = [7, "default"]
)");
  ASSERT_EQ(plan.runs.size(), 4u);
  EXPECT_EQ(cell(plan, 0, "p"), Cell{3.0});
  EXPECT_EQ(cell(plan, 2, "p"), Cell{});
  EXPECT_EQ(cell(plan, 0, "init_seed"), Cell{std::int64_t{7}});
  EXPECT_EQ(cell(plan, 1, "init_seed"), Cell{});
}

TEST(SweepFile, Ranges) {
  const SweepPlan whole = test::parsed_sweep("[grid]\nseed = \"3:12:4\"\ndim = \"log:2:50:3\"\n");
  ASSERT_EQ(whole.runs.size(), 9u);
  EXPECT_EQ(cell(whole, 8, "seed"), Cell{std::int64_t{11}});
  EXPECT_EQ(cell(whole, 1, "dim"), Cell{std::int64_t{10}});
  const SweepPlan reals = test::parsed_sweep("[grid]\nlr = \"log:1e-3:1:4\"\np = \"lin:1.1:2.1:6\"\n");
  ASSERT_EQ(reals.runs.size(), 24u);
  EXPECT_EQ(cell(reals, 6, "lr"), Cell{0.01});  // not 0.0100000000000002
  EXPECT_EQ(cell(reals, 12, "lr"), Cell{0.1});
  EXPECT_EQ(cell(reals, 18, "lr"), Cell{1.0});
  EXPECT_EQ(cell(reals, 1, "p"), Cell{1.3});
  EXPECT_EQ(test::parsed_sweep("[train]\ninit = \"uniform\"\n[grid]\ninit_seed = \"0:4\"\n").runs.size(), 5u);
}

TEST(SweepFile, StartsHaveTheSeedOfTheDataUnlessToldOtherwise) {
  const SweepPlan same =
      test::parsed_sweep("[train]\ninit = \"normal:1\"\n[grid]\nseed = [3, 4]\nlr = [0.1, 0.2]\n");
  EXPECT_EQ(cell(same, 0, "init_seed"), Cell{std::int64_t{3}});
  EXPECT_EQ(cell(same, 3, "init_seed"), Cell{std::int64_t{4}});
  EXPECT_EQ(keys(same), keys(test::parsed_sweep(
                            "[train]\ninit = \"normal\"\ninit_seed = \"seed\"\n[grid]\nseed = [3, 4]\n"
                            "lr = [0.1, 0.2]\n")));
  const SweepPlan own = test::parsed_sweep(
      "[train]\ninit = \"normal:1\"\ninit_seed = \"own\"\n[grid]\nseed = [3, 4]\nlr = [0.1, 0.2]\n");
  std::set<std::int64_t> seeds;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto seed = std::get<std::int64_t>(cell(own, i, "init_seed"));
    EXPECT_GE(seed, 0);
    seeds.insert(seed);
  }
  EXPECT_EQ(seeds.size(), 4u);
  // They do not depend on what else is in the sweep.
  const SweepPlan part =
      test::parsed_sweep("[train]\ninit = \"normal:1\"\ninit_seed = \"own\"\nlr = 0.2\n[data]\nseed = 4\n");
  EXPECT_EQ(cell(part, 0, "init_seed"), cell(own, 3, "init_seed"));
  EXPECT_EQ(part.runs[0].key, own.runs[3].key);
  // Data without a seed.
  const SweepPlan joint =
      test::parsed_sweep("[data]\ngenerator = \"joint\"\n[train]\ntrain = \"W,v\"\ninit = \"uniform\"\n");
  EXPECT_EQ(cell(joint, 0, "init_seed"), Cell{std::int64_t{0}});
}

TEST(SweepFile, KeysDoNotDependOnNamesOrderAndDefaults) {
  const std::string key = test::parsed_sweep("").runs[0].key;
  EXPECT_EQ(key.size(), 16u);
  for (const char* same : {
           "[sweep]\nname = \"x\"\ndescription = \"y\"\n",
           "[data]\ngenerator = \"sphere\"\nsamples = 6\nseed = 1\nmin_tokens = 0\n",
           "[grid]\np = [2]\nlr = [0.1]\n",
           "[train]\nsteps = 1e3\nmomentum = \"none\"\nschedule = \"constant\"\njacobian = \"safe\"\n",
           "[train]\nnormalized = false\ntrain = \"W\"\nhead = \"linear\"\nparams = \"W\"\n",
           "[record]\nsaturated = 0.99\n",
       })
    EXPECT_EQ(test::parsed_sweep(same).runs[0].key, key) << same;
  EXPECT_EQ(test::parsed_sweep("[train]\nschedule = \"power\"\n").runs[0].key,
            test::parsed_sweep("[train]\nschedule = \"power:0.5\"\n").runs[0].key);
}

TEST(SweepFile, KeysDependOnEverySetting) {
  std::set<std::string> seen{test::parsed_sweep("").runs[0].key};
  const char* others[] = {
      "[data]\nsamples = 7\n",
      "[data]\ntokens = 9\n",
      "[data]\ndim = 11\n",
      "[data]\nseed = 2\n",
      "[data]\nmin_tokens = 3\n",
      "[data]\nqueries = 2\n",
      "[data]\nquery_from = \"all\"\n",
      "[data]\nquery_from = \"all\"\n[train]\nmask = \"causal\"\n",
      "[data]\ngenerator = \"visualization1\"\n",
      "[data]\ngenerator = \"single-input\"\n",
      "[data]\ngenerator = \"single-input\"\nscores = \"unequal\"\n",
      "[data]\ngenerator = \"loss-comparison\"\n",
      "[data]\ngenerator = \"loss-comparison\"\nscore = 11\n",
      "[data]\ngenerator = \"joint-prompt\"\n[train]\nparams = \"prompt\"\ntrain = \"p,v\"\n",
      "[data]\ngenerator = \"joint-prompt\"\nlabel_margin = \"slack\"\n[train]\nparams = \"prompt\"\ntrain = "
      "\"p,v\"\n",
      "[data]\ngenerator = \"relu\"\n[train]\nhead = \"relu\"\n",
      "[train]\noptimizer = \"gd\"\n",
      "[train]\noptimizer = \"steepest\"\nnorm = 1.5\n",
      "[train]\noptimizer = \"steepest\"\nnorm = 1.5\nnormalized = false\n",
      "[train]\noptimizer = \"muon\"\n",
      "[train]\noptimizer = \"muon\"\northogonalization = \"exact\"\n",
      "[train]\noptimizer = \"adam\"\n",
      "[train]\noptimizer = \"adam\"\nbeta1 = 0.5\n",
      "[train]\noptimizer = \"adam\"\nbeta2 = 0.5\n",
      "[train]\ngeometry = \"schatten\"\n",
      "[train]\ngeometry = \"entropy\"\n",
      "[train]\ngeometry = \"entropy\"\nentropy_beta = 2\n",
      "[train]\np = 3\n",
      "[train]\nlr = 0.2\n",
      "[train]\nnormalized = true\n",
      "[train]\nnormalized = true\neps = \"paper\"\n",
      "[train]\nnormalized = true\neps = \"paper\"\neps_value = 1e-12\n",
      "[train]\nnormalized = true\neps = \"paper\"\njacobian = \"safe\"\n",
      "[train]\nmomentum = \"ema:0.5\"\n",
      "[train]\nschedule = \"power\"\n",
      "[train]\npowers = \"general\"\n",
      "[train]\nparams = \"KQ\"\n",
      "[train]\nparams = \"KQ\"\nrank = 2\n",
      "[train]\nparams = \"KQ\"\ninit_seed = 9\n",
      "[train]\nparams = \"prompt\"\n",
      "[train]\nloss = \"exponential\"\n",
      "[train]\nhead = \"quadratic:0.5\"\n",
      "[train]\nscaled = true\n",
      "[train]\npenalty = 0.5\n",
      "[train]\ntrain = \"W,v\"\n",
      "[train]\ninit = \"normal:2\"\n",
      "[train]\nsteps = 999\n",
      "[train]\nsaturation = 0.5\n",
      "[train]\ndata_path = \"stream\"\n",
      "[train]\nstorage = \"float32\"\n",
      "[record]\nsaturated = 0.5\n",
      "[record]\nrank_tolerance = 0.5\n",
      "[record]\nmargins = [2]\n",
      "[record]\nsolutions = [\"own\"]\n",
      "[record]\ncurves = [\"loss\"]\n",
      "[record]\ncurves = [\"loss\"]\nsteps = \"every:10\"\n",
      "[record]\nkeep = [\"weights\"]\n",
      "[record]\nkeep = [\"path\"]\n",
  };
  for (const char* text : others)
    EXPECT_TRUE(seen.insert(test::parsed_sweep(text).runs[0].key).second) << text;
}

// The key is stored in databases: it must never change by accident.
TEST(SweepFile, KeysStayWhatTheyAre) {
  EXPECT_EQ(test::parsed_sweep("").runs[0].key, "1986a5df078139a9");
  EXPECT_EQ(
      test::parsed_sweep("[train]\noptimizer = \"muon\"\nparams = \"KQ\"\ninit_seed = \"own\"\n").runs[0].key,
      "c617a1190847931b");
}

TEST(SweepFile, ManyRunsAreRead) {
  const SweepPlan plan = test::parsed_sweep(R"(
[train]
init = "normal:1"
init_seed = "own"
[grid]
seed = "1:1000"
p = "lin:1.1:5:10"
lr = "log:1e-3:1:10"
)");
  EXPECT_EQ(plan.runs.size(), 100'000u);
  EXPECT_EQ(keys(plan).size(), 100'000u);
}

TEST(SweepFile, IsLoadedFromDisk) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.toml") << "[grid]\nseed = [1, 2]\n";
  const SweepPlan plan = load_sweep(folder / "a.toml");
  EXPECT_EQ(plan.runs.size(), 2u);
  EXPECT_EQ(plan.folder, folder.path());
  EXPECT_EQ(plan.text, "[grid]\nseed = [1, 2]\n");
  expect_bad_input({"b.toml", "No such file"}, [&] { load_sweep(folder / "b.toml"); });
  expect_bad_input({folder.path().string()}, [&] { load_sweep(folder.path()); });
}

TEST(SweepFile, TheExamplesAreRead) {
  const std::filesystem::path folder = test::source_folder() / "examples/sweeps";
  const std::map<std::string, std::size_t> runs{
      {"p1_setting_a.toml", 300},           {"p1_setting_a_quick.toml", 15},
      {"p3_global_convergence.toml", 2200}, {"p3_global_convergence_quick.toml", 60},
      {"p3_global_grid.toml", 90000},       {"step_size.toml", 1080},
      {"p_against_seeds.toml", 500}};
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".sql") continue;  // what is asked of the results
    ASSERT_TRUE(runs.contains(name)) << name;
    const SweepPlan plan = load_sweep(entry.path());
    EXPECT_EQ(plan.runs.size(), runs.at(name)) << name;
    EXPECT_FALSE(plan.name.empty()) << name;
    for (const std::size_t run : {std::size_t{0}, plan.runs.size() - 1}) plan.prepare(run);
    ++found;
  }
  EXPECT_EQ(found, runs.size());
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// A setting as docs/sweep.md lists it.
std::string documented(const SweepSetting& setting) {
  const std::string choices =
      setting.choices.empty() ? "" : "`" + replaced(setting.choices, "|", "`, `") + "` – ";
  return "| `" + setting.name + "` | " + setting.type + " | " +
         (setting.default_text.empty() ? "–" : setting.default_text) + " | " + choices +
         replaced(setting.meaning, "|", "\\|") + " |";
}

// The tables of the documentation are those of the program: names, types, defaults and meanings.
TEST(SweepFile, TheDocumentationHasEverySetting) {
  std::ifstream file(test::source_folder() / "docs/sweep.md");
  ASSERT_TRUE(file) << "docs/sweep.md";
  std::ostringstream text;
  text << file.rdbuf();
  for (const SweepSetting& setting : sweep_settings())
    EXPECT_NE(text.str().find(documented(setting)), std::string::npos) << "expected in docs/sweep.md:\n"
                                                                       << documented(setting);
}

}  // namespace
}  // namespace attmirror::test

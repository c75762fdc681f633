#include "support/files.hpp"
#include "sweep/pivot.hpp"
#include "sweep_rows.hpp"
#include <attmirror/sweep/export.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::example_header;
using test::example_row;
using test::example_rows;
using test::expect_bad_input;
using test::TemporaryFolder;
using Mode = SweepDatabase::Mode;
using Lines = std::vector<std::vector<std::string>>;

std::vector<std::string> names_of(const Table& table) {
  std::vector<std::string> names;
  for (const auto& column : table.columns) names.push_back(column.name);
  return names;
}

// p = 2: losses 1, 2, 4, 8 and one missing; p = 10: one run; p = 1.75: none that has a loss.
std::vector<RunRow> study() {
  std::vector<RunRow> rows;
  const auto add = [&](double p, Cell loss, const char* status) {
    RunRow row = example_row(static_cast<std::int64_t>(rows.size()));
    row.settings[1] = p;
    row.metrics = {std::move(loss), std::string("0"), static_cast<std::int64_t>(rows.size())};
    row.status = status;
    rows.push_back(row);
  };
  add(10, 3.0, "ok");
  add(2, 8.0, "ok");
  add(2, 1.0, "ok");
  add(2, 4.0, "unsaturated");
  add(2, 2.0, "ok");
  add(2, {}, "diverged");
  add(1.75, {}, "error");
  return rows;
}

TEST(Summary, IsWhatOneComputesByHand) {
  const TemporaryFolder folder;
  SweepDatabase database(folder / "r.db", Mode::create, example_header());
  database.write(study());
  const Table table = summarize(database, {.metrics = {"loss"}, .quantiles = {0, 0.25, 0.5, 0.9, 1}});
  table.validate();
  EXPECT_EQ(table.title, "p against seeds");
  EXPECT_EQ(names_of(table),
            (std::vector<std::string>{"p", "metric", "count", "missing", "mean", "std", "sem", "q0", "q0.25",
                                      "q0.5", "q0.9", "q1", "status"}));
  // numpy: mean 3.75, std(ddof=1) 3.095696, quantile([1, 2, 4, 8], .25) = 1.75, .5: 3, .9: 6.8
  EXPECT_EQ(table.rows, (Lines{{"1.75", "loss", "0", "1", "", "", "", "", "", "", "", "", "error 1"},
                               {"2", "loss", "4", "1", "3.75", "3.0957", "1.54785", "1", "1.75", "3", "6.8",
                                "8", "ok 3, diverged 1, unsaturated 1"},
                               {"10", "loss", "1", "0", "3", "", "", "3", "3", "3", "3", "3", "ok 1"}}));
}

TEST(Summary, TakesAllNumbersAndTheAxesOtherThanSeeds) {
  const TemporaryFolder folder;
  SweepDatabase database(folder / "r.db", Mode::create, example_header());
  database.write(study());
  const Table table = summarize(database);
  ASSERT_EQ(table.rows.size(), 6u);  // three p, loss and rank
  EXPECT_EQ(names_of(table)[0], "p");
  EXPECT_EQ(table.rows[0][1], "loss");
  EXPECT_EQ(table.rows[1][1], "rank");
  EXPECT_EQ(table.rows[3][2], "5");  // ranks 1 to 5
  EXPECT_EQ(table.rows[3][4], "3");
}

TEST(Summary, GroupsByTextAndStatusInOrder) {
  const TemporaryFolder folder;
  auto rows = study();
  rows[0].settings[2] = std::string("adam");
  rows[1].settings[2] = Cell{};
  SweepDatabase database(folder / "r.db", Mode::create, example_header());
  database.write(rows);
  const Table table = summarize(database, {.group_by = {"optimizer", "status"}, .metrics = {"rank", "seed"}});
  std::vector<std::string> groups;
  for (const auto& line : table.rows)
    if (line[2] == "rank") groups.push_back(line[0] + " " + line[1] + " " + line[3]);
  EXPECT_EQ(groups, (std::vector<std::string>{"- ok 1", "adam ok 1", "md diverged 1", "md error 1", "md ok 2",
                                              "md unsaturated 1"}));
}

TEST(Summary, InfinitiesAreNumbers) {
  const TemporaryFolder folder;
  auto rows = example_rows(0, 3);
  for (auto& row : rows) row.metrics[0] = std::numeric_limits<double>::infinity();
  SweepDatabase database(folder / "r.db", Mode::create, example_header());
  database.write(rows);
  const Table table =
      summarize(database, {.group_by = {"optimizer"}, .metrics = {"loss"}, .quantiles = {0.3}});
  EXPECT_EQ(table.rows[0][4], "inf");
  EXPECT_EQ(table.rows[0][7], "inf");
}

TEST(Summary, OfNothingMeasuredSaysHowRunsEnded) {
  const TemporaryFolder folder;
  SweepHeader header = example_header();
  header.metrics.clear();
  header.axes = {"seed"};
  auto rows = example_rows(0, 3);
  for (auto& row : rows) row.metrics.clear();
  SweepDatabase database(folder / "r.db", Mode::create, header);
  EXPECT_TRUE(summarize(database).rows.empty());
  database.write(rows);
  const Table table = summarize(database, {.group_by = {"status"}});
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0].back(), "ok 3");
}

// Rows that differ in a setting are not averaged into one, though it is not an axis of the file.
TEST(Summary, GroupsByWhatDiffers) {
  const TemporaryFolder folder;
  SweepHeader header = example_header();
  header.axes = {"seed"};
  SweepDatabase database(folder / "r.db", Mode::create, header);
  database.write(example_rows(0, 6));
  const Table table = summarize(database, {.metrics = {"loss"}});
  const auto names = [&] {
    std::vector<std::string> result;
    for (const Column& column : table.columns) result.push_back(column.name);
    return result;
  }();
  EXPECT_EQ(std::ranges::count(names, "p"), 1);
  EXPECT_EQ(std::ranges::count(names, "seed"), 0);
  EXPECT_GT(table.rows.size(), 1u);
}

TEST(Summary, GivesAllDigitsWhenAsked) {
  const TemporaryFolder folder;
  SweepDatabase database(folder / "r.db", Mode::create, example_header());
  database.write(example_rows(0, 3));
  const Table six = summarize(database, {.group_by = {"status"}, .metrics = {"loss"}}),
              all = summarize(
                  database,
                  {.group_by = {"status"}, .metrics = {"loss"}, .digits = SummaryOptions::Digits::all});
  EXPECT_LE(six.rows[0][4].size(), all.rows[0][4].size());
  EXPECT_NEAR(std::stod(six.rows[0][4]), std::stod(all.rows[0][4]),
              1e-5 * std::abs(std::stod(all.rows[0][4])));
}

TEST(Summary, NamesTheNearest) {
  const TemporaryFolder folder;
  const SweepDatabase database(folder / "r.db", Mode::create, example_header());
  expect_bad_input({"group \"optimiser\"", "did you mean \"optimizer\"?"},
                   [&] { summarize(database, {.group_by = {"optimiser"}}); });
  expect_bad_input({"metric \"lost\"", "did you mean \"loss\"?"},
                   [&] { summarize(database, {.metrics = {"lost"}}); });
  expect_bad_input({"metric \"zzzzzzzzzz\" is not a column of the sweep"},
                   [&] { summarize(database, {.metrics = {"zzzzzzzzzz"}}); });
  expect_bad_input({"metric \"selected\" is a text"},
                   [&] { summarize(database, {.metrics = {"selected"}}); });
  expect_bad_input({"quantiles[1] is 1.5"}, [&] { summarize(database, {.quantiles = {0.5, 1.5}}); });
  expect_bad_input({"quantiles[0] is nan"}, [&] { summarize(database, {.quantiles = {std::stod("nan")}}); });
}

TEST(MeanText, HasTheDigitsThatMeanSomething) {
  EXPECT_EQ(mean_text(0.474828, 0.0117022), "0.475 ± 0.012");
  EXPECT_EQ(mean_text(441.116, 45.3789), "441 ± 45");
  EXPECT_EQ(mean_text(2063.8, 103.444), "2064 ± 103");
  EXPECT_EQ(mean_text(1.2341e-7, 4.2e-9), "(1.234 ± 0.042)e-07");
  EXPECT_EQ(mean_text(-3.5e8, 1e7), "(-3.50 ± 0.10)e+08");
  EXPECT_EQ(mean_text(0, 0.5), "0.00 ± 0.50");
  EXPECT_EQ(mean_text(0.044721359549995794, std::nullopt), "0.04472");
  EXPECT_EQ(mean_text(1, 1e-17), "1") << "rounding";
  EXPECT_EQ(mean_text(std::numeric_limits<double>::infinity(), 1), "inf");
}

TEST(Pivot, PutsTheLastColumnAcross) {
  SummaryGroups summary;
  summary.by = {{"optimizer", Align::left}, {"p"}};
  summary.metrics = {"loss", "steps"};
  const auto group = [](std::string optimizer, std::string p, double loss, std::int64_t count, bool ok) {
    SummaryGroup one;
    one.key = {std::move(optimizer), std::move(p)};
    one.runs = 4;
    one.all_ok = ok;
    one.statuses = ok ? "ok 4" : "ok 3, diverged 1";
    one.metrics = {{.count = count, .mean = loss, .deviation = 0.2, .error = 0.1},
                   {.count = 4, .mean = 500, .deviation = 0, .error = 0}};
    return one;
  };
  summary.groups = {group("gd", "2", 1, 4, true), group("md", "1.5", 2, 3, false),
                    group("md", "3", 3, 4, true)};
  const Pivot pivot = make_pivot(summary);
  EXPECT_EQ(pivot.facts, (std::vector<std::string>{"steps: 500 in every run"}));
  EXPECT_EQ(pivot.kept, 1u);
  ASSERT_EQ(pivot.tables.size(), 2u);
  EXPECT_EQ(pivot.tables[0].title, "runs");
  EXPECT_EQ(pivot.tables[0].rows, (Lines{{"gd", "-", "4", "-"}, {"md", "ok 3, diverged 1", "-", "4"}}));
  EXPECT_EQ(pivot.tables[1].title, "loss");
  EXPECT_EQ(names_of(pivot.tables[1]), (std::vector<std::string>{"optimizer", "p 1.5", "p 2", "p 3"}));
  EXPECT_EQ(pivot.tables[1].rows,
            (Lines{{"gd", "-", "1.00 ± 0.10", "-"}, {"md", "2.00 ± 0.10 (3 of 4)", "-", "3.00 ± 0.10"}}));
}

TEST(Pivot, OfOneColumnHasTheMetricsAcross) {
  const TemporaryFolder folder;
  SweepDatabase database(folder / "r.db", Mode::create, example_header());
  database.write(study());
  const Pivot pivot = make_pivot(summary_groups(database, {.group_by = {"p"}, .metrics = {"loss"}}));
  ASSERT_EQ(pivot.tables.size(), 1u);
  EXPECT_EQ(names_of(pivot.tables[0]), (std::vector<std::string>{"p", "runs", "loss"}));
  EXPECT_EQ(pivot.tables[0].rows, (Lines{{"1.75", "error 1", "-"},
                                         {"2", "ok 3, diverged 1, unsaturated 1", "3.8 ± 1.5 (4 of 5)"},
                                         {"10", "1", "3"}}));
  EXPECT_TRUE(make_pivot({}).tables.empty());
}

}  // namespace
}  // namespace attmirror

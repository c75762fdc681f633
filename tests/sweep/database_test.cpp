#include "base/atomic_file.hpp"
#include "support/files.hpp"
#include "support/same_bits.hpp"
#include "sweep_rows.hpp"
#include <attmirror/sweep/database.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::example_header;
using test::example_row;
using test::example_rows;
using test::expect_bad_input;
using test::expect_error;
using test::TemporaryFolder;
using Mode = SweepDatabase::Mode;

TEST(SweepDatabase, RowsComeBack) {
  const TemporaryFolder folder;
  const auto rows = example_rows(0, 20);
  {
    SweepDatabase database(folder / "r.db", Mode::create, example_header());
    EXPECT_EQ(database.count(), 0);
    database.write(std::span(rows).subspan(10));
    database.write(std::span(rows).first(10));
    EXPECT_EQ(database.rows(SweepDatabase::Arrays::load), rows);
    database.write({});
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"r.db"});
  {
    const SweepDatabase database(folder / "r.db");
    EXPECT_EQ(database.header(), example_header());
    EXPECT_EQ(database.count(), 20);
    EXPECT_EQ(database.rows(SweepDatabase::Arrays::load), rows);
    EXPECT_EQ(database.arrays(rows[7].key), rows[7].arrays);
    EXPECT_TRUE(database.arrays("none").empty());
    EXPECT_EQ(database.integrity(), "");
    std::vector<std::string> keys;
    for (const auto& row : rows) keys.push_back(row.key);
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(database.finished_keys(), keys);
    const auto shapes = database.array_shapes();
    ASSERT_EQ(shapes.size(), 3u);
    EXPECT_EQ(shapes.at("W"), (std::vector<std::vector<std::int64_t>>{{2, 2}}));
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"r.db"});  // a reader leaves nothing behind, either
}

TEST(SweepDatabase, CellsKeepTheirBits) {
  const TemporaryFolder folder;
  using Limits = std::numeric_limits<double>;
  const std::vector<double> numbers{0.0,
                                    -0.0,
                                    1.0,
                                    -2.0,
                                    0.1,
                                    Limits::max(),
                                    Limits::min(),
                                    5e-324,
                                    -5e-324,
                                    Limits::infinity(),
                                    -Limits::infinity(),
                                    9007199254740993.0,
                                    1e300,
                                    1e15,
                                    4503599627370497.5};
  const std::vector<std::int64_t> integers{
      0, 1, -1, 127, std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  const std::vector<std::string> texts{"",
                                       "a",
                                       "it's",
                                       "\"quoted\"",
                                       "a,b\r\nc",
                                       "ℓp ‖W‖ 漢字 😀",
                                       "12",
                                       "1e5",
                                       " ",
                                       "NULL",
                                       std::string(100'000, 'x')};
  std::vector<RunRow> rows;
  for (std::size_t i = 0; i < 15; ++i) {
    RunRow row = example_row(static_cast<std::int64_t>(i));
    row.settings = {integers[i % integers.size()], numbers[i % numbers.size()], texts[i % texts.size()]};
    row.metrics = {numbers[i % numbers.size()], texts[i % texts.size()], integers[i % integers.size()]};
    row.config = row.reason = texts[i % texts.size()];
    row.arrays = {{"", {0, 3}, {}}, {"ℓ\"'", {}, {numbers[i]}}, {"all", {3, 5}, numbers}};
    rows.push_back(row);
  }
  rows[3].metrics.assign(3, Cell{});
  SweepDatabase(folder / "r.db", Mode::create, example_header()).write(rows);
  const auto back = SweepDatabase(folder / "r.db").rows(SweepDatabase::Arrays::load);
  ASSERT_EQ(back, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_TRUE(
        test::same_bits(std::get<double>(back[i].settings[1]), std::get<double>(rows[i].settings[1])));
    if (i != 3) {
      EXPECT_TRUE(
          test::same_bits(std::get<double>(back[i].metrics[0]), std::get<double>(rows[i].metrics[0])));
    }
    for (std::size_t k = 0; k < numbers.size(); ++k)
      EXPECT_TRUE(test::same_bits(back[i].arrays[2].values[k], numbers[k]));
  }
}

TEST(SweepDatabase, NanIsNothingInACellAndItselfInAnArray) {
  const TemporaryFolder folder;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  RunRow row = example_row(0);
  row.metrics[0] = nan;
  row.seconds = nan;
  row.arrays = {{"loss", {2}, {nan, 1}}};
  SweepDatabase(folder / "r.db", Mode::create, example_header()).write(std::span(&row, 1));
  const SweepDatabase database(folder / "r.db");
  const auto back = database.rows(SweepDatabase::Arrays::load);
  ASSERT_EQ(back.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(back[0].metrics[0]));
  EXPECT_TRUE(std::isnan(back[0].seconds));
  EXPECT_TRUE(std::isnan(back[0].arrays[0].values[0]));
  EXPECT_EQ(back[0].arrays[0].values[1], 1);
}

TEST(SweepDatabase, WholeNumbersMayStandInRealColumns) {
  const TemporaryFolder folder;
  RunRow row = example_row(0);
  row.settings[1] = std::int64_t{3};
  SweepDatabase(folder / "r.db", Mode::create, example_header()).write(std::span(&row, 1));
  EXPECT_EQ(SweepDatabase(folder / "r.db").rows()[0].settings[1], Cell(3.0));
}

TEST(SweepDatabase, RowsThatDoNotFitAreRefusedAsAWhole) {
  const TemporaryFolder folder;
  SweepDatabase database(folder / "r.db", Mode::create, example_header());
  const auto refused = [&](std::initializer_list<std::string_view> words, auto change) {
    auto rows = example_rows(0, 3);
    change(rows[2]);
    expect_bad_input(words, [&] { database.write(rows); });
    EXPECT_EQ(database.count(), 0);
  };
  refused({"run 2", "2 settings", "3"}, [](RunRow& row) { row.settings.pop_back(); });
  refused({"run 2", "4 metrics", "3"}, [](RunRow& row) { row.metrics.emplace_back(); });
  refused({"settings[0]", "seed", "run 2"}, [](RunRow& row) { row.settings[0] = 1.5; });
  refused({"metrics[0]", "loss"}, [](RunRow& row) { row.metrics[0] = "much"; });
  refused({"metrics[1]", "selected"}, [](RunRow& row) { row.metrics[1] = std::int64_t{1}; });
  refused({"no key"}, [](RunRow& row) { row.key.clear(); });
  refused({"array \"loss\"", "run 2", "2 values", "[3]"},
          [](RunRow& row) { row.arrays[1].values.pop_back(); });
  refused({"array", "[-1]"}, [](RunRow& row) { row.arrays[0].shape = {-1}; });
  refused({"two arrays \"W\""}, [](RunRow& row) { row.arrays.push_back(row.arrays.back()); });
  database.write(example_rows(0, 3));
  EXPECT_EQ(database.count(), 3);
}

TEST(SweepDatabase, AKeyThatIsThereIsLeftAsItIs) {
  const TemporaryFolder folder;
  SweepDatabase database(folder / "r.db", Mode::create, example_header());
  database.write(example_rows(0, 2));
  auto rows = example_rows(0, 3);
  rows[0].status = "diverged";
  rows[0].arrays[0].values[0] = 99;
  database.write(rows);
  EXPECT_EQ(database.rows(SweepDatabase::Arrays::load), example_rows(0, 3));
}

TEST(SweepDatabase, NamesOfColumnsMustDiffer) {
  const TemporaryFolder folder;
  const auto refused = [&](std::initializer_list<std::string_view> words, auto change) {
    SweepHeader header = example_header();
    change(header);
    expect_bad_input(words, [&] { SweepDatabase(folder / "r.db", Mode::create, header); });
    EXPECT_TRUE(folder.names().empty());
  };
  refused({"\"Status\" and \"status\""}, [](SweepHeader& header) { header.settings[0].name = "Status"; });
  refused({"\"p\" and \"P\""}, [](SweepHeader& header) { header.metrics[0].name = "P"; });
  refused({"\"loss\""}, [](SweepHeader& header) { header.metrics[1].name = "loss"; });
  refused({"no name"}, [](SweepHeader& header) { header.metrics[1].name = ""; });
  refused({"NUL"}, [](SweepHeader& header) { header.metrics[1].name = std::string("a\0b", 3); });
  refused({"2014 columns", "at most"}, [](SweepHeader& header) {
    header.metrics.clear();
    for (int i = 0; i < 2000; ++i) header.metrics.push_back({fmt::format("m{}", i), CellType::real});
  });
}

TEST(SweepDatabase, NamesMayBeAnything) {
  const TemporaryFolder folder;
  SweepHeader header = example_header();
  header.settings = {
      {"order", CellType::integer}, {"a \"b\" c", CellType::real}, {"svm.bregman", CellType::text}};
  header.metrics = {{"group", CellType::real}, {"ℓ", CellType::text}, {"rowid", CellType::integer}};
  header.axes = {"order"};
  const auto rows = example_rows(0, 3);
  SweepDatabase(folder / "r?%20#.db", Mode::create, header).write(rows);
  const SweepDatabase database(folder / "r?%20#.db");
  EXPECT_EQ(database.header(), header);
  EXPECT_EQ(database.rows(SweepDatabase::Arrays::load), rows);
}

TEST(SweepDatabase, ManyColumnsFit) {
  const TemporaryFolder folder;
  SweepHeader header = example_header();
  header.metrics.clear();
  for (int i = 0; i < 1500; ++i) header.metrics.push_back({fmt::format("m{}", i), CellType::real});
  RunRow row = example_row(0);
  row.metrics.assign(1500, Cell(0.5));
  SweepDatabase(folder / "r.db", Mode::create, header).write(std::span(&row, 1));
  EXPECT_EQ(SweepDatabase(folder / "r.db").rows(SweepDatabase::Arrays::load), std::vector{row});
}

TEST(SweepDatabase, CreateRefusesWhatIsThere) {
  const TemporaryFolder folder;
  SweepDatabase(folder / "r.db", Mode::create, example_header()).write(example_rows(0, 2));
  expect_bad_input({"r.db exists", "resume", "overwrite"},
                   [&] { SweepDatabase(folder / "r.db", Mode::create, example_header()); });
  EXPECT_EQ(SweepDatabase(folder / "r.db").count(), 2);
  write_file_atomically(folder / "letter",
                        "Dear reader, this is not a database, and it is long enough to look like one. "
                        "It goes on for a while, until it has more than one hundred bytes.");
  const auto before = read_file(folder / "letter");
  for (const Mode mode : {Mode::create, Mode::resume, Mode::overwrite})
    expect_bad_input({"letter", "not a database of an attmirror sweep"},
                     [&] { SweepDatabase(folder / "letter", mode, example_header()); });
  EXPECT_EQ(read_file(folder / "letter"), before);
  write_file_atomically(folder / "empty", "");
  SweepDatabase(folder / "empty", Mode::create, example_header()).write(example_rows(0, 1));
  EXPECT_EQ(SweepDatabase(folder / "empty").count(), 1);
}

TEST(SweepDatabase, OverwriteReplacesASweepOfAnyColumns) {
  const TemporaryFolder folder;
  SweepHeader other = example_header();
  other.name = "another";
  other.metrics.pop_back();
  SweepDatabase(folder / "r.db", Mode::create, other);
  SweepDatabase(folder / "r.db", Mode::overwrite, example_header()).write(example_rows(0, 1000));
  const auto large = std::filesystem::file_size(folder / "r.db");
  {
    SweepDatabase reader(folder / "r.db");
    const SweepDatabase::Snapshot before(reader);
    SweepDatabase database(folder / "r.db", Mode::overwrite, example_header());
    EXPECT_EQ(database.count(), 0);
    EXPECT_EQ(reader.count(), 1000);  // what it began to read is still there for it
  }
  {
    SweepDatabase database(folder / "r.db", Mode::overwrite, example_header());
    database.write(example_rows(0, 2));
  }
  EXPECT_EQ(SweepDatabase(folder / "r.db").rows(SweepDatabase::Arrays::load), example_rows(0, 2));
  EXPECT_LT(std::filesystem::file_size(folder / "r.db"), large / 4);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"r.db"});
  SweepDatabase(folder / "new.db", Mode::overwrite, example_header());  // nothing to replace
  EXPECT_EQ(SweepDatabase(folder / "new.db").count(), 0);
}

TEST(SweepDatabase, ResumeGoesOnAndKeepsTheNewestText) {
  const TemporaryFolder folder;
  SweepDatabase(folder / "r.db", Mode::create, example_header()).write(example_rows(0, 3));
  SweepHeader extended = example_header();
  extended.file_text += "# more seeds\n";
  extended.axes.push_back("optimizer");
  {
    SweepDatabase database(folder / "r.db", Mode::resume, extended);
    EXPECT_EQ(database.finished_keys().size(), 3u);
    database.write(example_rows(2, 5));
  }
  const SweepDatabase database(folder / "r.db");
  EXPECT_EQ(database.header(), extended);
  EXPECT_EQ(database.rows(SweepDatabase::Arrays::load), example_rows(0, 5));
}

TEST(SweepDatabase, ResumeRefusesAnotherSweep) {
  const TemporaryFolder folder;
  SweepDatabase(folder / "r.db", Mode::create, example_header()).write(example_rows(0, 3));
  const auto refused = [&](std::initializer_list<std::string_view> words, auto change) {
    SweepHeader header = example_header();
    change(header);
    expect_bad_input(words, [&] { SweepDatabase(folder / "r.db", Mode::resume, header); });
  };
  refused({"setting \"p\" (real)", "only there"}, [](SweepHeader& header) { header.settings[1].name = "q"; });
  refused({"setting \"seed\" (integer)", "only there"},
          [](SweepHeader& header) { header.settings[0].type = CellType::real; });
  refused({"setting \"lr\"", "only here"}, [](SweepHeader& header) { header.settings.push_back({"lr"}); });
  refused({"metric \"rank\"", "only there"}, [](SweepHeader& header) { header.metrics.pop_back(); });
  refused({"records", "\"final\"", "\"all\""}, [](SweepHeader& header) { header.record_text = "all"; });
  refused({"order"}, [](SweepHeader& header) { std::swap(header.settings[0], header.settings[1]); });
  expect_bad_input({"none.db", "no such file"},
                   [&] { SweepDatabase(folder / "none.db", Mode::resume, example_header()); });
  EXPECT_EQ(folder.names(), std::vector<std::string>{"r.db"});
  EXPECT_EQ(SweepDatabase(folder / "r.db").rows(SweepDatabase::Arrays::load), example_rows(0, 3));
}

TEST(SweepDatabase, ReadersAreToldWhatIsWrong) {
  const TemporaryFolder folder;
  expect_bad_input({"cannot read", "none.db", "No such file"}, [&] { SweepDatabase(folder / "none.db"); });
  expect_bad_input({"cannot read", "directory"}, [&] { SweepDatabase(folder.path()); });
  write_file_atomically(folder / "empty", "");
  expect_bad_input({"empty is empty"}, [&] { SweepDatabase(folder / "empty"); });
  write_file_atomically(folder / "text", std::string(5000, 'x'));
  expect_bad_input({"text is damaged or does not hold the results"}, [&] { SweepDatabase(folder / "text"); });
  SweepDatabase(folder / "r.db", Mode::create, example_header());
  SweepDatabase reader(folder / "r.db");
  expect_bad_input({"opened to read"}, [&] { reader.write(example_rows(0, 1)); });
  const std::vector<std::string> unknown{"seed", "los"};
  expect_bad_input({"\"los\"", "did you mean \"loss\"?"}, [&] { reader.for_each_run(unknown, [](auto) {}); });
}

TEST(SweepDatabase, WritersAreToldWhatIsWrong) {
  const TemporaryFolder folder;
  const auto refused = [](const std::filesystem::path& path, std::string_view word) {
    for (const Mode mode : {Mode::create, Mode::overwrite, Mode::resume})
      expect_error(ErrorKind::environment, {"cannot write", path.string(), word},
                   [&] { SweepDatabase(path, mode, example_header()); });
  };
  refused(folder / "none/r.db", "No such file or directory");
  refused(folder.path(), "directory");
  expect_bad_input({"not a regular file"},
                   [] { SweepDatabase("/dev/null", Mode::create, example_header()); });
  EXPECT_TRUE(folder.names().empty());
}

TEST(SweepDatabase, LinksAreFollowed) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "disk");
  std::filesystem::create_symlink(folder / "disk/real.db", folder / "r.db");
  {
    SweepDatabase database(folder / "r.db", Mode::create, example_header());
    database.write(example_rows(0, 2));
    EXPECT_TRUE(std::filesystem::exists(folder / "disk/real.db-wal"));
    // The same file by its other name is the same file.
    expect_error(ErrorKind::environment, {"being written"},
                 [&] { SweepDatabase(folder / "disk/real.db", Mode::resume, example_header()); });
  }
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "r.db"));
  EXPECT_EQ(SweepDatabase(folder / "disk/real.db").count(), 2);
}

TEST(SweepDatabase, ALogWithoutItsFileDoesNotComeBack) {
  const TemporaryFolder folder;
  {
    SweepDatabase database(folder / "r.db", Mode::create, example_header());
    database.write(example_rows(0, 5));
    std::filesystem::copy_file(folder / "r.db-wal", folder / "kept");
  }
  std::filesystem::remove(folder / "r.db");
  std::filesystem::rename(folder / "kept", folder / "r.db-wal");
  SweepDatabase database(folder / "r.db", Mode::create, example_header());
  EXPECT_EQ(database.count(), 0);
  database.write(example_rows(0, 1));
  EXPECT_EQ(database.integrity(), "");
  EXPECT_EQ(database.count(), 1);
}

TEST(SweepDatabase, ReadsPieceByPiece) {
  const TemporaryFolder folder;
  auto rows = example_rows(0, 4);
  rows[2].arrays.erase(rows[2].arrays.begin());
  SweepDatabase database(folder / "r.db", Mode::create, example_header());
  database.write(rows);
  std::vector<std::string> lines;
  const std::vector<std::string> names{"p", "run", "status"};
  database.for_each_run(names, [&](std::span<const Cell> cells) {
    lines.push_back(fmt::format("{} {} {}", std::get<double>(cells[0]), std::get<std::int64_t>(cells[1]),
                                std::get<std::string>(cells[2])));
  });
  EXPECT_EQ(lines, (std::vector<std::string>{"1.75 0 ok", "2 1 ok", "1.75 2 ok", "2 3 ok"}));
  std::vector<bool> there;
  database.for_each_array("step", [&](const std::optional<RowArray>& array) {
    there.push_back(array.has_value());
    if (array) {
      EXPECT_EQ(*array, rows[0].arrays[0]);
    }
  });
  EXPECT_EQ(there, (std::vector<bool>{true, true, false, true}));
  std::int64_t none = 0;
  database.for_each_run({}, [&](std::span<const Cell> cells) { none += cells.empty() ? 1 : 0; });
  EXPECT_EQ(none, 4);
  // What a visitor throws comes out, and the database can still be used.
  EXPECT_THROW(database.for_each_row([](const RunRow&) { throw std::runtime_error("enough"); }),
               std::runtime_error);
  database.write(example_rows(4, 5));
  EXPECT_EQ(database.count(), 5);
}

TEST(SweepDatabase, IsMoved) {
  const TemporaryFolder folder;
  SweepDatabase first(folder / "r.db", Mode::create, example_header());
  SweepDatabase second = std::move(first);
  second.write(example_rows(0, 2));
  SweepDatabase third(folder / "s.db", Mode::create, example_header());
  third = std::move(second);
  EXPECT_EQ(third.count(), 2);
  EXPECT_EQ(third.path(), folder / "r.db");
  // The file that `third` had is free again.
  EXPECT_EQ(SweepDatabase(folder / "s.db", Mode::resume, example_header()).count(), 0);
}

}  // namespace
}  // namespace attmirror

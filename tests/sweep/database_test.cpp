#include "support/files.hpp"
#include "sweep_rows.hpp"
#include <attmirror/base/atomic_file.hpp>
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
    EXPECT_EQ(database.array_names(), (std::vector<std::string>{"W", "loss", "step"}));
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"r.db"});  // a reader leaves nothing behind, either
}

}  // namespace
}  // namespace attmirror

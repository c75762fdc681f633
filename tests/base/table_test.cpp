#include "base/table_fold.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/table.hpp>

#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace attmirror {
namespace {

Table norms() {
  return {.title = "Max-margin norms",
          .columns = {{"norm", Align::left}, {"‖W‖"}, {"gap"}},
          .rows = {{"ℓ1.75", "3.45949206", "1e-11"}, {"ℓ2", "2.66015688", "0"}}};
}

TEST(Table, IsAlignedOnATerminal) {
  EXPECT_EQ(to_text(norms()),
            "Max-margin norms\n"
            "norm          ‖W‖    gap\n"
            "-----  ----------  -----\n"
            "ℓ1.75  3.45949206  1e-11\n"
            "ℓ2     2.66015688      0\n");
}

TEST(Table, LeavesNoBlanksAtTheEndOfALine) {
  EXPECT_EQ(to_text({.columns = {{"n"}, {"why", Align::left}}, .rows = {{"1", "long text"}, {"2", ""}}}),
            "n  why\n"
            "-  ---------\n"
            "1  long text\n"
            "2\n");
}

TEST(Table, IsMarkdownToo) {
  EXPECT_EQ(to_markdown(norms()),
            "**Max-margin norms**\n"
            "\n"
            "| norm | ‖W‖ | gap |\n"
            "| :--- | ---: | ---: |\n"
            "| ℓ1.75 | 3.45949206 | 1e-11 |\n"
            "| ℓ2 | 2.66015688 | 0 |\n");
}

TEST(Table, CellsCannotBreakTheLayout) {
  const Table table{.columns = {{"a|b"}}, .rows = {{"x\ny|z"}}};
  EXPECT_EQ(to_markdown(table), "| a\\|b |\n| ---: |\n| x y\\|z |\n");
  EXPECT_EQ(to_text(table), "  a|b\n-----\nx y|z\n");
}

TEST(Table, RowsMustHaveACellForEachColumn) {
  EXPECT_THROW(to_text(Table{}), Error);
  Table table = norms();
  table.rows.push_back({"one", "two"});
  try {
    to_text(table);
    FAIL() << "a short row was accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "rows[2] of table 'Max-margin norms' has 2 cells: expected 3, one per column");
  }
  EXPECT_THROW(to_markdown(table), Error);
}

TEST(DisplayWidth, CountsColumnsAndNotBytes) {
  EXPECT_EQ(display_width(""), 0u);
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("‖W‖ₚ ≤ ℓ∞ ∇ψ ±"), 14u);
  EXPECT_EQ(display_width("e\u0301"), 1u);  // e with a combining accent
  EXPECT_EQ(display_width("注意"), 4u);
  EXPECT_EQ(display_width("\U0001F600"), 2u);
}

TEST(DisplayWidth, BytesThatAreNoUtf8CountAsOne) {
  EXPECT_EQ(display_width("\xff\xfe"), 2u);
  EXPECT_EQ(display_width("\xe2\x80"), 2u);   // cut short
  EXPECT_EQ(display_width("\xc3(\x80"), 3u);  // no continuation, and one without a start
}

TEST(Table, LinesAreEquallyWideWhateverTheCells) {
  const bool holds = rc::check("the last, right-aligned column ends all lines at one place", [] {
    Table table{.columns = {{"first", Align::left}, {"last"}}};
    for (int i = 0; i < 5; ++i)
      table.rows.push_back({*rc::gen::arbitrary<std::string>(), *rc::gen::arbitrary<std::string>() + "."});
    table.columns[1].name = "last";
    std::istringstream lines(to_text(table));
    std::string line;
    std::getline(lines, line);
    const std::size_t width = display_width(line);
    std::size_t count = 1;
    for (; std::getline(lines, line); ++count) RC_ASSERT(display_width(line) == width);
    RC_ASSERT(count == 7u);
  });
  EXPECT_TRUE(holds);
}

TEST(Table, FoldsWhatIsTooWide) {
  const Table table{.title = "wide",
                    .columns = {{"p"}, {"first"}, {"second"}, {"third"}},
                    .rows = {{"1", "1.25", "2.5", "3.75"}, {"2", "", "20", "30"}}};
  EXPECT_EQ(to_text(table, {.width = 80, .kept = 1}), to_text(table));
  // "p  first  second" is 16 letters wide.
  EXPECT_EQ(to_text(table, {.width = 16, .kept = 1}),
            "wide\n"
            "p  first  second\n"
            "-  -----  ------\n"
            "1   1.25     2.5\n"
            "2             20\n"
            "\n"
            "p  third\n"
            "-  -----\n"
            "1   3.75\n"
            "2     30\n");
  const std::string narrow = to_text(table, {.width = 3, .kept = 1});
  for (const char* name : {"p  first\n", "p  second\n", "p  third\n"})
    EXPECT_NE(narrow.find(name), std::string::npos) << narrow;
  EXPECT_EQ(to_text(table, {.width = 1, .kept = 9}), to_text(table)) << "all columns are kept";
}

}  // namespace
}  // namespace attmirror

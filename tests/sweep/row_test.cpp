#include <attmirror/base/error.hpp>
#include <attmirror/sweep/row.hpp>

#include <limits>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

RunRow example() {
  RunRow row;
  row.key = "0123456789abcdef";
  row.run = 7;
  row.settings = {Cell{}, Cell{std::int64_t{-3}}, Cell{0.1}, Cell{std::string("md")}};
  row.config = "{\"p\": 1.75}";
  row.status = "diverged";
  row.reason = "the loss is not finite at step 3";
  row.metrics = {Cell{std::numeric_limits<double>::infinity()}};
  row.arrays = {{"loss", {3}, {3, 2, 1}}, {"W", {2, 1}, {-0.0, 5e-324}}, {"empty", {0}, {}}};
  row.seconds = 0.25;
  row.engine = "lanes:8";
  row.isa = "avx2";
  row.version = "0.1.0";
  row.commit = "abc";
  row.finished = "2026-01-31T12:34:56Z";
  return row;
}

TEST(Row, ComesBackFromItsBytes) {
  const std::vector<RunRow> rows{example(), RunRow{}, example()};
  EXPECT_EQ(parse_rows(to_bytes(rows)), rows);
  EXPECT_EQ(parse_rows(to_bytes({})), std::vector<RunRow>{});
}

TEST(Row, DamagedBytesAreRefused) {
  const std::string bytes = to_bytes({example()});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(parse_rows(bytes.substr(0, size)), Error) << size;
  EXPECT_THROW(parse_rows(bytes + "x"), Error);
  std::string huge = bytes;
  huge[8] = huge[14] = '\x7f';  // a length beyond the bytes
  EXPECT_THROW(parse_rows(huge), Error);
}

}  // namespace
}  // namespace attmirror

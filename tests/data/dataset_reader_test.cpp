// Data sets that are looked through are those that are loaded: same fingerprint, same rows, same refusals.
#include "data/dataset_reader.hpp"

#include "attention/optimal_token.hpp"
#include "base/atomic_file.hpp"
#include "support/files.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::expect_bad_input;
using test::TemporaryFolder;

// Some numbers that no rounding makes equal.
std::vector<double> numbers(std::size_t count) {
  std::vector<double> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = std::sin(1 + static_cast<double>(i));
  return result;
}

Array doubles(const Shape& shape) {
  return Array(shape, std::span<const double>(numbers(element_count(shape, DType::float64, "array"))));
}

Array signs(const Shape& shape) {
  std::vector<std::int64_t> values(element_count(shape, DType::int64, "array"));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 3 == 0 ? 1 : -1;
  return Array(shape, std::span<const std::int64_t>(values));
}

void expect_same(const std::filesystem::path& path) {
  const Dataset whole = load_dataset(path);
  const NpzReader file(path);
  const DatasetReader reader(file);
  const Dataset& frame = reader.frame();
  EXPECT_EQ(to_string(frame), to_string(whole));
  EXPECT_EQ(frame.all_tokens().rows, 0);
  OptimalTokens optimal(frame, whole.decoder().eigen().row(0).transpose());
  std::ptrdiff_t rows = 0;
  const std::uint64_t print = reader.look_through([&](std::ptrdiff_t first, ConstMatrixView piece) {
    EXPECT_EQ(first, rows);
    rows += piece.rows;
    EXPECT_EQ(piece.eigen(), whole.all_tokens().eigen().middleRows(first, piece.rows));
    optimal.add(first, piece);
  });
  EXPECT_EQ(rows, whole.total_tokens());
  EXPECT_EQ(print, whole.fingerprint());
  EXPECT_EQ(optimal.selection().tokens, optimal_tokens(whole).tokens);
}

TEST(DatasetReader, LooksThroughWhatLoadDatasetReads) {
  const TemporaryFolder folder;
  const auto file = folder / "data.npz";
  for (const auto compression : {NpzCompression::stored, NpzCompression::deflated}) {
    // More than a piece of a megabyte, which ends within a sequence.
    const NamedArrays box{
        {"X", doubles({700, 30, 13})}, {"Z", doubles({700, 13})}, {"Y", signs({700})}, {"v", doubles({13})}};
    save_npz(file, box, {.compression = compression});
    expect_same(file);
  }
  // Rows longer than a piece; lengths; several queries.
  save_npz(file, {{"x", doubles({3, 140000})},
                  {"lengths", Array(std::vector<std::int64_t>{2, 1})},
                  {"z", doubles({2, 2, 140000})},
                  {"y", signs({2, 2})},
                  {"v", doubles({140000})}});
  expect_same(file);
  // Self-attention with a mask, over several pieces.
  std::vector<std::int64_t> index, mask;
  for (int i = 0; i < 3000 * 2; ++i) index.push_back((i * 7) % 10);
  for (int i = 0; i < 3000 * 2 * 10; ++i) mask.push_back(i % 10 == 0 || i % 3 == 0 ? 1 : 0);
  save_npz(file, {{"X", doubles({3000, 10, 9})},
                  {"query_index", Array({3000, 2}, std::span<const std::int64_t>(index))},
                  {"mask", Array({3000, 2, 10}, std::span<const std::int64_t>(mask))},
                  {"Y", signs({3000})},
                  {"v", doubles({9})}});
  expect_same(file);
}

TEST(DatasetReader, TakesFloatsToo) {
  const TemporaryFolder folder;
  const std::vector<double> values = numbers(200 * 40 * 24);
  const std::vector<float> floats(values.begin(), values.end());
  save_npz(folder / "data.npz", {{"X", Array({200, 40, 24}, std::span<const float>(floats))},
                                 {"Z", doubles({200, 24})},
                                 {"Y", signs({200})},
                                 {"v", doubles({24})}});
  expect_same(folder / "data.npz");
  EXPECT_EQ(load_dataset(folder / "data.npz").all_tokens().data[1], static_cast<double>(floats[1]));
}

TEST(DatasetReader, NamesTheEntryThatIsWrongInTheShapeOfTheFile) {
  const TemporaryFolder folder;
  std::vector<double> values = numbers(700 * 30 * 13);
  values[(650 * 30 + 7) * 13 + 5] = std::numeric_limits<double>::infinity();
  save_npz(folder / "data.npz", {{"X", Array({700, 30, 13}, std::span<const double>(values))},
                                 {"Z", doubles({700, 13})},
                                 {"Y", signs({700})}});
  expect_bad_input({"data.npz: X[650,7,5] is inf: expected a finite number"},
                   [&] { load_dataset(folder / "data.npz"); });
}

TEST(NpzReader, ReadsTheSamePiecesAsTheWhole) {
  const TemporaryFolder folder;
  save_npz(folder / "a.npz",
           {{"A", doubles({300, 1000})}, {"empty", doubles({0, 4})}, {"scalar", Array::scalar(3.0)}},
           {.compression = NpzCompression::deflated});
  const NpzReader file(folder / "a.npz");
  const NamedArrays whole = load_npz(folder / "a.npz");
  ASSERT_EQ(file.entries().size(), 3u);
  for (const NpzReader::Entry& entry : file.entries()) {
    std::vector<std::byte> bytes;
    const NpyHeader header =
        file.read_pieces(entry, [&](std::size_t first, std::span<const std::byte> piece) {
          EXPECT_EQ(first * 8, bytes.size());
          EXPECT_LE(piece.size(), std::size_t{1} << 20);
          bytes.insert(bytes.end(), piece.begin(), piece.end());
        });
    EXPECT_EQ(Array(header.dtype, header.shape, bytes), whole.at(entry.key));
    EXPECT_EQ(file.header(entry).shape, header.shape);
  }
}

TEST(NpzReader, SeesDamageThatIsNotLookedAt) {
  const TemporaryFolder folder;
  NamedArrays arrays{
      {"X", doubles({6, 5, 4})}, {"Z", doubles({6, 4})}, {"Y", signs({6})}, {"mine", doubles({50})}};
  std::vector<std::byte> bytes = format_npz(arrays);
  const std::string text = test::to_text(bytes);
  bytes[text.find("mine.npy") + 250] ^= std::byte{1};
  write_file_atomically(folder / "data.npz", bytes);
  expect_bad_input({"data.npz", "mine"}, [&] { load_dataset(folder / "data.npz"); });
}

}  // namespace
}  // namespace attmirror

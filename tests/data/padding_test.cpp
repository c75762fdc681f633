// Padded sequences: with lengths they are the ragged data, to the bit; without, rows of zeros are found.
#include "data/padding.hpp"

#include "data/dataset_arrays.hpp"
#include "data/dataset_reader.hpp"
#include "support/files.hpp"
#include <attmirror/data/npz.hpp>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::expect_bad_input;
using test::TemporaryFolder;

const std::vector<std::int64_t> four_lengths{3, 5, 1, 4};
constexpr std::int64_t longest_of_four = 5, box_width = 7, token_dim = 4;

double token_entry(std::int64_t i, std::int64_t t, std::int64_t j) {
  return std::sin(static_cast<double>(1 + 100 * i + 10 * t + j));
}

Array ragged_tokens() {
  std::vector<double> values;
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t t = 0; t < four_lengths[static_cast<std::size_t>(i)]; ++t)
      for (std::int64_t j = 0; j < token_dim; ++j) values.push_back(token_entry(i, t, j));
  return Array({13, token_dim}, std::span<const double>(values));
}

Array padded_tokens(double padding, std::int64_t width = box_width) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t t = 0; t < width; ++t)
      for (std::int64_t j = 0; j < token_dim; ++j)
        values.push_back(t < four_lengths[static_cast<std::size_t>(i)] ? token_entry(i, t, j) : padding);
  return Array({4, width, token_dim}, std::span<const double>(values));
}

NamedArrays four_sequences(Array X) {
  NamedArrays arrays{{"X", std::move(X)},
                     {"lengths", Array(four_lengths)},
                     {"Z", Array({4, token_dim}, std::vector<double>(16, 0.5))},
                     {"Y", Array(std::vector<std::int64_t>{1, -1, 1, -1})},
                     {"v", Array(std::vector<double>{1, 2, 3, 4})}};
  return arrays;
}

NamedArrays without_lengths(Array X) {
  NamedArrays arrays = four_sequences(std::move(X));
  arrays.erase("lengths");
  return arrays;
}

void expect_same_data(const Dataset& a, const Dataset& b) {
  EXPECT_EQ(a.fingerprint(), b.fingerprint());
  ASSERT_EQ(a.total_tokens(), b.total_tokens());
  EXPECT_EQ(a.all_tokens().eigen(), b.all_tokens().eigen());
  EXPECT_EQ(to_string(a), to_string(b));
}

TEST(Padding, WithLengthsIsTheRaggedData) {
  const TemporaryFolder folder;
  const Dataset ragged = make_dataset(four_sequences(ragged_tokens()));
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  // What stands in the padding does not matter.
  for (const double padding : {0.0, 7.5, nan, inf, -inf}) {
    const NamedArrays arrays = four_sequences(padded_tokens(padding));
    expect_same_data(make_dataset(arrays), ragged);
    for (const auto compression : {NpzCompression::stored, NpzCompression::deflated}) {
      save_npz(folder / "data.npz", arrays, {.compression = compression});
      expect_same_data(load_dataset(folder / "data.npz"), ragged);
      const NpzReader file(folder / "data.npz");
      const DatasetReader reader(file);
      EXPECT_EQ(reader.layout(), TokenLayout::padded);
      std::ptrdiff_t rows = 0;
      EXPECT_EQ(reader.look_through([&](std::ptrdiff_t first, ConstMatrixView piece) {
        EXPECT_EQ(first, rows);
        EXPECT_EQ(piece.eigen(), ragged.all_tokens().eigen().middleRows(first, piece.rows));
        rows += piece.rows;
      }),
                ragged.fingerprint());
      EXPECT_EQ(rows, 13);
    }
  }
}

// Integers that no double holds are refused as tokens, and do not matter as padding.
TEST(Padding, MayHoldNumbersThatNoDoubleIs) {
  std::vector<std::int64_t> values(2 * 3 * 2, 1);
  values[10] = values[11] = (std::int64_t{1} << 53) + 1;
  NamedArrays arrays{{"X", Array({2, 3, 2}, std::span<const std::int64_t>(values))},
                     {"lengths", Array(std::vector<std::int64_t>{3, 2})},
                     {"Z", Array({2, 2}, std::vector<double>(4, 1.0))},
                     {"Y", Array(std::vector<std::int64_t>{1, -1})}};
  EXPECT_EQ(make_dataset(arrays).total_tokens(), 5);
  arrays.insert_or_assign("lengths", Array(std::vector<std::int64_t>{3, 3}));
  expect_bad_input({"X[1, 2, 0]", "a double holds exactly"}, [&] { make_dataset(arrays); });
}

// Over many pieces of the file, each of which begins and ends anywhere; and rows that are longer than a
// piece.
TEST(Padding, IsCutOutOfLargeFiles) {
  const TemporaryFolder folder;
  for (const auto& [n, T, d] : {std::tuple{900, 31, 13}, std::tuple{2, 3, 140000}}) {
    std::vector<double> box, rows;
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < n; ++i) {
      lengths.push_back(1 + (i * 7) % T);
      for (std::int64_t t = 0; t < T; ++t)
        for (std::int64_t j = 0; j < d; ++j) {
          const double value = std::sin(static_cast<double>((i * T + t) * d + j));
          box.push_back(t < lengths.back() ? value : std::numeric_limits<double>::quiet_NaN());
          if (t < lengths.back()) rows.push_back(value);
        }
    }
    NamedArrays arrays{{"X", Array({n, T, d}, std::span<const double>(box))},
                       {"lengths", Array(std::span<const std::int64_t>(lengths))},
                       {"query_index", Array(std::vector<std::int64_t>(static_cast<std::size_t>(n), 0))},
                       {"Y", Array(std::vector<double>(static_cast<std::size_t>(n), 1.0))}};
    save_npz(folder / "padded.npz", arrays);
    const auto total = static_cast<std::int64_t>(rows.size()) / d;
    arrays.insert_or_assign("X", Array({total, d}, std::span<const double>(rows)));
    const Dataset ragged = make_dataset(arrays);
    expect_same_data(load_dataset(folder / "padded.npz"), ragged);
    const NpzReader file(folder / "padded.npz");
    EXPECT_EQ(DatasetReader(file).look_through([](std::ptrdiff_t, ConstMatrixView) {}), ragged.fingerprint());
  }
}

TEST(Padding, GoesWithMasksAndQueryIndex) {
  NamedArrays arrays = four_sequences(ragged_tokens());
  arrays.erase("Z");
  arrays.emplace("query_index", Array(std::vector<std::int64_t>{2, 4, 0, 3}));
  const auto mask = [](std::int64_t width) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < 4; ++i)
      for (std::int64_t t = 0; t < width; ++t)
        values.push_back(t >= four_lengths[static_cast<std::size_t>(i)] ? 9
                         : (i + t) % 2 == 0 || t == 0                   ? 1
                                                                        : 0);
    return Array({4, width}, std::span<const double>(values));
  };
  arrays.emplace("mask", mask(longest_of_four));
  const Dataset ragged = make_dataset(arrays);
  arrays.insert_or_assign("X", padded_tokens(std::nan("")));
  // As wide as the longest sequence, or as X.
  expect_same_data(make_dataset(arrays), ragged);
  arrays.insert_or_assign("mask", mask(box_width));
  expect_same_data(make_dataset(arrays), ragged);
  arrays.insert_or_assign("mask", mask(6));
  expect_bad_input({"mask has shape (4, 6): expected (4, 7) to match X (4, 7, 4)"},
                   [&] { make_dataset(arrays); });
  arrays.insert_or_assign("mask", mask(box_width));
  arrays.insert_or_assign("query_index",
                          Array(std::vector<std::int64_t>{3, 4, 0, 3}));  // padding is no query
  expect_bad_input({"query_index[0] is 3: expected 0 to 2, a token of sequence 0"},
                   [&] { make_dataset(arrays); });
}

TEST(Padding, NamesTheWrongLength) {
  const auto refused = [](std::vector<std::int64_t> lengths, Array X, const char* message) {
    NamedArrays arrays = four_sequences(std::move(X));
    arrays.insert_or_assign("lengths", Array(std::span<const std::int64_t>(lengths)));
    expect_bad_input({message}, [&] { make_dataset(arrays); });
  };
  refused({3, 8, 1, 4}, padded_tokens(0), "lengths[1] is 8: expected 1 to 7, the tokens of X (4, 7, 4)");
  refused({3, 5, 0, 4}, padded_tokens(0), "lengths[2] is 0: expected 1 to 7");
  refused({-1, 5, 1, 4}, padded_tokens(0), "lengths[0] is -1: expected 1 to 7");
  refused({3, 5, 1}, padded_tokens(0), "lengths has shape (3,): expected (4,) to match X (4, 7, 4)");
  refused({3, 5, 1, 3}, ragged_tokens(),
          "lengths add up to 12: expected 13, the rows of X (13, 4); padded sequences are X (n, T, d)");
  NamedArrays nan_padded = without_lengths(padded_tokens(std::nan("")));
  expect_bad_input({"X[0,3,0] is nan: expected a finite number; if it is padding, give lengths (n)"},
                   [&] { make_dataset(nan_padded); });
}

TEST(Padding, WithoutLengthsIsSuspected) {
  const auto found = suspected_padding(make_dataset(without_lengths(padded_tokens(0, longest_of_four))));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sequence, 0);
  EXPECT_EQ(found->rows, 2);
  EXPECT_EQ(found->sequences, 3);
  EXPECT_EQ(found->total_rows, 2 + 4 + 1);
  EXPECT_EQ(
      to_string(*found),
      "sequence 0 ends in 2 rows of zeros (7 rows of zeros in 3 sequences in all): without lengths they are tokens "
      "like any other and become support tokens; if they are padding, give lengths (n), the number of tokens of each "
      "sequence");
  EXPECT_NE(to_string(SuspectedPadding{4, 1, 1, 1}).find("sequence 4 ends in 1 row of zeros: without"),
            std::string::npos);
  // A whole sequence of zeros, and a zero of the other sign.
  std::vector<double> zeros(2 * 2 * 3, 1.0);
  for (std::size_t i = 6; i < 12; ++i) zeros[i] = i % 2 == 0 ? 0.0 : -0.0;
  const auto whole = suspected_padding(make_dataset({{"X", Array({2, 2, 3}, std::span<const double>(zeros))},
                                                     {"Z", Array({2, 3}, std::vector<double>(6, 1.0))},
                                                     {"Y", Array(std::vector<double>{1, 1})}}));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->sequence, 1);
  EXPECT_EQ(whole->rows, 2);
}

TEST(Padding, IsNotSuspectedWhereTheDataSayWhatTheyAre) {
  // Lengths were given, even those of the whole box; the rows are not the last; a mask hides them.
  NamedArrays arrays = without_lengths(padded_tokens(0, longest_of_four));
  arrays.emplace("lengths", Array(std::vector<std::int64_t>{5, 5, 5, 5}));
  const Dataset tokens = make_dataset(arrays);
  EXPECT_EQ(tokens.total_tokens(), 20);
  EXPECT_FALSE(suspected_padding(tokens));
  EXPECT_FALSE(suspected_padding(make_dataset(four_sequences(ragged_tokens()))));
  EXPECT_FALSE(suspected_padding(Dataset({.tokens = Matrix::Zero(2, 3),
                                          .lengths = {2},
                                          .queries = Matrix::Ones(1, 3),
                                          .labels = {1},
                                          .decoder = {}})));
  std::vector<double> first_zero(3 * 4, 1.0);
  for (std::size_t j = 0; j < 4; ++j) first_zero[j] = 0;
  EXPECT_FALSE(suspected_padding(make_dataset({{"X", Array({1, 3, 4}, std::span<const double>(first_zero))},
                                               {"Z", Array({1, 4}, std::vector<double>(4, 1.0))},
                                               {"Y", Array(std::vector<double>{1})}})));
  NamedArrays masked = without_lengths(padded_tokens(0, longest_of_four));
  std::vector<std::int64_t> mask;
  for (std::size_t i = 0; i < 4; ++i)
    for (std::int64_t t = 0; t < longest_of_four; ++t) mask.push_back(t < four_lengths[i] ? 1 : 0);
  masked.emplace("mask", Array({4, longest_of_four}, std::span<const std::int64_t>(mask)));
  EXPECT_FALSE(suspected_padding(make_dataset(masked)));
}

// A file says what its writer knew: rows of zeros that are tokens have lengths, those that nobody knows of
// have none.
TEST(Padding, SavedDataKeepWhatIsKnown) {
  const TemporaryFolder folder;
  NamedArrays arrays = without_lengths(padded_tokens(0, longest_of_four));
  save_dataset(folder / "unknown.npz", make_dataset(arrays));
  EXPECT_TRUE(suspected_padding(load_dataset(folder / "unknown.npz")));
  EXPECT_FALSE(load_npz(folder / "unknown.npz").contains("lengths"));
  arrays.emplace("lengths", Array(std::vector<std::int64_t>{5, 5, 5, 5}));
  save_dataset(folder / "known.npz", make_dataset(arrays));
  EXPECT_FALSE(suspected_padding(load_dataset(folder / "known.npz")));
  EXPECT_EQ(load_dataset(folder / "known.npz").fingerprint(),
            load_dataset(folder / "unknown.npz").fingerprint());
}

}  // namespace
}  // namespace attmirror

#include "support/files.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/dataset.hpp>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace attmirror {
namespace {

// Two sequences, of 3 and 2 tokens, in three dimensions.
DatasetArrays small() {
  DatasetArrays arrays;
  arrays.tokens.resize(5, 3);
  arrays.tokens << 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15;
  arrays.lengths = {3, 2};
  arrays.queries.resize(2, 3);
  arrays.queries << -1, -2, -3, -4, -5, -6;
  arrays.labels = {1, -1};
  arrays.decoder.resize(3);
  arrays.decoder << 0.5, 0.25, -0.125;
  return arrays;
}

std::string refusal_after(const std::function<void(DatasetArrays&)>& damage) {
  DatasetArrays arrays = small();
  damage(arrays);
  return test::refusal([&] { const Dataset data(arrays); });
}

TEST(Dataset, KnowsItsSizes) {
  const Dataset data(small());
  EXPECT_EQ(data.samples(), 2);
  EXPECT_EQ(data.dim(), 3);
  EXPECT_EQ(data.total_tokens(), 5);
  EXPECT_EQ(data.max_length(), 3);
  EXPECT_EQ(data.length(0), 3);
  EXPECT_EQ(data.length(1), 2);
  EXPECT_EQ(data.offset(0), 0);
  EXPECT_EQ(data.offset(1), 3);
  EXPECT_EQ(data.offset(2), 5);
  EXPECT_FALSE(data.equal_lengths());
  EXPECT_EQ(to_string(data), "2 sequences of 2 to 3 tokens, dimension 3, with decoder");
}

TEST(Dataset, ViewsShowWhatWasGiven) {
  const DatasetArrays arrays = small();
  const Dataset data(arrays);
  EXPECT_EQ(Matrix(data.all_tokens().eigen()), arrays.tokens);
  EXPECT_EQ(Matrix(data.tokens(0).eigen()), arrays.tokens.topRows(3));
  EXPECT_EQ(Matrix(data.tokens(1).eigen()), arrays.tokens.bottomRows(2));
  EXPECT_EQ(Matrix(data.queries().eigen()), arrays.queries);
  EXPECT_EQ(std::vector<double>(data.labels().begin(), data.labels().end()), arrays.labels);
  ASSERT_TRUE(data.has_decoder());
  EXPECT_EQ(Matrix(data.decoder().eigen()), Matrix(arrays.decoder.transpose()));
}

TEST(Dataset, RowsArePaddedWithZerosAndStartOnACacheLine) {
  const Dataset data(small());
  for (const ConstMatrixView view : {data.all_tokens(), data.queries(), data.decoder()}) {
    EXPECT_EQ(view.stride, padded(3));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data) % 64, 0u);
    for (std::ptrdiff_t row = 0; row < view.rows; ++row) EXPECT_EQ(view.data[row * view.stride + 3], 0.0);
  }
}

TEST(Dataset, TheDecoderIsOptional) {
  DatasetArrays arrays = small();
  arrays.decoder.resize(0);
  const Dataset data(arrays);
  EXPECT_FALSE(data.has_decoder());
  EXPECT_EQ(data.decoder().rows, 0);
  EXPECT_EQ(to_string(data), "2 sequences of 2 to 3 tokens, dimension 3, no decoder");
}

TEST(Dataset, CopiesAreTheirOwn) {
  const Dataset first(small());
  const Dataset second = first;
  EXPECT_NE(first.all_tokens().data, second.all_tokens().data);
  EXPECT_EQ(first.fingerprint(), second.fingerprint());
}

TEST(Dataset, NamesTheWrongEntry) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(refusal_after([](DatasetArrays&) {}), "accepted");
  EXPECT_EQ(refusal_after([](DatasetArrays& a) { a.tokens(2, 1) = nan; }),
            "tokens[2,1] is nan: expected a finite number");
  EXPECT_EQ(refusal_after([](DatasetArrays& a) { a.queries(1, 0) = -inf; }),
            "queries[1,0] is -inf: expected a finite number");
  EXPECT_EQ(refusal_after([](DatasetArrays& a) { a.decoder[2] = inf; }),
            "decoder[2] is inf: expected a finite number");
  EXPECT_EQ(refusal_after([](DatasetArrays& a) { a.labels[1] = 0; }), "labels[1] is 0: expected -1 or +1");
  EXPECT_EQ(refusal_after([](DatasetArrays& a) { a.labels[0] = nan; }),
            "labels[0] is nan: expected -1 or +1");
  EXPECT_EQ(refusal_after([](DatasetArrays& a) { a.labels[0] = 1 + 1e-15; }),
            "labels[0] is 1.000000000000001: expected -1 or +1");
}

TEST(Dataset, NamesTheWrongSize) {
  EXPECT_EQ(refusal_after([](DatasetArrays& a) { a.lengths.clear(); }),
            "lengths is empty: expected 1 or more sequences");
  EXPECT_EQ(refusal_after([](DatasetArrays& a) { a.tokens.resize(5, 0); }),
            "tokens has 0 columns: expected 1 or more");
  EXPECT_EQ(refusal_after([](DatasetArrays& a) { a.labels.push_back(1); }),
            "labels has 3 entries: expected 2, one per sequence");
  EXPECT_EQ(refusal_after([](DatasetArrays& a) { a.queries.conservativeResize(1, 3); }),
            "queries has shape (1, 3): expected (2, 3) to match 2 sequences of tokens of dimension 3");
  EXPECT_EQ(refusal_after([](DatasetArrays& a) { a.decoder.conservativeResize(2); }),
            "decoder has 2 entries: expected 3, the dimension of the tokens, or none");
  EXPECT_EQ(refusal_after([](DatasetArrays& a) {
              a.lengths = {5, 0};
            }),
            "lengths[1] is 0: expected 1 or more tokens");
  EXPECT_EQ(refusal_after([](DatasetArrays& a) {
              a.lengths = {3, 3};
            }),
            "lengths[1] is 3: only 2 of the 5 rows of tokens are left for it");
  EXPECT_EQ(refusal_after([](DatasetArrays& a) {
              a.lengths = {3, 1};
            }),
            "lengths add up to 4: expected 5, the number of rows of tokens");
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(refusal_after([](DatasetArrays& a) {
              a.lengths = {huge, huge};
            }),
            "lengths[0] is 9223372036854775807: only 5 of the 5 rows of tokens are left for it");
}

TEST(Fingerprint, ChangesWithEveryPartOfTheData) {
  std::set<std::uint64_t> seen{Dataset(small()).fingerprint()};
  const auto expect_new = [&](const std::function<void(DatasetArrays&)>& change) {
    DatasetArrays arrays = small();
    change(arrays);
    EXPECT_TRUE(seen.insert(Dataset(arrays).fingerprint()).second);
  };
  expect_new([](DatasetArrays& a) { a.tokens(4, 2) = std::nextafter(15.0, 16.0); });
  expect_new([](DatasetArrays& a) { a.tokens.row(0).swap(a.tokens.row(1)); });
  expect_new([](DatasetArrays& a) { a.queries(0, 0) = 1; });
  expect_new([](DatasetArrays& a) { a.labels = {-1, -1}; });
  expect_new([](DatasetArrays& a) { a.labels = {-1, 1}; });
  expect_new([](DatasetArrays& a) { a.lengths = {2, 3}; });
  expect_new([](DatasetArrays& a) { a.decoder[0] = 0.5625; });
  expect_new([](DatasetArrays& a) { a.decoder.resize(0); });
}

TEST(Fingerprint, IsTheSameForEqualDataAndOnEveryMachine) {
  EXPECT_EQ(Dataset(small()).fingerprint(), Dataset(small()).fingerprint());
  DatasetArrays zero = small(), minus_zero = small();
  zero.tokens(0, 0) = 0.0;
  minus_zero.tokens(0, 0) = -0.0;
  EXPECT_EQ(Dataset(zero).fingerprint(), Dataset(minus_zero).fingerprint());
  // Pinned: runs on disk hold fingerprints, so the function must not change between versions.
  EXPECT_EQ(Dataset(small()).fingerprint(), 4698322051292265239u);
}

TEST(Dataset, OffsetsFollowAnyLengths) {
  const bool holds = rc::check("sequence i starts where sequence i - 1 ends", [] {
    const auto lengths = *rc::gen::nonEmpty(
        rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, 9)));
    const auto d = *rc::gen::inRange<std::ptrdiff_t>(1, 12);
    DatasetArrays arrays;
    std::ptrdiff_t total = 0;
    for (const std::int64_t length : lengths) total += length;
    const auto n = static_cast<std::ptrdiff_t>(lengths.size());
    arrays.tokens.resize(total, d);
    for (std::ptrdiff_t row = 0; row < total; ++row)
      arrays.tokens.row(row).setConstant(static_cast<double>(row));
    arrays.lengths = lengths;
    arrays.queries = Matrix::Ones(n, d);
    arrays.labels.assign(lengths.size(), -1.0);
    const Dataset data(arrays);
    std::ptrdiff_t row = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) {
      const auto tokens = data.tokens(i).eigen();
      RC_ASSERT(tokens.rows() == lengths[static_cast<std::size_t>(i)]);
      for (std::ptrdiff_t t = 0; t < tokens.rows(); ++t, ++row) {
        RC_ASSERT((tokens.row(t).array() == static_cast<double>(row)).all());
      }
    }
    RC_ASSERT(row == data.total_tokens());
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace attmirror

// Several queries per sequence, self-attention, masks and the ReLU head: in memory and in files.
#include "support/files.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/array.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/data/selection.hpp>

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

Matrix counting(std::ptrdiff_t rows, std::ptrdiff_t cols) {
  Matrix result(rows, cols);
  for (std::ptrdiff_t j = 0; j < result.size(); ++j) result.data()[j] = static_cast<double>(j + 1);
  return result;
}

// Two sequences of 3 and 2 tokens in two dimensions; the first has two queries, the second three.
DatasetArrays ragged() {
  DatasetArrays arrays;
  arrays.tokens = counting(5, 2);
  arrays.lengths = {3, 2};
  arrays.queries = counting(5, 2) * -1;
  arrays.query_counts = {2, 3};
  arrays.labels = {1, -1};
  return arrays;
}

DatasetArrays self_attention() {
  DatasetArrays arrays = ragged();
  arrays.queries.resize(0, 0);
  arrays.query_index = {0, 2, 1, 0, 1};
  return arrays;
}

std::string ragged_refusal(const std::function<void(DatasetArrays&)>& spoil,
                           DatasetArrays arrays = ragged()) {
  spoil(arrays);
  return test::refusal([&] { const Dataset data(arrays); });
}

void expect_equal(const Dataset& a, const Dataset& b) {
  EXPECT_EQ(a.fingerprint(), b.fingerprint());
  EXPECT_EQ(Matrix(a.queries().eigen()), Matrix(b.queries().eigen()));
  EXPECT_EQ(std::vector<double>(a.labels().begin(), a.labels().end()),
            std::vector<double>(b.labels().begin(), b.labels().end()));
  EXPECT_EQ(std::vector<std::int64_t>(a.query_index().begin(), a.query_index().end()),
            std::vector<std::int64_t>(b.query_index().begin(), b.query_index().end()));
  ASSERT_EQ(a.total_queries(), b.total_queries());
  for (std::ptrdiff_t j = 0; j < a.total_queries(); ++j) {
    EXPECT_EQ(a.sequence_of(j), b.sequence_of(j));
    for (std::ptrdiff_t t = 0; t < a.length(a.sequence_of(j)); ++t) EXPECT_EQ(a.allows(j, t), b.allows(j, t));
  }
  EXPECT_EQ(Matrix(a.head_weights().eigen()), Matrix(b.head_weights().eigen()));
}

TEST(Queries, BelongToTheirSequences) {
  const Dataset data(ragged());
  EXPECT_EQ(data.samples(), 2);
  EXPECT_EQ(data.total_queries(), 5);
  EXPECT_FALSE(data.one_query_each());
  EXPECT_FALSE(data.equal_query_counts());
  EXPECT_EQ(data.first_query(1), 2);
  EXPECT_EQ(data.query_count(1), 3);
  EXPECT_EQ(data.sequence_of(1), 0);
  EXPECT_EQ(data.sequence_of(2), 1);
  EXPECT_EQ(std::vector<double>(data.labels().begin(), data.labels().end()),
            (std::vector<double>{1, 1, -1, -1, -1}));
  EXPECT_EQ(to_string(data), "2 sequences of 2 to 3 tokens, dimension 2, 5 queries, no decoder");
}

TEST(Queries, MayHaveLabelsOfTheirOwn) {
  DatasetArrays arrays = ragged();
  arrays.labels = {1, -1, 1, 1, -1};
  const Dataset data(arrays);
  EXPECT_EQ(std::vector<double>(data.labels().begin(), data.labels().end()), arrays.labels);
  EXPECT_NE(data.fingerprint(), Dataset(ragged()).fingerprint());
}

TEST(Queries, OfSelfAttentionAreTokens) {
  const Dataset data(self_attention());
  const std::ptrdiff_t rows[] = {0, 2, 4, 3, 4};
  for (std::ptrdiff_t j = 0; j < 5; ++j)
    EXPECT_EQ(Matrix(data.queries().eigen().row(j)), Matrix(data.all_tokens().eigen().row(rows[j]))) << j;
}

TEST(Queries, AreRefusedWithTheFieldThatIsWrong) {
  EXPECT_EQ(ragged_refusal([](DatasetArrays& a) { a.query_counts = {2}; }),
            "query_counts has 1 entries: expected 2, one per sequence, or none");
  EXPECT_EQ(ragged_refusal([](DatasetArrays& a) {
              a.query_counts = {2, 0};
            }),
            "query_counts[1] is 0: expected 1 to 3, the queries that are left");
  EXPECT_EQ(ragged_refusal([](DatasetArrays& a) {
              a.query_counts = {2, INT64_MAX};
            }),
            "query_counts[1] is 9223372036854775807: expected 1 to 3, the queries that are left");
  EXPECT_EQ(ragged_refusal([](DatasetArrays& a) {
              a.query_counts = {2, 2};
            }),
            "query_counts add up to 4: expected 5, the number of queries");
  EXPECT_EQ(ragged_refusal([](DatasetArrays& a) {
              a.query_index = {0, 0, 0, 0, 0};
            }),
            "both queries and query_index are given: expected one of them");
  EXPECT_EQ(ragged_refusal([](DatasetArrays& a) { a.queries = counting(5, 3); }),
            "queries has 3 columns: expected 2, the dimension of the tokens");
  EXPECT_EQ(ragged_refusal([](DatasetArrays& a) {
              a.labels = {1, 1, 1};
            }),
            "labels has 3 entries: expected 2, one per sequence, or 5, one per query");
  EXPECT_EQ(ragged_refusal([](DatasetArrays& a) { a.query_index[1] = 3; }, self_attention()),
            "query_index[1] is 3: expected 0 to 2, a token of sequence 0");
  EXPECT_EQ(ragged_refusal([](DatasetArrays& a) { a.query_index[4] = -1; }, self_attention()),
            "query_index[4] is -1: expected 0 to 1, a token of sequence 1");
  EXPECT_EQ(ragged_refusal([](DatasetArrays& a) {
              a.mask = {1, 0};
            }),
            "mask has 2 entries: expected 12, one per query and token of its sequence");
  EXPECT_EQ(ragged_refusal([](DatasetArrays& a) { a.mask = {1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1}; }),
            "mask of query 1 allows no token: expected 1 or more");
  EXPECT_EQ(ragged_refusal([](DatasetArrays& a) { a.mask = {1, 1, 1, 1, 0, 7, 1, 1, 1, 1, 1, 1}; }),
            "mask of query 1, token 2 is 7: expected 0 or 1");
  EXPECT_EQ(ragged_refusal([](DatasetArrays& a) { a.head = counting(3, 4); }),
            "head has shape (3, 4): expected 2 rows, the dimension of the tokens");
}

TEST(Masks, SayWhatAQueryMayAttendTo) {
  DatasetArrays arrays = ragged();
  arrays.mask = {1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1, 0};
  const Dataset data(arrays);
  EXPECT_EQ(data.mask(), Mask::custom);
  EXPECT_FALSE(data.allows(0, 1));
  EXPECT_TRUE(data.allows(1, 2));
  EXPECT_FALSE(data.allows(3, 0));
  EXPECT_EQ(data.attended_length(3), 2);
  EXPECT_NO_THROW((Selection{{0, 2, 0, 1, 0}}.validate(data)));
  test::expect_bad_input({"selected[0] is 1: the mask forbids this token of sequence 0"}, [&] {
    Selection{{1, 2, 0, 1, 0}}.validate(data);
  });
}

TEST(Masks, CausalOnesLookBack) {
  const Dataset plain(self_attention());
  const Dataset data = with_causal_mask(plain);
  EXPECT_EQ(data.mask(), Mask::causal);
  EXPECT_NE(data.fingerprint(), plain.fingerprint());
  EXPECT_EQ(data.attended_length(0), 1);
  EXPECT_EQ(data.attended_length(1), 3);
  EXPECT_FALSE(data.allows(0, 1));
  EXPECT_TRUE(data.allows(2, 1));
  test::expect_bad_input({"a causal mask needs queries that are tokens of their sequence"},
                         [] { with_causal_mask(Dataset(ragged())); });
}

TEST(QueryFiles, ComeBack) {
  const test::TemporaryFolder folder;
  std::vector<Dataset> all{Dataset(ragged()), Dataset(self_attention()),
                           with_causal_mask(Dataset(self_attention()))};
  DatasetArrays equal = ragged();
  equal.lengths = {2, 3};
  equal.queries = counting(4, 2);
  equal.query_counts = {2, 2};
  equal.labels = {1, -1, -1, 1};
  equal.mask = {1, 0, 0, 1, 1, 1, 0, 0, 1, 0};
  equal.head = counting(2, 3);
  all.emplace_back(equal);
  DatasetArrays one = self_attention();
  one.query_counts.clear();
  one.query_index = {1, 1};
  all.emplace_back(one);
  for (const Dataset& data : all) {
    save_dataset(folder / "data.npz", data);
    expect_equal(load_dataset(folder / "data.npz"), data);
  }
}

class QueryFile : public ::testing::Test {
 protected:
  static Array numbers(Shape shape) {
    const Matrix values = counting(1, static_cast<std::ptrdiff_t>(element_count(shape, DType::float64, "")));
    return Array(std::move(shape), std::span(values.data(), static_cast<std::size_t>(values.size())));
  }
  static Array integers(Shape shape, const std::vector<std::int64_t>& values) {
    return Array(std::move(shape), std::span<const std::int64_t>(values));
  }
  static NamedArrays valid() {
    return {{"X", numbers({2, 3, 4})}, {"Y", integers({2}, {1, -1})}, {"Z", numbers({2, 2, 4})}};
  }
  Dataset load(const NamedArrays& arrays) const {
    save_npz(folder_ / "d.npz", arrays);
    return load_dataset(folder_ / "d.npz");
  }
  std::string refusal(const std::string& name, const Array& array, const std::string& erased = "") const {
    NamedArrays arrays = valid();
    arrays.erase(erased);
    arrays[name] = array;
    try {
      load(arrays);
    } catch (const Error& error) {
      return std::string(error.what()).substr((folder_ / "d.npz").string().size() + 2);
    }
    return "accepted";
  }
  test::TemporaryFolder folder_;
};

TEST_F(QueryFile, HoldsKQueriesEach) {
  const Dataset data = load(valid());
  EXPECT_EQ(data.total_queries(), 4);
  EXPECT_EQ(data.queries().eigen()(3, 0), 13);
  NamedArrays arrays = valid();
  arrays["Y"] = integers({2, 2}, {1, -1, -1, 1});
  EXPECT_EQ(load(arrays).labels()[1], -1);
}

TEST_F(QueryFile, IsRefusedInItsOwnTerms) {
  EXPECT_EQ(refusal("Z", numbers({2, 2, 3})),
            "Z has shape (2, 2, 3): expected (2, 2, 4) to match X (2, 3, 4)");
  EXPECT_EQ(refusal("Z", numbers({2, 0, 4})), "Z has shape (2, 0, 4): expected 1 or more queries each");
  EXPECT_EQ(refusal("Y", integers({2, 2}, {1, -1, 2, 1})), "labels[1,0] is 2: expected -1 or +1 (array Y)");
  EXPECT_EQ(refusal("Y", integers({2, 3}, {1, 1, 1, 1, 1, 1})),
            "Y has shape (2, 3): expected (2,), one label per sequence, or (2, 2), one per query");
  EXPECT_EQ(refusal("query_index", integers({2, 2}, {0, 1, 3, 2}), "Z"),
            "query_index[1,0] is 3: expected 0 to 2, a token of sequence 1");
  EXPECT_EQ(refusal("mask", integers({2, 3}, {1, 1, 1, 1, 1, 1})),
            "mask has shape (2, 3): expected (2, 2, 3) to match X (2, 3, 4)");
  EXPECT_EQ(refusal("mask", integers({2, 2, 3}, {1, 1, 1, 1, 4, 1, 1, 1, 1, 1, 1, 1})),
            "mask[0,1,1] is 4: expected 0 or 1");
  EXPECT_EQ(refusal("mask", integers({2, 2, 3}, {1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1})),
            "mask[1,0] allows no token of sequence 1: expected 1 or more");
  const std::vector<double> halves(12, 0.5);
  EXPECT_EQ(refusal("mask", Array({2, 2, 3}, std::span<const double>(halves))),
            "mask[0,0,0] is 0.5: expected 0 or 1");
  EXPECT_EQ(refusal("query_counts", integers({2}, {1, 3})),
            "Z has shape (2, 2, 4): expected (2, 4) to match X (2, 3, 4)");
  EXPECT_EQ(refusal("V", numbers({3, 2})), "V has shape (3, 2): expected (4, m) to match X (2, 3, 4)");
}

}  // namespace
}  // namespace attmirror

#include <attmirror/base/error.hpp>
#include <attmirror/data/array.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/data/npz.hpp>

#include <filesystem>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace attmirror {
namespace {

Array numbers(Shape shape) {
  std::vector<double> values(static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())));
  std::iota(values.begin(), values.end(), 1.0);
  return Array(std::move(shape), std::span<const double>(values));
}

Array integers(Shape shape, const std::vector<std::int64_t>& values) {
  return Array(std::move(shape), std::span<const std::int64_t>(values));
}

// A folder of its own for each test.
class DatasetFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = std::filesystem::temp_directory_path() / ("attmirror_" + name + "_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path file() const { return folder_ / "data.npz"; }

  // Six sequences of eight tokens in ten dimensions.
  static NamedArrays valid() {
    return {{"X", numbers({6, 8, 10})},
            {"Y", integers({6}, {1, -1, 1, -1, 1, 1})},
            {"Z", numbers({6, 10})},
            {"v", numbers({10})}};
  }

  Dataset load(const NamedArrays& arrays) const {
    save_npz(file(), arrays);
    return load_dataset(file());
  }

  // The message, without the name of the file that it must begin with.
  std::string refusal(const NamedArrays& arrays) const {
    try {
      load(arrays);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      const std::string prefix = file().string() + ": ";
      EXPECT_EQ(std::string(error.what()).substr(0, prefix.size()), prefix);
      return std::string(error.what()).substr(prefix.size());
    }
    return "accepted";
  }

  static NamedArrays with(const std::string& name, Array array) {
    NamedArrays arrays = valid();
    arrays[name] = std::move(array);
    return arrays;
  }
  static NamedArrays without(const std::string& name) {
    NamedArrays arrays = valid();
    arrays.erase(name);
    return arrays;
  }
  static NamedArrays renamed(const std::vector<std::pair<std::string, std::string>>& names) {
    NamedArrays arrays = valid();
    for (const auto& [from, to] : names) {
      auto node = arrays.extract(from);
      node.key() = to;
      arrays.insert(std::move(node));
    }
    return arrays;
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(DatasetFile, ReadsABox) {
  const Dataset data = load(valid());
  EXPECT_EQ(data.samples(), 6);
  EXPECT_EQ(data.max_length(), 8);
  EXPECT_EQ(data.dim(), 10);
  EXPECT_TRUE(data.has_decoder());
  EXPECT_EQ(data.tokens(2).eigen()(3, 4), 2 * 80 + 3 * 10 + 4 + 1);
  EXPECT_EQ(data.queries().eigen()(1, 9), 20);
  EXPECT_EQ(data.labels()[3], -1);
}

TEST_F(DatasetFile, ReadsRowsWithLengths) {
  NamedArrays arrays = with("X", numbers({20, 10}));
  arrays["lengths"] = integers({6}, {1, 2, 3, 4, 5, 5});
  const Dataset data = load(arrays);
  EXPECT_EQ(data.length(4), 5);
  EXPECT_EQ(data.tokens(2).eigen()(0, 0), 31);
}

TEST_F(DatasetFile, LowerCaseNamesAndNoDecoderAreFine) {
  NamedArrays arrays = renamed({{"X", "x"}, {"Y", "y"}, {"Z", "z"}});
  EXPECT_EQ(load(arrays).fingerprint(), load(valid()).fingerprint());
  EXPECT_FALSE(load(without("v")).has_decoder());
}

TEST_F(DatasetFile, OneQueryPerSequenceMayHaveAnAxisOfItsOwn) {
  EXPECT_EQ(load(with("Z", numbers({6, 1, 10}))).fingerprint(), load(valid()).fingerprint());
}

TEST_F(DatasetFile, QueriesMayBeTokensOfTheSequence) {
  for (const Shape& shape : {Shape{6}, Shape{6, 1}}) {
    NamedArrays arrays = without("Z");
    arrays["query_index"] = integers(shape, {0, 7, 1, 2, 3, 4});
    const Dataset data = load(arrays);
    for (std::ptrdiff_t i = 0; i < 6; ++i) {
      const std::ptrdiff_t index[] = {0, 7, 1, 2, 3, 4};
      EXPECT_EQ(Matrix(data.queries().eigen().row(i)), Matrix(data.tokens(i).eigen().row(index[i])));
    }
  }
}

TEST_F(DatasetFile, QueriesMayBeTokensOfRaggedSequences) {
  NamedArrays arrays{{"X", numbers({3, 2})},
                     {"lengths", integers({2}, {1, 2})},
                     {"Y", integers({2}, {1, -1})},
                     {"query_index", integers({2}, {0, 1})}};
  const Dataset data = load(arrays);
  EXPECT_EQ(data.queries().eigen()(0, 1), 2);
  EXPECT_EQ(data.queries().eigen()(1, 1), 6);
  arrays["query_index"] = integers({2}, {1, 1});  // the first sequence has one token only
  EXPECT_EQ(refusal(arrays), "query_index[0] is 1: expected 0 to 0, a token of sequence 0");
}

TEST_F(DatasetFile, NamesWhatIsMissing) {
  EXPECT_EQ(refusal(without("Y")), "missing array Y: expected X, Y and Z (or query_index)");
  EXPECT_EQ(refusal(without("X")), "missing array X: expected X, Y and Z (or query_index)");
  EXPECT_EQ(refusal(without("Z")), "missing array Z: expected X, Y and Z (or query_index)");
  EXPECT_EQ(refusal({}), "missing array X: expected X, Y and Z (or query_index)");
}

TEST_F(DatasetFile, NamesWhatIsThereTwice) {
  EXPECT_EQ(refusal(with("y", numbers({6}))), "both Y and y are given: expected one of them");
  EXPECT_EQ(refusal(with("query_index", integers({6}, {0, 0, 0, 0, 0, 0}))),
            "both Z and query_index are given: expected one of them");
}

TEST_F(DatasetFile, NamesTheWrongShape) {
  EXPECT_EQ(refusal(with("Z", numbers({5, 10}))),
            "Z has shape (5, 10): expected (6, 10) to match X (6, 8, 10)");
  EXPECT_EQ(refusal(with("Y", numbers({6, 2}))), "Y has shape (6, 2): expected (6,) to match X (6, 8, 10)");
  EXPECT_EQ(refusal(with("v", numbers({9}))), "v has shape (9,): expected (10,) to match X (6, 8, 10)");
  EXPECT_EQ(refusal(with("X", numbers({6}))),
            "X has shape (6,): expected (n, T, d), or (sum of lengths, d) with lengths");
  EXPECT_EQ(refusal(with("X", numbers({48, 10}))),
            "X has shape (48, 10): expected (n, T, d), or an array lengths beside it");
  EXPECT_EQ(refusal(with("X", numbers({6, 0, 10}))), "X has shape (6, 0, 10): expected no empty axis");
  EXPECT_EQ(refusal(with("X", numbers({0, 8, 10}))), "X has shape (0, 8, 10): expected no empty axis");
}

// Arrays of the user's own are welcome, misspelt ones of ours are not: they would be ignored in silence.
TEST_F(DatasetFile, RefusesNamesThatAreNearlyOurs) {
  EXPECT_EQ(refusal(with("Mask", numbers({6, 1, 8}))), "there is an array Mask: expected the name mask");
  EXPECT_EQ(refusal(with("query_count", numbers({6}))),
            "there is an array query_count: expected the name query_counts");
  EXPECT_EQ(refusal(with("QueryIndex", numbers({6}))),
            "there is an array QueryIndex: expected the name query_index");
  EXPECT_EQ(refusal(with("notes", numbers({3}))), "accepted");
}

TEST_F(DatasetFile, NamesTheWrongLength) {
  NamedArrays arrays = with("X", numbers({20, 10}));
  const auto with_lengths = [&](const std::vector<std::int64_t>& lengths) {
    arrays["lengths"] = integers({static_cast<std::int64_t>(lengths.size())}, lengths);
    return refusal(arrays);
  };
  EXPECT_EQ(with_lengths({1, 2, 3, 4, 5, 0}),
            "lengths[5] is 0: expected 1 to 5, the rows of X (20, 10) that are left");
  EXPECT_EQ(with_lengths({1, 2, 3, 4, 5, 6}),
            "lengths[5] is 6: expected 1 to 5, the rows of X (20, 10) that are left");
  EXPECT_EQ(with_lengths({1, 2, 3, 4, 5, 4}),
            "lengths add up to 19: expected 20, the rows of X (20, 10); padded sequences are X (n, T, d)");
  EXPECT_EQ(with_lengths({}),
            "lengths add up to 0: expected 20, the rows of X (20, 10); padded sequences are X (n, T, d)");
  EXPECT_EQ(
      with_lengths({std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::max()}),
      "lengths[0] is 9223372036854775807: expected 1 to 20, the rows of X (20, 10) that are left");
}

TEST_F(DatasetFile, NamesTheWrongValue) {
  std::vector<double> values(480, 0.5);
  values[2 * 80 + 1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(
      refusal(with("X", Array({6, 8, 10}, std::span<const double>(values)))),
      "X[2,0,1] is nan: expected a finite number; if it is padding, give lengths (n), the number of tokens of "
      "each sequence");
  EXPECT_EQ(refusal(with("Y", integers({6}, {1, -1, 1, 0, 1, 1}))),
            "labels[3] is 0: expected -1 or +1 (array Y)");
  std::vector<double> query(60, 0.5);
  query[37] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(refusal(with("Z", Array({6, 1, 10}, std::span<const double>(query)))),
            "Z[3,0,7] is inf: expected a finite number");
  NamedArrays arrays = without("Z");
  arrays["query_index"] = integers({6}, {0, 0, 8, 0, 0, 0});
  EXPECT_EQ(refusal(arrays), "query_index[2] is 8: expected 0 to 7, a token of sequence 2");
  arrays["query_index"] = integers({6}, {0, 0, 0, 0, 0, -1});
  EXPECT_EQ(refusal(arrays), "query_index[5] is -1: expected 0 to 7, a token of sequence 5");
}

TEST_F(DatasetFile, SavedBoxesComeBack) {
  const Dataset data = generate(SphereData{.seed = 4});
  save_dataset(file(), data);
  const NamedArrays arrays = load_npz(file());
  EXPECT_EQ(arrays.at("X").shape(), (Shape{6, 8, 10}));
  EXPECT_EQ(arrays.at("format_version").to_int64().at(0), 1);
  EXPECT_FALSE(arrays.contains("lengths"));
  EXPECT_EQ(load_dataset(file()).fingerprint(), data.fingerprint());
}

TEST_F(DatasetFile, SavedRaggedDataWithoutDecoderComeBack) {
  DatasetArrays small;
  small.tokens = Matrix::Random(5, 3);
  small.lengths = {2, 3};
  small.queries = Matrix::Random(2, 3);
  small.labels = {1, -1};
  const Dataset data(small);
  save_dataset(file(), data);
  const NamedArrays arrays = load_npz(file());
  EXPECT_EQ(arrays.at("X").shape(), (Shape{5, 3}));
  EXPECT_EQ(arrays.at("lengths").to_int64(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_FALSE(arrays.contains("v"));
  EXPECT_EQ(load_dataset(file()).fingerprint(), data.fingerprint());
}

TEST_F(DatasetFile, AMissingFileIsBadInput) {
  try {
    load_dataset(file());
    FAIL() << "a file that is not there was read";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(file().string()), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace attmirror

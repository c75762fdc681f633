#include "data/npy.hpp"
#include "support/files.hpp"
#include <attmirror/next_token/embedding.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace attmirror {
namespace {

using test::expect_bad_input;

TEST(Embedding, WordsReadBack) {
  for (const char* word : {"one-hot", "orthonormal", "gaussian", "file:some where/E.npy"})
    EXPECT_EQ(EmbeddingOptions::parse(word).to_string(), word);
  EXPECT_EQ(EmbeddingOptions::parse("file:E.npy").path, "E.npy");
  for (const char* word : {"", "onehot", "file:", "One-hot"})
    expect_bad_input({"embedding is", "one-hot, orthonormal, gaussian or file:"},
                     [&] { EmbeddingOptions::parse(word); });
}

TEST(Embedding, OneHotIsTheIdentity) {
  const Embedding embedding = make_embedding(7, {});
  EXPECT_TRUE(embedding.is_one_hot());
  EXPECT_EQ(Matrix(embedding.vectors.view().eigen()), Matrix(Matrix::Identity(7, 7)));
  EXPECT_EQ(embedding.orthonormality_error(), 0);
}

TEST(Embedding, OrthonormalRowsAreOrthonormal) {
  EXPECT_TRUE(rc::check("rows of any size", [] {
    const auto size = *rc::gen::inRange<std::ptrdiff_t>(1, 30);
    const auto dim = size + *rc::gen::inRange<std::ptrdiff_t>(0, 8);
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const Embedding embedding =
        make_embedding(size, {.kind = EmbeddingKind::orthonormal, .dim = dim, .seed = seed});
    const Matrix E = embedding.vectors.view().eigen();
    RC_ASSERT(E.rows() == size && E.cols() == dim);
    const double error = (E * E.transpose() - Matrix::Identity(size, size)).cwiseAbs().maxCoeff();
    RC_ASSERT(error < 1e-14);
    RC_ASSERT(std::abs(embedding.orthonormality_error() - error) < 1e-15);
  }));
}

// Rotations drawn uniformly: an entry has mean 0 and variance 1/d, and so has the trace, whose variance is 1. Without
// the correction of signs the diagonal would be negative more often than not.
TEST(Embedding, OrthonormalRowsAreUniform) {
  constexpr int draws = 2'000, dim = 4;
  double sum_trace = 0, sum_trace_squares = 0;
  Matrix sum = Matrix::Zero(dim, dim), squares = Matrix::Zero(dim, dim);
  for (int seed = 0; seed < draws; ++seed) {
    const Embedding embedding =
        make_embedding(dim, {.kind = EmbeddingKind::orthonormal, .seed = static_cast<std::uint64_t>(seed)});
    const Matrix E = embedding.vectors.view().eigen();
    sum += E;
    squares += E.cwiseAbs2();
    sum_trace += E.trace();
    sum_trace_squares += E.trace() * E.trace();
  }
  const double standard_error = std::sqrt(1.0 / dim / draws);
  EXPECT_LT((sum / draws).cwiseAbs().maxCoeff(), 4.5 * standard_error);
  EXPECT_LT(((squares / draws).array() - 1.0 / dim).abs().maxCoeff(), 0.03);
  EXPECT_NEAR(sum_trace / draws, 0, 4.5 / std::sqrt(draws));
  EXPECT_NEAR(sum_trace_squares / draws, 1, 0.15);
}

TEST(Embedding, GaussianRowsHaveLengthOneInAnyDimension) {
  for (const std::ptrdiff_t dim : {1, 3, 20, 50}) {
    const Embedding embedding = make_embedding(20, {.kind = EmbeddingKind::gaussian, .dim = dim, .seed = 5});
    const Matrix E = embedding.vectors.view().eigen();
    EXPECT_EQ(E.cols(), dim);
    EXPECT_LT((E.rowwise().norm().array() - 1).abs().maxCoeff(), 1e-15);
    const double error = (E * E.transpose() - Matrix::Identity(20, 20)).cwiseAbs().maxCoeff();
    EXPECT_GT(error, 0.1);
    EXPECT_NEAR(embedding.orthonormality_error(), error, 1e-15);
  }
}

TEST(Embedding, ErrorOfManyRowsSeesEveryPair) {
  Matrix vectors = Matrix::Identity(300, 300);
  vectors.row(299) = vectors.row(130);
  EXPECT_EQ(given_embedding(vectors).orthonormality_error(), 1);
  vectors = Matrix::Identity(300, 300);
  vectors(257, 257) = 1.5;
  EXPECT_EQ(given_embedding(vectors).orthonormality_error(), 1.25);
}

TEST(Embedding, SeedsAndKindsAreToldApart) {
  const auto of = [](EmbeddingKind kind, std::uint64_t seed) {
    return make_embedding(5, {.kind = kind, .seed = seed}).fingerprint();
  };
  using enum EmbeddingKind;
  EXPECT_EQ(of(gaussian, 3), of(gaussian, 3));
  EXPECT_NE(of(gaussian, 3), of(gaussian, 4));
  EXPECT_NE(of(orthonormal, 3), of(gaussian, 3));
  EXPECT_EQ(of(one_hot, 3), of(one_hot, 4));
  EXPECT_NE(given_embedding(Matrix::Identity(5, 5)).fingerprint(), of(one_hot, 0))
      << "products with a given matrix round, even where it is the identity";
}

TEST(Embedding, ReadsFilesOfEitherPrecision) {
  const test::TemporaryFolder folder;
  const std::vector<double> values = {1, 2, 3, 4.5, -5, 0};
  const std::vector<float> floats(values.begin(), values.end());
  save_npy(folder / "E.npy", Array({3, 2}, values));
  save_npy(folder / "F.npy", Array({3, 2}, floats));
  const Matrix expected = Eigen::Map<const Matrix>(values.data(), 3, 2);
  for (const char* name : {"E.npy", "F.npy"}) {
    const auto options = EmbeddingOptions::parse("file:" + (folder / name).string());
    const Embedding embedding = make_embedding(3, options);
    EXPECT_EQ(Matrix(embedding.vectors.view().eigen()), expected);
    EXPECT_EQ(embedding.dim(), 2);
    expect_bad_input({name, "(3, 2)", "expected 4 rows"}, [&] { make_embedding(4, options); });
  }
  auto options = EmbeddingOptions::parse("file:" + (folder / "E.npy").string());
  options.dim = 3;
  expect_bad_input({"E.npy", "expected 3 columns"}, [&] { make_embedding(3, options); });
  save_npy(folder / "flat.npy", Array(std::vector<double>{1, 2, 3}));
  expect_bad_input({"flat.npy"}, [&] {
    make_embedding(3, EmbeddingOptions::parse("file:" + (folder / "flat.npy").string()));
  });
  expect_bad_input({"none.npy"}, [&] {
    make_embedding(3, EmbeddingOptions::parse("file:" + (folder / "none.npy").string()));
  });
  const std::vector<double> broken = {1, 2, 3, std::nan("")};
  save_npy(folder / "nan.npy", Array({2, 2}, broken));
  expect_bad_input({"nan.npy[1, 1] is nan"}, [&] {
    make_embedding(2, EmbeddingOptions::parse("file:" + (folder / "nan.npy").string()));
  });
}

TEST(Embedding, RefusesWhatHasNoMeaning) {
  expect_bad_input({"0 tokens"}, [] { make_embedding(0, {}); });
  expect_bad_input({"dim is -2"}, [] { make_embedding(3, {.dim = -2}); });
  expect_bad_input({"dim is 4", "expected 3"}, [] { make_embedding(3, {.dim = 4}); });
  expect_bad_input({"dim is 2", "expected 3 or more"},
                   [] { make_embedding(3, {.kind = EmbeddingKind::orthonormal, .dim = 2}); });
  expect_bad_input({"embedding"}, [] {
    make_embedding(std::ptrdiff_t{1} << 40,
                   {.kind = EmbeddingKind::gaussian, .dim = std::ptrdiff_t{1} << 40});
  });
  Matrix vectors = Matrix::Ones(3, 2);
  vectors(2, 1) = std::numeric_limits<double>::infinity();
  expect_bad_input({"[2, 1] is inf"}, [&] { given_embedding(vectors); });
  vectors.row(2).setZero();
  expect_bad_input({"row 2", "zeros"}, [&] { given_embedding(vectors); });
  expect_bad_input({"(0, 0)"}, [] { given_embedding({}); });
}

}  // namespace
}  // namespace attmirror

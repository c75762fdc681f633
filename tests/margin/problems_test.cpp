#include "support/random_data.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/margin/problems.hpp>

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::random_matrix;

// 2 sequences of 3 and 2 tokens in the plane, 2 and 1 queries, with a mask that hides token 1 from query 1.
Dataset small_data() {
  DatasetArrays arrays;
  arrays.tokens = Matrix{{1, 2}, {3, 5}, {-1, 4}, {10, 20}, {7, 7}};
  arrays.lengths = {3, 2};
  arrays.queries = Matrix{{1, 0}, {2, 1}, {0, 3}};
  arrays.query_counts = {2, 1};
  arrays.labels = {1, -1, -1};
  arrays.mask = {1, 1, 1, 1, 0, 1, 1, 1};
  return Dataset(arrays);
}

using Origins = std::vector<ConstraintOrigin>;

Origins origins(const MarginConstraints& c) { return {c.origins().begin(), c.origins().end()}; }
std::vector<double> bounds(const MarginConstraints& c) { return {c.bounds().begin(), c.bounds().end()}; }

TEST(Problems, AttentionSvmComparesTheSelectedTokenWithTheAllowedOnes) {
  const MarginConstraints c = constraints(small_data(), AttentionSvm{{{1, 0, 1}}, {1, 0, 2}});
  EXPECT_EQ(Matrix(c.left().eigen()), (Matrix{{2, 3}, {4, 1}, {2, -2}, {-3, -13}}));
  EXPECT_EQ(Matrix(c.right().eigen()), (Matrix{{1, 0}, {2, 1}, {0, 3}}));
  EXPECT_EQ(bounds(c), (std::vector<double>{1, 1, 0, 2}));
  EXPECT_EQ(origins(c), (Origins{{0, 0, 0}, {0, 0, 2}, {0, 1, 2}, {1, 0, 0}}));
  EXPECT_EQ(c.first(1), 2);
  EXPECT_EQ(c.first(2), 3);
  EXPECT_EQ(c.group_of(3), 2);
  EXPECT_FALSE(c.is_equality(0));
}

TEST(Problems, CausalQueriesLookBackOnly) {
  const Dataset data = with_causal_mask(generate(
      SphereData{.samples = 2, .tokens = 4, .dim = 3, .query_from = SphereData::QueryFrom::all_tokens}));
  const MarginConstraints c = constraints(data, AttentionSvm{{{0, 1, 0, 3, 0, 0, 2, 1}}});
  EXPECT_EQ(c.count(), 2 * (0 + 1 + 2 + 3));
  EXPECT_EQ(c.groups(), 8);
  EXPECT_EQ(c.first(1), 0);  // the first token sees itself alone
  EXPECT_EQ(origins(c)[0], (ConstraintOrigin{0, 1, 0}));
  EXPECT_EQ(origins(c)[11], (ConstraintOrigin{1, 3, 3}));
  for (std::ptrdiff_t k = 0; k < c.count(); ++k)
    EXPECT_LE(c.origins()[std::size_t(k)].token, c.origins()[std::size_t(k)].query);
}

TEST(Problems, PromptSvmIsAboutKeys) {
  const Matrix A{{1, 2}, {0, -1}};
  const MarginConstraints c = constraints(small_data(), PromptSvm{{{1, 0, 1}}, A});
  EXPECT_EQ(Matrix(c.left().eigen()), (Matrix{{8, -3}, {6, -1}, {-2, 2}, {-29, 13}}));
  EXPECT_EQ(Matrix(c.right().eigen()), Matrix::Ones(3, 1));
  const MarginConstraints tokens = constraints(small_data(), PromptSvm{{{1, 0, 1}}});
  EXPECT_EQ(Matrix(tokens.left().eigen()), (Matrix{{2, 3}, {4, 1}, {2, -2}, {-3, -13}}));
}

// a = X A^T p as in attention/parameters.hpp: differences of logits are the margins.
TEST(Problems, PromptSvmAgreesWithThePromptModel) {
  const Dataset data = generate(SphereData{.samples = 3, .tokens = 4, .dim = 5});
  const Matrix A = random_matrix(5, 5, 2), p = random_matrix(5, 1, 3);
  const MarginConstraints c = constraints(data, PromptSvm{{{2, 0, 3}}, A});
  const Attention model(data, Prompt{A});
  Parameters parameters = model.zero_parameters();
  parameters.p = p;
  const std::vector<Vector> a = logits(model, parameters);
  const std::vector<std::int64_t> alpha = {2, 0, 3};
  for (std::ptrdiff_t k = 0; k < c.count(); ++k) {
    const ConstraintOrigin& origin = c.origins()[std::size_t(k)];
    const Vector& of_query = a[std::size_t(origin.sequence)];
    EXPECT_NEAR(c.left().eigen().row(k).dot(p.col(0)),
                of_query[alpha[std::size_t(origin.sequence)]] - of_query[origin.token], 1e-13);
  }
}

TEST(Problems, DecoderSvmHasOneConstraintPerQuery) {
  const MarginConstraints c = constraints(small_data(), DecoderSvm{{{1, 0, 1}}});
  EXPECT_EQ(Matrix(c.left().eigen()), (Matrix{{3, 5}, {-1, -2}, {-7, -7}}));
  EXPECT_EQ(c.cols(), 1);
  EXPECT_EQ(origins(c), (Origins{{0, 0, 1}, {0, 1, 0}, {1, 0, 1}}));
  EXPECT_EQ(relaxed_bounds(small_data(), std::vector<std::ptrdiff_t>{2, 0}), (std::vector<double>{1, 0, 1}));
}

TEST(Problems, GeneralSvmTiesTheKeptTokens) {
  const KeptTokens kept{{{0, 2}, {2}, {0, 1}}};
  const MarginConstraints direction = constraints(small_data(), GeneralDirectionSvm{kept});
  EXPECT_EQ(Matrix(direction.left().eigen()), (Matrix{{2, -2}, {-2, -3}, {-2, 2}, {3, 13}}));
  EXPECT_EQ(bounds(direction), (std::vector<double>{0, 1, 1, 0}));
  EXPECT_EQ(
      std::vector<Relation>(direction.relations().begin(), direction.relations().end()),
      (std::vector<Relation>{Relation::equal, Relation::at_least, Relation::at_least, Relation::equal}));
  EXPECT_EQ(origins(direction), (Origins{{0, 0, 2}, {0, 0, 1}, {0, 1, 0}, {1, 0, 1}}));

  const std::vector<Vector> logits = {Vector{{1, -INFINITY, 3}}, Vector{{0, 0, 0}}, Vector{{0.5, 0.25}}};
  const MarginConstraints finite = constraints(small_data(), GeneralFiniteSvm{kept, logits});
  EXPECT_EQ(Matrix(finite.left().eigen()), (Matrix{{2, -2}, {3, 13}}));
  EXPECT_EQ(bounds(finite), (std::vector<double>{-2, 0.25}));
  EXPECT_TRUE(finite.is_equality(0));
}

TEST(Problems, HaveNames) {
  const Selection alpha{{0}};
  EXPECT_EQ(problem_name(AttentionSvm{alpha}), "attention");
  EXPECT_EQ(problem_name(AttentionSvm{alpha, {1}}), "attention");
  EXPECT_EQ(problem_name(AttentionSvm{alpha, {0}}), "relaxed");
  EXPECT_EQ(problem_name(PromptSvm{alpha}), "prompt");
  EXPECT_EQ(problem_name(PromptSvm{alpha, {}, {1, 0}}), "relaxed");
  EXPECT_EQ(problem_name(DecoderSvm{alpha}), "decoder");
  EXPECT_EQ(problem_name(GeneralDirectionSvm{}), "general direction");
  EXPECT_EQ(problem_name(GeneralFiniteSvm{}), "general finite");
}

TEST(Problems, WhatDoesNotFitIsNamed) {
  const Dataset data = small_data();
  const auto message = [&](const MarginProblem& problem) {
    try {
      constraints(data, problem);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message(AttentionSvm{{{1, 0}}}), "selected has 2 tokens: expected 3, one per query");
  EXPECT_EQ(message(AttentionSvm{{{1, 0, 2}}}), "selected[2] is 2: expected 0 to 1, a token of sequence 1");
  EXPECT_EQ(message(DecoderSvm{{{1, 1, 0}}}), "selected[1] is 1: the mask forbids this token of sequence 0");
  EXPECT_EQ(message(AttentionSvm{{{1, 0, 1}}, {1, 1}}),
            "bounds has 2 entries: expected 3, one per query, or none");
  EXPECT_EQ(message(AttentionSvm{{{1, 0, 1}}, {1, -1, 1}}), "bounds[1] is -1: expected a finite number >= 0");
  EXPECT_EQ(message(PromptSvm{{{1, 0, 1}}, {}, {1, 1, NAN}}),
            "bounds[2] is nan: expected a finite number >= 0");
  EXPECT_EQ(message(PromptSvm{{{1, 0, 1}}, Matrix::Zero(2, 3)}),
            "key weights have shape (2, 3): expected (2, 2)");
  EXPECT_EQ(message(PromptSvm{{{1, 0, 1}}, Matrix{{1, 2}, {INFINITY, 0}}}),
            "key weights[1,0] is inf: expected a finite number");
  EXPECT_EQ(message(GeneralDirectionSvm{{{{0}, {0}}}}),
            "kept has 2 sets of tokens: expected 3, one per query");
  EXPECT_EQ(message(GeneralDirectionSvm{{{{0}, {}, {0}}}}), "kept[1] is empty: expected at least one token");
  EXPECT_EQ(message(GeneralDirectionSvm{{{{0, 3}, {0}, {0}}}}),
            "kept[0][1] is 3: expected 0 to 2, a token of sequence 0");
  EXPECT_EQ(message(GeneralDirectionSvm{{{{2, 0}, {0}, {0}}}}),
            "kept[0][1] is 0 after 2: expected ascending tokens");
  EXPECT_EQ(message(GeneralDirectionSvm{{{{0}, {0, 1}, {0}}}}),
            "kept[1][1] is 1: the mask forbids this token of sequence 0");
  const KeptTokens kept{{{0, 2}, {2}, {0, 1}}};
  EXPECT_EQ(message(GeneralFiniteSvm{kept, {}}), "logits has 0 vectors: expected 3, one per query");
  EXPECT_EQ(message(GeneralFiniteSvm{kept, {Vector::Zero(3), Vector::Zero(2), Vector::Zero(2)}}),
            "logits[1] has 2 entries: expected 3, one per token of sequence 0");
  EXPECT_EQ(message(GeneralFiniteSvm{kept, {Vector{{0, 0, NAN}}, Vector::Zero(3), Vector::Zero(2)}}),
            "logits[0][2] is nan: expected a finite number");
  EXPECT_EQ(message(GeneralFiniteSvm{kept, {Vector{{1e308, 0, -1e308}}, Vector::Zero(3), Vector::Zero(2)}}),
            "logits[0][2] is -1e+308: its difference to that of token 0 is too large");
  EXPECT_THROW(relaxed_bounds(data, std::vector<std::ptrdiff_t>{3}), Error);

  DatasetArrays far = test::arrays_of(generate(SphereData{.samples = 1, .tokens = 2, .dim = 2}));
  far.tokens(0, 1) = 1.7e308;
  far.tokens(1, 1) = -1.7e308;
  EXPECT_THROW(constraints(Dataset(far), AttentionSvm{{{0}}}), Error);
}

}  // namespace
}  // namespace attmirror

// The loss of next-token prediction in long double, term by term as the definition reads, and random problems: what the
// engines are checked against.
#pragma once

#include "base/random.hpp"
#include <attmirror/next_token/model.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace attmirror::test {

using Real = long double;
using RealVector = Eigen::Matrix<Real, Eigen::Dynamic, 1>;
using RealMatrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// -log softmax(o)_y without cancellation
inline Real cross_entropy(const RealVector& o, std::ptrdiff_t y) {
  Real sum = 0, top = 0;
  for (std::ptrdiff_t v = 0; v < o.size(); ++v) top = std::max(top, o[v] - o[y]);
  for (std::ptrdiff_t v = 0; v < o.size(); ++v)
    if (v != y) sum += std::exp(o[v] - o[y] - top);
  return top == 0 ? std::log1p(sum) : top + std::log(sum + std::exp(-top));
}

inline RealVector reference_attention(const RealMatrix& X, const RealMatrix& W_kq) {
  const RealVector a = X * (W_kq * X.row(X.rows() - 1).transpose());
  const RealVector e = (a.array() - a.maxCoeff()).exp();
  return e / e.sum();
}

inline RealMatrix rows_of(const Embedding& embedding, std::span<const Token> tokens) {
  RealMatrix X(static_cast<std::ptrdiff_t>(tokens.size()), embedding.dim());
  for (std::ptrdiff_t t = 0; t < X.rows(); ++t)
    X.row(t) = embedding.vectors.view().eigen().row(tokens[static_cast<std::size_t>(t)]).cast<Real>();
  return X;
}

// Empty where the parameters lack it.
inline RealMatrix real_block(const Parameters& at, const Block& name) {
  return visit_block(at, name, [](const auto& values) { return RealMatrix(values.template cast<Real>()); });
}

inline Real reference_loss(const NextTokenModel& model, const Parameters& at) {
  const RealMatrix W_ov = real_block(at, "W_ov"), W_kq = real_block(at, "W_kq");
  Real loss = 0;
  if (model.stage() != Stage::attention) {
    const Collocations& collocations = model.collocations();
    for (Token x = 0; x < model.vocabulary_size(); ++x) {
      const auto successors = collocations.successors(x);
      Real total = 0;
      for (const auto& s : successors) total += s.weight;
      const RealVector o = W_ov * rows_of(model.embedding(), std::span(&x, 1)).row(0).transpose();
      for (const auto& s : successors)
        loss += s.weight / total * cross_entropy(o, s.token) / Real(collocations.count());
    }
  }
  if (model.stage() == Stage::collocation) return loss;
  const Sentences& sentences = model.sentences();
  for (std::ptrdiff_t i = 0; i < sentences.count(); ++i) {
    const RealMatrix X = rows_of(model.embedding(), sentences.tokens(i));
    const RealVector s = reference_attention(X, W_kq);
    const Real weight = Real(sentences.weight(i)) / sentences.total_weight();
    if (model.readout() == Readout::softmax) {
      loss += weight * cross_entropy(W_ov * (X.transpose() * s), sentences.label(i));
    } else {
      Real p = 0;
      for (std::ptrdiff_t t = 0; t < s.size(); ++t)
        for (const auto& next :
             model.collocations().successors(sentences.tokens(i)[static_cast<std::size_t>(t)]))
          if (next.token == sentences.label(i)) p += s[t];
      loss -= weight * std::log(p);
    }
  }
  return loss;
}

// Two central differences, extrapolated (Richardson): the error is of fourth order in the step.
inline Real difference(const NextTokenModel& model, Parameters at,
                       const std::function<double&(Parameters&)>& entry) {
  const double here = entry(at), step = 0x1p-10;
  const auto central = [&](double h) {
    entry(at) = here + h;
    const Real up = reference_loss(model, at), up_at = entry(at);
    entry(at) = here - h;
    const Real down = reference_loss(model, at), down_at = entry(at);
    return (up - down) / (up_at - down_at);
  };
  const Real coarse = central(step), fine = central(step / 2);
  return fine + (fine - coarse) / 3;
}

// A model with all that it refers to.
struct Problem {
  Embedding embedding;
  Collocations collocations;
  Sentences sentences;
  NextTokenModel model(Stage stage, Readout readout = Readout::softmax) const {
    return NextTokenModel({&embedding, &collocations, &sentences}, stage, readout);
  }
};

struct ProblemOptions {
  std::ptrdiff_t vocabulary = 7, sentences = 12, max_length = 5;
  EmbeddingKind embedding = EmbeddingKind::gaussian;
  std::ptrdiff_t dim = 0;
  bool soft = false;  // several successors of a token, several labels of a sentence, weights
  unsigned seed = 1;
};

// Sentences of 1 to max_length tokens, some of them twice in a sentence; each label follows one of its tokens.
inline Problem random_problem(const ProblemOptions& options) {
  std::mt19937 random(options.seed);
  const auto draw = [&](std::ptrdiff_t below) {
    return static_cast<Token>(random() % static_cast<std::uint32_t>(below));
  };
  const auto V = options.vocabulary;
  Problem problem{make_embedding(V, {.kind = options.embedding, .dim = options.dim, .seed = options.seed}),
                  Collocations(V), Sentences(V)};
  for (Token x = 0; x < V; ++x) {
    if (x == V - 1 && V > 2) continue;  // occurs as a label or a distractor only
    problem.collocations.add(x, draw(V), 1);
    if (options.soft && x % 2 == 0) problem.collocations.add(x, draw(V), 0.25 * (1 + draw(5)));
  }
  for (std::ptrdiff_t i = 0; i < options.sentences; ++i) {
    std::vector<Token> tokens(static_cast<std::size_t>(1 + draw(options.max_length)));
    for (Token& token : tokens) token = draw(V);
    if (tokens.size() > 2 && i % 3 == 0) tokens[0] = tokens[1];
    const auto best = static_cast<std::size_t>(draw(static_cast<std::ptrdiff_t>(tokens.size())));
    if (tokens[best] == V - 1) tokens[best] = 0;
    const auto successors = problem.collocations.successors(tokens[best]);
    problem.sentences.add(tokens, successors[0].token, options.soft ? 0.5 * (1 + draw(4)) : 1.0);
    if (options.soft) problem.sentences.add(tokens, successors.back().token, 0.5);
  }
  return problem;
}

inline Parameters random_parameters(const NextTokenModel& model, double size, unsigned seed = 3) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, size);
  Parameters at = model.zero_parameters();
  for (const Block& name : {NextTokenBlock::W_ov, NextTokenBlock::W_kq})
    if (const auto found = at.matrices.find(name); found != at.matrices.end())
      found->second =
          Matrix::NullaryExpr(found->second.rows(), found->second.cols(), [&] { return normal(random); });
  return at;
}

}  // namespace attmirror::test

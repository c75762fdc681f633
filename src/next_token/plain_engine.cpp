// Loss and gradient of next-token prediction, one sentence after the other, as the formulas are written.
//
// With logits U_t = W_ov x_t of each token, attention s = softmax(a), a_t = x_t^T W_kq x_q, and o = sum_t s_t U_t,
//
//   loss = -log softmax(o)_y = log(1 + Z),  Z = sum over v != y of e^{o_v - o_y}
//   r    = softmax(o) - e_y = (1 - p_y) rho,  rho_v = e^{o_v - o_y} / Z,  rho_y = -1
//   d loss / d W_ov = r (X^T s)^T
//   d loss / d a_t  = (1 - p_y) s_t sum_tau s_tau rho^T (U_t - U_tau)
//
// Training drives p_y and one s_t to 1, and what is learned then is in 1 - p_y and 1 - s_t, which a difference of
// rounded numbers has lost. Here nothing that is small is a difference of large numbers: 1 - p_y = Z / (1 + Z) is
// kept as a logarithm, rho sums to 0 by its definition, and the tokens' scores are compared pair by pair. Each
// sentence has a logarithm of its size, and sums of sentences have a common one (Gradient::log_scale).
//
// A soft collocation is some sentences of one token each, with its successors for labels.
#include "base/numbers.hpp"
#include "next_token/engine_path.hpp"

#include <algorithm>

namespace attmirror {

namespace {

// log(1 + e^x)
double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

// A sum of matrices with factors e^exponent, stored divided by the largest of these.
struct ScaledSum {
  Matrix sum;
  double log_scale = -infinity;

  void clear() {
    sum.setZero();
    log_scale = -infinity;
  }
  // What a term with this exponent is multiplied by.
  double factor(double exponent) {
    if (exponent > log_scale) {
      sum *= std::exp(log_scale - exponent);
      log_scale = exponent;
    }
    return exponent == -infinity ? 0.0 : std::exp(exponent - log_scale);
  }
};

// How the logits o of the next token predict y.
struct Prediction {
  double loss = 0;
  double log_miss = -infinity;  // log(1 - p_y)
  bool right = false;
};

class PlainEngine final : public NextTokenPathEngine {
 public:
  explicit PlainEngine(const NextTokenModel& model)
      : model_(model), E_(model.embedding().vectors.view().eigen()) {
    const std::ptrdiff_t V = model.vocabulary_size(), d = model.dim(), L = model.sentences().max_length();
    U_ = Matrix::Zero(V, V);
    o_ = rho_ = Vector::Zero(V);
    logits_ = coefficients_ = Vector::Zero(std::max<std::ptrdiff_t>(L, 1));
    scores_ = Matrix::Zero(L, L);
    query_ = gathered_ = Vector::Zero(d);
    if (model.stage() != Stage::attention) W_ov_.sum = Matrix::Zero(d, V);
    if (model.stage() != Stage::collocation) W_kq_.sum = Matrix::Zero(d, d);
  }

  void new_frozen_weights() override {}  // all weights are read each time

  NextTokenEvaluation evaluate(const ParameterBlocks& parameters, Gradient* gradient) override {
    gradient_ = gradient;
    W_ov_.clear();
    W_kq_.clear();
    if (model_.readout() == Readout::softmax)
      U_.noalias() = E_.lazyProduct(parameters.view(parameters.find(NextTokenBlock::W_ov)).eigen());
    NextTokenEvaluation result;
    if (model_.stage() != Stage::attention) add_collocations(result);
    if (model_.stage() != Stage::collocation) {
      result.accuracy = 0;  // of the sentences, where there are any
      add_sentences(parameters.view(parameters.find(NextTokenBlock::W_kq)), result);
    }
    if (gradient != nullptr) {
      give(W_ov_, NextTokenBlock::W_ov);
      give(W_kq_, NextTokenBlock::W_kq);
    }
    return result;
  }

 private:
  void add_collocations(NextTokenEvaluation& result) {
    const Collocations& collocations = model_.collocations();
    const auto count = static_cast<double>(collocations.count());
    double counted = 0;
    for (Token x = 0; x < model_.vocabulary_size(); ++x) {
      double total = 0;
      for (const auto& successor : collocations.successors(x)) total += successor.weight;
      o_ = U_.row(x).transpose();
      for (const auto& successor : collocations.successors(x)) {
        const double weight = successor.weight / total / count;
        const Prediction prediction = predict(successor.token);
        counted += weight;
        result.loss += weight * prediction.loss;
        result.accuracy += prediction.right ? weight : 0.0;
        if (gradient_ == nullptr) continue;
        gathered_ = E_.row(x).transpose();
        add_output_gradient(prediction, weight);
      }
    }
    result.accuracy /= counted;
    result.max_softmax = 1;
  }

  void add_sentences(ConstMatrixView W_kq, NextTokenEvaluation& result) {
    const Sentences& sentences = model_.sentences();
    result.max_softmax = 0;
    double counted = 0;
    for (std::ptrdiff_t i = 0; i < sentences.count(); ++i) {
      const auto tokens = sentences.tokens(i);
      const auto L = static_cast<std::ptrdiff_t>(tokens.size());
      const double weight = sentences.weight(i) / sentences.total_weight();
      counted += weight;
      query_.noalias() = W_kq.eigen().transpose().lazyProduct(E_.row(sentences.query(i)).transpose());
      for (std::ptrdiff_t t = 0; t < L; ++t) logits_[t] = E_.row(at(tokens, t)).dot(query_);
      auto a = logits_.head(L);
      const double top = a.maxCoeff();
      double sum = 0;
      for (std::ptrdiff_t t = 0; t < L; ++t) sum += std::exp(a[t] - top);
      a.array() -= top;
      a.array() -= std::log(sum);  // log s_t from here on; in two steps: top may be large
      result.max_softmax += weight / sum;

      const Prediction prediction = model_.readout() == Readout::softmax
                                        ? read_softmax(tokens, sentences.label(i))
                                        : read_attention(tokens, sentences.label(i));
      result.loss += weight * prediction.loss;
      result.accuracy += prediction.right ? weight : 0.0;
      if (gradient_ == nullptr) continue;
      if (model_.stage() == Stage::joint) {
        gathered_.setZero();
        for (std::ptrdiff_t t = 0; t < L; ++t)
          gathered_ += std::exp(a[t]) * E_.row(at(tokens, t)).transpose();
        add_output_gradient(prediction, weight);
      }
      const double log_size = model_.readout() == Readout::softmax ? form_coefficients(tokens) : 0.0;
      const double factor = W_kq_.factor(prediction.log_miss + log_size + std::log(weight));
      for (std::ptrdiff_t t = 0; t < L; ++t)  // stored transposed: the query's vector along the rows
        W_kq_.sum.noalias() +=
            (factor * coefficients_[t]) * E_.row(sentences.query(i)).transpose() * E_.row(at(tokens, t));
    }
    result.accuracy /= counted;
    result.max_softmax /= counted;
  }

  static Token at(std::span<const Token> tokens, std::ptrdiff_t t) {
    return tokens[static_cast<std::size_t>(t)];
  }

  // The prediction of o_, and rho.
  Prediction predict(Token y) {
    Prediction result;
    rho_ = o_.array() - o_[y];
    rho_[y] = -infinity;
    double top = -infinity;
    for (std::ptrdiff_t v = 0; v < rho_.size(); ++v) top = std::max(top, rho_[v]);
    rho_ = (rho_.array() - (top == -infinity ? 0.0 : top)).exp();
    const double sum = rho_.sum();
    rho_ /= sum == 0 ? 1.0 : sum;
    rho_[y] = sum == 0 ? 0.0 : -1.0;  // 0: there is no other token
    const double log_odds = top + std::log(sum);
    result.loss = softplus(log_odds);
    result.log_miss = log_odds > 0 ? -std::log1p(std::exp(-log_odds)) : log_odds - result.loss;
    result.right = top < 0;
    return result;
  }

  Prediction read_softmax(std::span<const Token> tokens, Token y) {
    o_.setZero();
    for (std::size_t t = 0; t < tokens.size(); ++t)
      o_ += std::exp(logits_[static_cast<std::ptrdiff_t>(t)]) * U_.row(tokens[t]).transpose();
    return predict(y);
  }

  bool follows(Token y, Token x) const { return model_.collocations().follows(y, x); }

  // log of the attention on the tokens that v follows, or that it does not.
  double log_attention(std::span<const Token> tokens, Token v, bool followed) const {
    double top = -infinity, sum = 0;
    for (std::size_t t = 0; t < tokens.size(); ++t)
      if (follows(v, tokens[t]) == followed) top = std::max(top, logits_[static_cast<std::ptrdiff_t>(t)]);
    for (std::size_t t = 0; t < tokens.size(); ++t)
      if (follows(v, tokens[t]) == followed) sum += std::exp(logits_[static_cast<std::ptrdiff_t>(t)] - top);
    return sum == 0 ? -infinity : top + std::log(sum);
  }

  // p_y is the attention on the tokens that y follows: d loss / d a_t = (1 - p_y) times the share that token t has of
  // the others, and minus the share that it has of these.
  Prediction read_attention(std::span<const Token> tokens, Token y) {
    const double hit = log_attention(tokens, y, true), miss = log_attention(tokens, y, false);
    Prediction result;
    result.loss = softplus(miss - hit);
    result.log_miss = miss - hit > 0 ? -std::log1p(std::exp(hit - miss)) : miss - hit - result.loss;
    result.right = true;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const auto k = static_cast<std::ptrdiff_t>(t);
      const bool good = follows(y, tokens[t]);
      coefficients_[k] = good ? -std::exp(logits_[k] - hit) : std::exp(logits_[k] - miss);
      if (miss == -infinity) coefficients_[k] = 0;
      for (const auto& rival : model_.collocations().successors(tokens[t]))
        if (rival.token != y && !(log_attention(tokens, rival.token, true) < hit)) result.right = false;
    }
    return result;
  }

  // s_t sum_tau s_tau rho^T (U_t - U_tau), divided by e to the number that is returned.
  double form_coefficients(std::span<const Token> tokens) {
    const auto L = static_cast<std::ptrdiff_t>(tokens.size());
    double top = -infinity;
    for (std::ptrdiff_t t = 0; t < L; ++t)
      for (std::ptrdiff_t tau = 0; tau < L; ++tau) {
        scores_(t, tau) = rho_.dot((U_.row(at(tokens, t)) - U_.row(at(tokens, tau))).transpose());
        if (scores_(t, tau) != 0) top = std::max(top, logits_[t] + logits_[tau]);
      }
    coefficients_.setZero();
    if (top == -infinity) return top;
    for (std::ptrdiff_t t = 0; t < L; ++t)
      for (std::ptrdiff_t tau = 0; tau < L; ++tau)
        if (scores_(t, tau) != 0)
          coefficients_[t] += std::exp(logits_[t] + logits_[tau] - top) * scores_(t, tau);
    return top;
  }

  // r gathered^T, stored transposed.
  void add_output_gradient(const Prediction& prediction, double weight) {
    const double factor = W_ov_.factor(prediction.log_miss + std::log(weight));
    W_ov_.sum.noalias() += (factor * gathered_) * rho_.transpose();
  }

  void give(const ScaledSum& sum, const Block& name) {
    const std::ptrdiff_t b = gradient_->blocks.find(name);
    if (b < 0) return;
    gradient_->blocks.view(b).eigen() = sum.sum;
    gradient_->log_scale[static_cast<std::size_t>(b)] = sum.log_scale == -infinity ? 0.0 : sum.log_scale;
  }

  const NextTokenModel& model_;
  Matrix E_, U_;
  Vector o_, rho_, logits_, coefficients_, query_, gathered_;
  Matrix scores_;
  ScaledSum W_ov_, W_kq_;
  Gradient* gradient_ = nullptr;
};

}  // namespace

std::unique_ptr<NextTokenPathEngine> make_plain_engine(const NextTokenModel& model) {
  return std::make_unique<PlainEngine>(model);
}

}  // namespace attmirror

#include "papers/graph_study.hpp"

#include "base/random.hpp"
#include "papers/rate_fit.hpp"
#include <attmirror/margin/general_svm.hpp>
#include <attmirror/next_token/realizable.hpp>
#include <attmirror/next_token/two_stage.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror::graph_study {

namespace {

constexpr double soft_share = 0.2, wrong_share = 0.1;

// Another token of the sentence than `best`, by chance; no_token where there is none.
Token rival(std::span<const Token> tokens, Token best, const CounterRandom& random, std::uint64_t index) {
  std::vector<Token> others;
  for (const Token t : tokens)
    if (t != best && std::ranges::find(others, t) == others.end()) others.push_back(t);
  return others.empty() ? no_token : others[random.below(others.size(), index)];
}

// Row a, column x: the score of a as x sees it.
Matrix all_scores(const Embedding& embedding, const Matrix& W, Weights weights) {
  if (weights == Weights::attention) return attention_scores(embedding, W);
  return W * embedding.vectors.view().eigen().transpose();
}

}  // namespace

ContradictoryData contradictory_data(std::uint64_t seed) {
  RealizableOptions options;
  options.vocabulary = vocabulary;
  options.sentences = base_sentences;
  options.min_length = 3;
  options.max_length = 5;
  options.order = OrderKind::linear;
  options.repetition = Repetition::avoided;
  options.seed = seed;
  const RealizableData base = make_realizable(options);
  ContradictoryData data{base.collocations, Collocations(vocabulary), Sentences(vocabulary)};
  const CounterRandom random(seed, RandomStream::selection);
  std::uint64_t index = 0;
  for (std::ptrdiff_t i = 0; i < base.sentences.count(); ++i) {
    const auto tokens = base.sentences.tokens(i);
    const Token label = base.sentences.label(i);
    const auto best =
        std::ranges::find(tokens, label, [&](Token t) { return base.collocations.successor(t); });
    const double chance = random.uniform(index++);
    const Token other = rival(tokens, *best, random, index++);
    const bool soft = other != no_token && chance < soft_share;
    const bool wrong = other != no_token && !soft && chance < soft_share + wrong_share;
    if (!wrong) data.sentences.add(tokens, label, soft ? 2 : 1);
    if (soft || wrong) data.sentences.add(tokens, base.collocations.successor(other));
  }
  for (Token x = 0; x < vocabulary; ++x) {
    data.soft.add(x, base.collocations.successor(x), static_cast<double>(1 + random.below(4, index++)));
    for (std::uint64_t more = random.below(3, index++); more > 0; --more) {
      const auto y = static_cast<Token>(random.below(vocabulary, index++));
      data.soft.add(x, y, static_cast<double>(1 + random.below(4, index++)));
    }
  }
  return data;
}

Limit attention_limit(const Embedding& embedding, const ContradictoryData& data) {
  const PartialOrders orders(data.sentences, data.hard);
  const PriorityGraph graph(orders);
  Limit limit;
  limit.finite = graph_finite_part(embedding, data.sentences, data.hard, graph);
  limit.direction = graph_direction(embedding, orders, graph, Norm::frobenius());
  for (const Token q : orders.queries())
    for (const std::vector<Token>& component : graph.components(q)) {
      if (component.size() > 1) limit.contradicting += std::ssize(component);
      for (std::size_t i = 1; i < component.size(); ++i)
        limit.contests.push_back({q, component[0], component[i]});
    }
  return limit;
}

Limit collocation_limit(const Embedding& embedding, const ContradictoryData& data) {
  Limit limit;
  limit.finite = collocation_finite_part(embedding, data.soft);
  limit.direction = collocation_target(embedding, data.soft, Norm::frobenius());
  for (Token x = 0; x < vocabulary; ++x) {
    const auto successors = data.soft.successors(x);
    if (successors.size() > 1) ++limit.contradicting;
    for (std::size_t i = 1; i < successors.size(); ++i)
      limit.contests.push_back({x, successors[0].token, successors[i].token});
  }
  return limit;
}

Curve compare(const DescentRun& run, const Embedding& embedding, const Limit& limit, Weights weights) {
  const Matrix &finite = limit.finite.W, &direction = limit.direction.W;
  const Matrix goal = all_scores(embedding, finite, weights);
  Curve curve;
  for (const Record& record : run.records) {
    if (record.step == 0) continue;
    const Matrix& W = record.parameters.matrix(weights == Weights::attention ? "W_kq" : "W_ov");
    const Matrix scores = all_scores(embedding, W, weights);
    double error = 0;
    for (const Limit::Contest& c : limit.contests)
      error = std::max(error, std::fabs(scores(c.a, c.looking) - scores(c.b, c.looking) -
                                        (goal(c.a, c.looking) - goal(c.b, c.looking))));
    curve.step.push_back(static_cast<double>(record.step));
    curve.excess.push_back(record.loss - limit.finite.loss);
    curve.finite_error.push_back(error);
    curve.R.push_back(svm_equivalent(finite, direction, W).R);
    curve.angle.push_back(direction_gap(W - finite, direction));
  }
  return curve;
}

double Curve::slope(const std::vector<double>& y, double from) const {
  std::vector<double> x, values;
  for (std::size_t k = 0; k < step.size(); ++k) {
    if (step[k] < from) continue;
    x.push_back(std::log(step[k]));
    values.push_back(y[k]);
  }
  return fit_line(x, values).slope;
}

double Curve::exponent(const std::vector<double>& y, const std::vector<double>& x, double from) const {
  std::vector<double> log_x, log_y;
  for (std::size_t k = 0; k < step.size(); ++k) {
    if (step[k] < from) continue;
    log_x.push_back(std::log(x[k]));
    log_y.push_back(std::log(y[k]));
  }
  return fit_line(log_x, log_y).slope;
}

double Curve::fall(const std::vector<double>& y, double from) const {
  const auto first = std::ranges::lower_bound(step, from) - step.begin();
  return y.back() / y[static_cast<std::size_t>(first)];
}

std::string Setting::name() const {
  return fmt::format("{}, {}{}", weights == Weights::attention ? "attention" : "collocations",
                     to_string(kind), steps == Steps::normalized ? ", normalized" : "");
}

double normalized_lr() { return 0.05 / std::sqrt(static_cast<double>(vocabulary)); }

double Setting::lr() const { return steps == Steps::normalized ? normalized_lr() : plain_lr; }

Measured measure(const Setting& setting, std::uint64_t seed, std::int64_t steps) {
  const ContradictoryData data = contradictory_data(seed);
  const Embedding embedding = make_embedding(vocabulary, {.kind = setting.kind, .seed = seed});
  const bool attends = setting.weights == Weights::attention;
  const NextTokenModel model({&embedding, attends ? &data.hard : &data.soft, &data.sentences},
                             attends ? Stage::attention : Stage::collocation,
                             attends ? Readout::attention : Readout::softmax);
  const NextTokenObjective objective(model);
  const bool normalized = setting.steps == Setting::Steps::normalized;
  const DescentRun run = descend(objective, GradientDescent{.lr = setting.lr(), .normalized = normalized},
                                 {.steps = steps, .record = RecordSchedule::log_spaced(20)});
  Measured one;
  one.limit = attends ? attention_limit(embedding, data) : collocation_limit(embedding, data);
  one.curve = compare(run, embedding, one.limit, setting.weights);
  one.status = run.status;
  return one;
}

TwoStages measure_stages(std::uint64_t seed, std::int64_t first_steps, std::int64_t steps) {
  const ContradictoryData data = contradictory_data(seed);
  const Embedding embedding = make_embedding(vocabulary, {.kind = EmbeddingKind::one_hot});
  const Limit limit = attention_limit(embedding, data);
  const TwoStageRun run = train_two_stage({&embedding, &data.hard, &data.sentences},
                                          paper_stage(Stage::collocation, vocabulary, first_steps),
                                          paper_stage(Stage::attention, vocabulary, steps));
  const Matrix W = run.last().matrix("W_kq"), scores = attention_scores(embedding, W);
  TwoStages one{.first_steps = first_steps,
                .norm = run.collocation.norm,
                .excess = run.attention.loss - limit.finite.loss,
                .angle = direction_gap(W, limit.direction.W)};
  for (const Limit::Contest& c : limit.contests)
    one.largest_contest =
        std::max(one.largest_contest, std::fabs(scores(c.a, c.looking) - scores(c.b, c.looking)));
  return one;
}

}  // namespace attmirror::graph_study

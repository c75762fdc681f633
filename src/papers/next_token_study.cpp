#include "papers/next_token_study.hpp"

#include "papers/rate_fit.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror::next_token_study {

const std::array<Setting, 3>& settings() {
  static const std::array<Setting, 3> all{{
      {"one-hot, three classes", EmbeddingKind::one_hot, OrderKind::three_class},
      {"Gaussian, three classes", EmbeddingKind::gaussian, OrderKind::three_class},
      {"Gaussian, linear", EmbeddingKind::gaussian, OrderKind::linear},
  }};
  return all;
}

Problem::Problem(const Setting& setting, std::uint64_t seed)
    : data(make_realizable({.vocabulary = vocabulary, .order = setting.order, .seed = seed})),
      embedding(make_embedding(vocabulary, {.kind = setting.embedding, .seed = seed})),
      orders(data.sentences, data.collocations) {
  if (!orders.is_realizable())
    throw environment_error(fmt::format("the problem of seed {} is not realizable", seed));
}

std::vector<std::unique_ptr<Problem>> make_problems(const Setting& setting, std::size_t seeds,
                                                    std::uint64_t first_seed) {
  std::vector<std::unique_ptr<Problem>> problems;
  for (std::size_t s = 0; s < seeds; ++s)
    problems.push_back(std::make_unique<Problem>(setting, first_seed + s));
  return problems;
}

double collocation_lr() { return 0.2 / std::sqrt(static_cast<double>(vocabulary)); }
double attention_lr() { return 0.05 / std::sqrt(static_cast<double>(vocabulary)); }

double metric(const Record& record, std::string_view name) {
  const auto found = std::ranges::find(record.metrics, name, &Metric::name);
  if (found == record.metrics.end())
    throw bad_input(fmt::format("the record of step {} has no metric {}", record.step, name));
  return found->value;
}

double loss_floor(const Problem& problem, const Matrix& W_ov) {
  const auto embedding = problem.embedding.vectors.view().eigen();
  const Sentences& sentences = problem.data.sentences;
  // With successors that are a permutation, the label says which token attention must be on.
  std::vector<Token> before(static_cast<std::size_t>(vocabulary), no_token);
  for (Token x = 0; x < vocabulary; ++x)
    before[static_cast<std::size_t>(problem.data.collocations.successor(x))] = x;
  double sum = 0;
  for (std::ptrdiff_t i = 0; i < sentences.count(); ++i) {
    const Token y = sentences.label(i);
    const Vector logits = W_ov * embedding.row(before[static_cast<std::size_t>(y)]).transpose();
    double others = 0;
    for (std::ptrdiff_t v = 0; v < logits.size(); ++v)
      if (v != y) others += std::exp(logits[v] - logits[y]);
    sum += sentences.weight(i) * std::log1p(others);
  }
  return sum / sentences.total_weight();
}

Series band(std::string name, const std::vector<std::int64_t>& steps,
            const std::vector<std::vector<double>>& values, Averages averages, int color) {
  Series series{.name = std::move(name), .color = color};
  const bool logarithms = averages == Averages::of_logarithms;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::vector<double> here;
    for (const std::vector<double>& of_seed : values)
      here.push_back(logarithms ? std::log(of_seed[i]) : of_seed[i]);
    const Mean mean = mean_of(here);
    if (mean.count == 0) continue;
    const auto back = [logarithms](double value) { return logarithms ? std::exp(value) : value; };
    series.x.push_back(static_cast<double>(steps[i]));
    series.y.push_back(back(mean.value));
    series.low.push_back(back(mean.value - mean.deviation));
    series.high.push_back(back(mean.value + mean.deviation));
  }
  return series;
}

std::vector<double> at_step(const std::vector<std::int64_t>& steps,
                            const std::vector<std::vector<double>>& values, std::int64_t step) {
  const auto found = std::ranges::find(steps, step);
  if (found == steps.end()) throw bad_input(fmt::format("step {} was not recorded", step));
  std::vector<double> here;
  for (const std::vector<double>& of_seed : values)
    here.push_back(of_seed[static_cast<std::size_t>(found - steps.begin())]);
  return here;
}

std::vector<double> exponents(const std::vector<std::int64_t>& steps,
                              const std::vector<std::vector<double>>& values, std::int64_t from,
                              std::int64_t to) {
  std::vector<double> result;
  for (const std::vector<double>& of_seed : values) {
    std::vector<double> x, y;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i] < from || steps[i] > to) continue;
      x.push_back(std::log(static_cast<double>(steps[i])));
      y.push_back(std::log(of_seed[i]));
    }
    result.push_back(-fit_line(x, y).slope);
  }
  return result;
}

std::string interval_text(const std::vector<double>& values) {
  const Interval interval = confidence_interval(values);
  return fmt::format("{:.2f} [{:.2f}, {:.2f}]", interval.mean, interval.low, interval.high);
}

std::vector<std::pair<std::string, std::string>> problem_configuration(std::size_t seeds,
                                                                       std::uint64_t first_seed) {
  const RealizableOptions options = RealizableOptions{.vocabulary = vocabulary}.resolved();
  return {
      {"data", fmt::format("{} words, d = {}, {} sentences ({} a query) of {} to {} tokens, seeds {} to {}",
                           options.vocabulary, options.vocabulary, options.sentences,
                           options.sentences / options.vocabulary, options.min_length, options.max_length,
                           first_seed, first_seed + seeds - 1)},
      {"three classes",
       fmt::format("{} optimal and {} non-optimal tokens a query", options.optimal, options.non_optimal)},
      {"embeddings", "one-hot, or Gaussian rows of length 1 from the seed of the data"}};
}

}  // namespace attmirror::next_token_study

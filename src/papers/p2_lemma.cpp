// P2, the equivalence lemma: training the prompt p and training W are the same run.
//
// Fix u != 0 and let the logits be X W u. Gradient descent on W with step lr / |u|^2 from W(0) = p(0) u^T / |u|^2 has
//
//   W(k) = p(k) u^T / |u|^2   for all k
//
// where p(k) is gradient descent on logits X p with step lr. (P2 writes W for our W^T.) Exact but for rounding.
#include "base/random.hpp"
#include "papers/experiments.hpp"
#include "papers/shorthand.hpp"
#include <attmirror/data/generators.hpp>

#include <algorithm>
#include <memory>

#include <fmt/format.h>

namespace attmirror {

namespace {

Vector random_vector(std::ptrdiff_t size, std::uint64_t seed) {
  const CounterRandom random(seed, RandomStream::init_prompt);
  Vector result(size);
  for (std::ptrdiff_t i = 0; i < size; ++i) result(i) = random.normal(static_cast<std::uint64_t>(i));
  return result;
}

// The papers' data on the sphere with one query u for all sequences.
Dataset data_with_query(std::uint64_t seed, const Vector& u) {
  const Dataset sphere = generate(SphereData{.samples = 6, .tokens = 8, .dim = u.size(), .seed = seed});
  DatasetArrays arrays;
  arrays.tokens = sphere.all_tokens().eigen();
  for (std::ptrdiff_t i = 0; i < sphere.samples(); ++i) arrays.lengths.push_back(sphere.length(i));
  arrays.queries = Vector::Ones(sphere.samples()) * u.transpose();
  arrays.labels.assign(sphere.labels().begin(), sphere.labels().end());
  arrays.decoder = sphere.decoder().eigen().transpose();
  return Dataset(arrays);
}

class Lemma final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {
        .id = "p2-lemma",
        .paper = "P2",
        .item = "Lemma: equivalence of training p and W",
        .title = "Is training the prompt the same as training W?",
        .summary =
            "Trains the prompt p and the matrix W side by side on random data with three losses and compares them at every step.",
        .seconds = 0.1,
        .quick_seconds = 0.05};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    const std::uint64_t seeds = context.quick() ? 3 : 20;
    constexpr std::int64_t steps = 1000;
    constexpr double lr = 0.5;
    ExperimentResult result;
    Figure figure{.id = "deviation", .title = "Training W follows training the prompt to rounding error"};
    result.sample = counted(seeds, "data set");
    figure.x = {.label = "step k", .scale = Axis::Scale::log};
    figure.y = {.label = "relative deviation of W from p u^T / |u|^2", .scale = Axis::Scale::log};
    double worst = 0;
    const std::pair<Loss, const char*> losses[] = {
        {Logistic{}, "logistic"}, {LinearLoss{}, "linear"}, {Exponential{}, "exponential"}};
    for (const auto& [loss, name] : losses) {
      Series series{.name = name};
      for (const std::int64_t step : log_steps(steps, 10)) {
        series.x.push_back(static_cast<double>(step));
        series.y.push_back(0);
      }
      double largest = 0, furthest = 0;
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const Vector u = 1.7 * random_vector(10, 2 * seed), p0 = random_vector(10, 2 * seed + 1);
        const Dataset data = data_with_query(seed, u);
        const Attention prompt(data, Prompt{}, loss), weights(data, W{}, loss);
        const double square = u.squaredNorm();
        DescentOptions options{.steps = steps, .record = RecordSchedule::at(log_steps(steps, 10))};
        options.init.given.p = p0;
        const DescentRun by_p = descend(prompt, GradientDescent{.lr = lr}, options);
        options.init.given = {};
        options.init.given.W = p0 * u.transpose() / square;
        const DescentRun by_W = descend(weights, GradientDescent{.lr = lr / square}, options);
        for (std::size_t r = 0; r < series.x.size(); ++r) {
          const Matrix expected = by_p.records[r].parameters.p * u.transpose() / square;
          const double deviation = (by_W.records[r].parameters.W - expected).norm() / expected.norm();
          series.y[r] = std::max(series.y[r], deviation);
          largest = std::max(largest, deviation);
        }
        furthest = std::max(furthest, (by_p.last().p - p0).norm());
        context.progress(static_cast<double>(seed) / static_cast<double>(seeds));
      }
      result.findings.push_back(
          at_most(fmt::format("{} loss: largest relative deviation in 1,000 steps", name), 1e-12, largest));
      result.findings.push_back(new_number(fmt::format("{} loss: how far p has moved", name), furthest));
      worst = std::max(worst, largest);
      figure.series.push_back(std::move(series));
    }
    figure.caption = fmt::format(
        "Over 1,000 steps and {} the deviation is never more than {:.1e}: rounding, and nothing else.",
        counted(seeds, "data set"), worst);
    result.conclusion = fmt::format(
        "Training the prompt and training W are the same: their paths differ by at most {:.1e}, which is rounding.",
        worst);
    figure.description =
        fmt::format("Three curves of rounding errors over 1,000 steps; the largest is {:.1e}.", worst);
    result.figures.push_back(std::move(figure));
    result.configuration = {
        {"data", fmt::format("sphere, n = 6, T = 8, d = 10, seeds 1 to {}, all queries u", seeds)},
        {"u, p(0)", "1.7 N(0, 1) with seed 2 s, N(0, 1) with seed 2 s + 1"},
        {"optimizer", "gradient descent, lr 0.5 on p, 0.5 / |u|^2 on W, 1000 steps"}};
    return result;
  }
};

}  // namespace

ExperimentPointer make_p2_lemma() { return std::make_unique<Lemma>(); }

}  // namespace attmirror

// How many tokens attention keeps can be dialled in. Under the head h(u) = v^T u - lambda |u|^2 with orthonormal
// tokens and labels +1, |X^T s| = |s|, so that the loss is least where the attention probabilities are
//
//   s = argmax over the simplex of gamma^T s - lambda |s|^2 = sparsemax(gamma / (2 lambda)),   gamma = X v,
//
// the projection of gamma / (2 lambda) onto the simplex: tokens above a threshold are kept, more of them the larger
// lambda is. P3 names this head; its code has a mode for it that cannot be run (it takes the vector v for the matrix
// of the other head), so there are no published numbers and everything here is compared with the closed form.
//
// n = 3 sequences of T = 4 tokens in dimension 4, gradient descent from W = 0 with step 10 for 100,000 steps. A token
// that is not kept fades like 1 / (steps times its distance from the threshold): sequences with a token within 0.03
// of it are still on their way and counted by themselves.
//
// The sequences share one W. Where the queries of two point in nearly opposite directions, what raises a token's
// probability in one may lower that of a token in the other, and descent can end with a token masked that the closed
// form keeps: a local optimum, as for linear heads. It is then the closed form of the tokens that are left.
//
// Besides the probabilities the closed form gives the weights: their finite part W_fin has logits log s on the kept
// tokens and, since descent from 0 never leaves the span of the constraints, the least norm of all matrices that do.
// Where every token is kept there is nothing else, and W itself must converge to W_fin.
#include "papers/experiments.hpp"
#include "papers/shorthand.hpp"
#include "papers/training_set.hpp"
#include "papers/workers.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/margin/general_svm.hpp>

#include <array>
#include <cmath>
#include <functional>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr std::array lambdas{0.1, 0.15, 0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0};
constexpr double near_threshold = 0.03;

// max(x - tau, 0), with tau from the k largest entries for the largest k that leaves all of those above it.
Vector sparsemax(const Vector& x) {
  std::vector<double> sorted(x.data(), x.data() + x.size());
  std::ranges::sort(sorted, std::greater<>());
  double sum = 0, tau = 0;
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    sum += sorted[k];
    const double candidate = (sum - 1) / static_cast<double>(k + 1);
    if (sorted[k] > candidate) tau = candidate;
  }
  return (x.array() - tau).max(0.0);
}

Vector scores(const Dataset& data, std::ptrdiff_t i) {
  return data.tokens(i).eigen() * data.decoder().eigen().transpose();
}

struct SequenceResult {
  double error = 0;  // largest difference of a probability from the closed form
  std::ptrdiff_t kept = 0, predicted = 0;
  bool same_tokens = false, arrived = false;  // arrived: no token near the threshold
  double restricted_error = 0;  // the same as `error` for the closed form of the tokens that are kept
};

struct LambdaResult {
  double lambda = 0;
  std::vector<SequenceResult> sequences{};
  std::vector<double> finite_errors{};  // |W - W_fin| / |W_fin| of runs that keep every token
};

SequenceResult compare(const Vector& gamma, double lambda, const Vector& found) {
  const Vector expected = sparsemax(gamma / (2 * lambda));
  const double threshold = gamma.maxCoeff() - 2 * lambda * expected.maxCoeff();
  SequenceResult result;
  result.error = (found - expected).lpNorm<Eigen::Infinity>();
  result.arrived = (gamma.array() - threshold).abs().minCoeff() > near_threshold;
  result.kept = (found.array() >= kept_threshold).count();
  result.predicted = (expected.array() > 0).count();
  result.same_tokens = ((found.array() >= kept_threshold) == (expected.array() > 0)).all();
  const Vector left = (found.array() >= kept_threshold).select(gamma.array(), -1e9);
  result.restricted_error = (found - sparsemax(left / (2 * lambda))).lpNorm<Eigen::Infinity>();
  return result;
}

// Where the closed form keeps every token of every sequence, how far W is from the smallest matrix with its logits; NaN
// where it does not, or where a token is near the threshold.
double finite_error(const Dataset& data, double lambda, const Matrix& weights,
                    const std::vector<SequenceResult>& sequences) {
  KeptTokens all;
  std::vector<Vector> logits;
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i) {
    const SequenceResult& one = sequences[static_cast<std::size_t>(i)];
    if (one.predicted < data.length(i) || !one.arrived) return std::nan("");
    logits.push_back(sparsemax(scores(data, i) / (2 * lambda)).array().log());
    all.tokens.push_back({});
    for (std::int64_t t = 0; t < data.length(i); ++t) all.tokens.back().push_back(t);
  }
  const MarginSolution finite = max_margin(data, GeneralFiniteSvm{all, logits}, Norm::frobenius());
  return finite.status == MarginStatus::certified ? (weights - finite.W).norm() / finite.norm : std::nan("");
}

class P3Sparsemax final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {
        .id = "p3-sparsemax",
        .paper = "P3",
        .item = "nonlinear heads: the quadratic one",
        .title = "Does the quadratic head turn attention into a sparsemax?",
        .summary =
            "Trains attention under the head v^T u − λ |u|^2 on orthonormal tokens and compares the tokens it keeps, and "
            "their probabilities, with the closed form.",
        .seconds = 1,
        .quick_seconds = 0.3};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    const std::uint64_t seeds = context.quick() ? 3 : 20;
    const std::int64_t steps = 100'000;
    TrainingSet set;
    for (const double lambda : lambdas)
      for (std::uint64_t seed = 1; seed <= seeds; ++seed)
        set.add(set.keep(generate(OrthonormalData{.seed = seed})), W{}, {.head = QuadraticHead{lambda}},
                GradientDescent{.lr = 10}, {.steps = steps, .record = RecordSchedule::none()});
    const std::vector<DescentRun> runs = train_all(context, set.tasks());

    std::vector<LambdaResult> results;
    std::vector<Vector> drawn;  // the probabilities of seed 2, sequence 1, for the figure
    for (std::size_t l = 0; l < lambdas.size(); ++l) {
      LambdaResult one{.lambda = lambdas[l]};
      for (std::size_t s = 0; s < seeds; ++s) {
        const std::size_t i = l * seeds + s;
        const std::vector<Vector> found = attention_probabilities(set.model(i), runs[i].last());
        std::vector<SequenceResult> sequences;
        for (std::ptrdiff_t j = 0; j < set.data(i).samples(); ++j)
          sequences.push_back(
              compare(scores(set.data(i), j), one.lambda, found[static_cast<std::size_t>(j)]));
        const double error = finite_error(set.data(i), one.lambda, runs[i].last().W, sequences);
        if (!std::isnan(error)) one.finite_errors.push_back(error);
        std::ranges::move(sequences, std::back_inserter(one.sequences));
        if (s == 1) drawn.push_back(found[0]);
      }
      results.push_back(std::move(one));
    }

    ExperimentResult result;
    result.sample = fmt::format("{} for each of {} values of λ", counted(seeds, "data set"), lambdas.size());
    result.configuration = {
        {"data", fmt::format("orthonormal tokens, n = 3, T = d = 4, labels +1, seeds 1 to {}", seeds)},
        {"head", "v^T u − λ |u|^2, λ = 0.1 to 2"},
        {"training", fmt::format("gradient descent from W = 0, lr 10, {} steps", steps)},
        {"kept", "probability of at least 1e-3"}};
    findings(results, result.findings);
    result.tables = {{"kept", kept_table(results)}};
    result.figures = {probability_figure(scores(set.data(1), 0), drawn), kept_figure(results)};
    result.remarks = {
        "The original's code has a mode for this head, which cannot be run; nothing is published to compare "
        "with but the closed form.",
        "lambda decides how many tokens are kept: one for small lambda, all four for large.",
        "The closed form is the global optimum of each sequence by itself. One W serves all sequences, and "
        "where two queries are nearly opposite, a few percent of the sequences lose a token for good that "
        "the closed form keeps. Neither more steps nor smaller ones change that: they are local optima."};
    return result;
  }

 private:
  static void findings(const std::vector<LambdaResult>& results, std::vector<Finding>& list) {
    double far = 0, near = 0, far_count = 0, near_count = 0, same = 0, restricted = 0;
    std::vector<double> finite;
    for (const LambdaResult& one : results) {
      for (const SequenceResult& sequence : one.sequences) {
        if (!sequence.arrived) {
          near = std::max(near, sequence.same_tokens ? sequence.error : 0);
          ++near_count;
          continue;
        }
        ++far_count;
        same += sequence.same_tokens ? 1 : 0;
        if (sequence.same_tokens) far = std::max(far, sequence.error);
        if (!sequence.same_tokens) restricted = std::max(restricted, sequence.restricted_error);
      }
      finite.insert(finite.end(), one.finite_errors.begin(), one.finite_errors.end());
    }
    list.push_back(
        {.quantity = "share of sequences that keep exactly the tokens of sparsemax(gamma / (2 lambda))",
         .ours = same / far_count,
         .note = fmt::format("of {:.0f} sequences; the other {:.0f} are in a local optimum. {:.0f} more have "
                             "a token within 0.03 of the threshold",
                             far_count, far_count - same, near_count)});
    list.push_back({.quantity = "these: largest difference of a probability from the closed form",
                    .published = 0,
                    .source = ReferenceSource::theory,
                    .ours = far,
                    .tolerance = Tolerance::at_most(kept_threshold),
                    .note = "what is left of masked tokens, which fade like 1 / steps",
                    .digits = 2});
    list.push_back({.quantity = "those with a token near the threshold: the same difference",
                    .published = 0,
                    .source = ReferenceSource::theory,
                    .ours = near,
                    .tolerance = Tolerance::at_most(.01),
                    .note = "still on their way",
                    .digits = 2});
    if (same < far_count)
      list.push_back(
          {.quantity = "those in a local optimum: difference from the closed form of the tokens they keep",
           .published = 0,
           .source = ReferenceSource::theory,
           .ours = restricted,
           .tolerance = Tolerance::at_most(.01),
           .note = "stationary as well; tokens that another sequence masks fade more slowly",
           .digits = 2});
    list.push_back({.quantity = "runs that keep every token: largest |W - W_fin| / |W_fin|",
                    .published = 0,
                    .source = ReferenceSource::theory,
                    .ours = finite.empty() ? std::nan("") : std::ranges::max(finite),
                    .tolerance = Tolerance::at_most(1e-3),
                    .note = fmt::format("{} runs; W_fin from the closed form alone", finite.size()),
                    .digits = 2});
    for (const LambdaResult& one : results) {
      double kept = 0, predicted = 0, count = 0;
      for (const SequenceResult& sequence : one.sequences)
        if (sequence.arrived) {
          kept += static_cast<double>(sequence.kept);
          predicted += static_cast<double>(sequence.predicted);
          ++count;
        }
      list.push_back({.quantity = fmt::format("lambda = {}: kept tokens per sequence", one.lambda),
                      .published = predicted / count,
                      .source = ReferenceSource::theory,
                      .ours = kept / count,
                      .tolerance = Tolerance::relative(.1),
                      .note = kept == predicted ? "" : "local optima keep other tokens"});
    }
  }

  static Table kept_table(const std::vector<LambdaResult>& results) {
    Table table{.title = "Kept tokens per sequence, all sequences",
                .columns = {{"λ"}, {"closed form"}, {"kept"}, {"same tokens"}, {"largest difference"}}};
    for (const LambdaResult& one : results) {
      double kept = 0, predicted = 0, same = 0, error = 0;
      for (const SequenceResult& sequence : one.sequences) {
        kept += static_cast<double>(sequence.kept);
        predicted += static_cast<double>(sequence.predicted);
        same += sequence.same_tokens ? 1 : 0;
        error = std::max(error, sequence.error);
      }
      const auto count = static_cast<double>(one.sequences.size());
      table.rows.push_back({fmt::format("{}", one.lambda), fmt::format("{:.3f}", predicted / count),
                            fmt::format("{:.3f}", kept / count), fmt::format("{:.3f}", same / count),
                            fmt::format("{:.1e}", error)});
    }
    return table;
  }

  static Figure probability_figure(const Vector& gamma, const std::vector<Vector>& drawn) {
    Figure figure{
        .id = "probabilities",
        .title = "Trained attention lies on the sparsemax",
        .caption =
            "The four tokens of one sequence (seed 2): lines are sparsemax(γ / (2 λ)) of their scores γ, points "
            "are what training found.",
        .x = {.label = "weight λ of the quadratic term", .scale = Axis::Scale::log},
        .y = {.label = "attention probability", .range = {{-0.02, 1.02}}}};
    for (std::ptrdiff_t t = 0; t < gamma.size(); ++t) {
      Series line{.name = fmt::format("score {:.2f}", gamma(t)), .color = static_cast<int>(t)};
      for (int k = 0; k <= 120; ++k) {
        const double lambda = 0.08 * std::pow(2.5 / 0.08, k / 120.0);
        line.x.push_back(lambda);
        line.y.push_back(sparsemax(gamma / (2 * lambda))(t));
      }
      Series points{.mark = Series::Mark::points, .color = static_cast<int>(t)};
      for (std::size_t l = 0; l < lambdas.size(); ++l) {
        points.x.push_back(lambdas[l]);
        points.y.push_back(drawn[l](t));
      }
      figure.series.push_back(std::move(line));
      figure.series.push_back(std::move(points));
    }
    double error = 0;
    for (std::size_t l = 0; l < lambdas.size(); ++l)
      error = std::max(error, (drawn[l] - sparsemax(gamma / (2 * lambdas[l]))).lpNorm<Eigen::Infinity>());
    lead_with(figure,
              fmt::format("The trained probabilities differ from the closed form by at most {:.1e}.", error));
    figure.description = fmt::format(
        "Probabilities of four tokens against lambda on a logarithmic axis: the closed form as lines, "
        "trained ones as points, which differ by at most {:.1e}. At lambda = 0.1 {} token(s) are kept, at "
        "lambda = 2 {}.",
        error, (drawn.front().array() >= kept_threshold).count(),
        (drawn.back().array() >= kept_threshold).count());
    return figure;
  }

  static Figure kept_figure(const std::vector<LambdaResult>& results) {
    Figure figure{.id = "kept",
                  .title = "The larger λ, the more tokens are kept",
                  .x = {.label = "weight λ of the quadratic term", .scale = Axis::Scale::log},
                  .y = {.label = "kept tokens of a sequence, mean", .range = {{0, 4.2}}}};
    Series form{.name = "closed form"}, trained{.name = "trained", .mark = Series::Mark::points};
    for (const LambdaResult& one : results) {
      double kept = 0, predicted = 0;
      for (const SequenceResult& sequence : one.sequences) {
        kept += static_cast<double>(sequence.kept);
        predicted += static_cast<double>(sequence.predicted);
      }
      const auto count = static_cast<double>(one.sequences.size());
      form.x.push_back(one.lambda);
      form.y.push_back(predicted / count);
      trained.x.push_back(one.lambda);
      trained.y.push_back(kept / count);
    }
    figure.caption = fmt::format(
        "Trained attention keeps {:.2f} tokens on average at λ = {} and {:.2f} at λ = {}; the closed form says {:.2f} and "
        "{:.2f}.",
        trained.y.front(), results.front().lambda, trained.y.back(), results.back().lambda, form.y.front(),
        form.y.back());
    figure.description = fmt::format(
        "The mean number of kept tokens rises from {:.2f} at lambda = {} to {:.2f} at lambda = {}.",
        trained.y.front(), results.front().lambda, trained.y.back(), results.back().lambda);
    figure.series = {std::move(form), std::move(trained)};
    return figure;
  }
};

}  // namespace

ExperimentPointer make_p3_sparsemax() { return std::make_unique<P3Sparsemax>(); }

}  // namespace attmirror

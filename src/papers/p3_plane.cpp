// P3 draws in the plane how gradient descent picks tokens: W turns to the attention SVM of least Frobenius norm, and
// the product K Q^T of trained factors to that of least nuclear norm.
//
// Two data sets of two sequences in dimension 2, all labels +1. In the first (three tokens each) the nuclear
// solution has rank 1, in the second (five tokens) rank 2. Normalized gradient descent with step 0.1 and eps =
// 2.2e-16 for 2,000 steps; W from 0; Q from 0 and K from 0.1 N(0, 1), which the original did not seed. A run of W is
// therefore compared to the last digit, and a run of (K, Q) with many starts of which the published one should be a
// typical one.
//
// The loss of (K, Q) has a penalty of 2.2e-16 (|K|^2 + |Q|^2). It looks like a guard against division by zero and is
// more than that: once the loss is as small, descent stays at the minimum of both, which is a point of the
// regularization path of the nuclear norm. All starts then agree to four digits after 2,000 steps; without the
// penalty some are far behind.
#include "papers/experiments.hpp"
#include "papers/shorthand.hpp"
#include "papers/training_set.hpp"
#include "papers/workers.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/mirror/direction.hpp>

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr GradientDescent plane_rule{
    .lr = 0.1, .normalized = true, .eps = EpsPolicy::paper, .jacobian = Jacobian::safe};
constexpr GradientDescent exact_rule{.lr = 0.1, .normalized = true};
constexpr double plane_penalty = 0x1p-52;  // the original adds it to the loss of (K, Q), times |K|^2 + |Q|^2

struct Milestone {
  std::int64_t step;
  double correlation;
  int decimals;
};

// What is known of one of the two figures, recomputed from the published settings but for the slopes.
struct PlaneCase {
  const char* name;
  const char* id;
  std::string optimal;
  double frobenius, nuclear;
  std::ptrdiff_t nuclear_rank;
  std::array<double, 4> frobenius_W, nuclear_W;
  std::vector<Milestone> path;
  double final_norm;
  int norm_decimals;
  double kq_nuclear, kq_frobenius;  // correlations of one run from an unknown start; NaN: not known
  bool is_first() const { return nuclear_rank == 1; }
};

std::vector<PlaneCase> plane_cases() {
  return {{"first data set",
           "first",
           "(0, 2)",
           8.68573,
           9.75481,
           1,
           {2.85369, -2.70294, 5.37124, 5.58053},
           {.48671, .46926, 7.00553, 6.75439},
           {{100, .6254, 4}, {500, .99413, 5}, {1000, .99867, 5}, {2000, .99968, 5}},
           195.27,
           2,
           .99988,
           std::nan("")},
          {"second data set",
           "second",
           "(0, 0)",
           1.52636,
           1.87260,
           2,
           {.79255, -1.08647, -.63303, -.34711},
           {.99375, -1.25966, -.13324, -.25784},
           {{100, .99261, 5}, {500, .99920, 5}, {2000, .99944, 5}},
           60,
           0,
           .99985,
           .9335}};
}

double last_digit(int decimals) { return 0.5 * std::pow(10, -decimals); }

// The data were drawn in single precision, by a library whose last bit is not the same on all machines: hence 1e-6.
Finding known_digits(std::string quantity, double published, int decimals, double ours) {
  return {.quantity = std::move(quantity),
          .published = published,
          .source = ReferenceSource::recomputed,
          .ours = ours,
          .reading = last_digit(decimals),
          .tolerance = Tolerance::relative(1e-6),
          .digits = 6};
}

// A matrix of the plane by its largest distance in an entry.
Finding known_entries(const std::string& name, const std::array<double, 4>& published, double tolerance,
                      const Matrix& ours) {
  double distance = 0;
  for (std::size_t k = 0; k < 4; ++k)
    distance = std::max(distance, std::abs(ours(static_cast<std::ptrdiff_t>(k) / 2, k % 2) - published[k]));
  return {.quantity = fmt::format("{}: largest distance of an entry from ({} {}; {} {})", name, published[0],
                                  published[1], published[2], published[3]),
          .published = 0,
          .source = ReferenceSource::recomputed,
          .ours = distance,
          .tolerance = Tolerance::at_most(tolerance),
          .digits = 2};
}

// The published run had some start; ours are many. It is one of them if it lies among them.
Finding among_starts(std::string quantity, double published, const std::vector<double>& ours) {
  const double middle = median_of(ours);
  const auto [low, high] = std::ranges::minmax(ours);
  return {
      .quantity = std::move(quantity),
      .published = published,
      .source = ReferenceSource::recomputed,
      .ours = middle,
      .reading = 5e-6,
      .tolerance = Tolerance::absolute(std::max(high - middle, middle - low)),
      .note = fmt::format("K starts unseeded: median of {} starts, {:.5f} to {:.5f}; the tolerance is their "
                          "range",
                          ours.size(), low, high),
      .digits = 6};
}

class P3Plane final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {.id = "p3-plane",
            .paper = "P3",
            .item = "figures of gradient descent in the plane",
            .title = "Where does gradient descent go in the plane?",
            .summary =
                "Trains W and (K, Q) on two data sets of dimension 2 and compares their directions with the "
                "solutions of least Frobenius and nuclear norm.",
            .seconds = 0.4,
            .quick_seconds = 0.1};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    const std::uint64_t starts = context.quick() ? 24 : 40;
    const std::int64_t long_steps = context.quick() ? 10'000 : 100'000;
    ExperimentResult result;
    result.sample = fmt::format("2 data sets, {} of K", counted(starts, "random start"));
    result.configuration = {
        {"data", "P3's two sets in the plane: torch's generator, seeds 1 and 3"},
        {"W", "from 0; normalized gradient descent, lr 0.1, eps 2.2e-16, 2,000 steps"},
        {"(K, Q)",
         fmt::format("the same from Q = 0 and K = 0.1 N(0, 1), seeds 1 to {}, penalty 2.2e-16; once "
                     "more for {} steps without eps",
                     starts, long_steps)}};
    const std::vector<PlaneCase> cases = plane_cases();
    for (std::size_t c = 0; c < cases.size(); ++c) {
      const Dataset data = c == 0 ? generate(Visualization1Data{}) : generate(Visualization2Data{});
      const auto share = [](std::size_t done) { return static_cast<double>(done) / 2; };
      one_figure(context.part(share(c), share(c + 1)), cases[c], data, starts, long_steps, result);
    }
    result.remarks = {
        "The second data set shows what eps does: W stops at norm 60, where gradients fall below 10^-16, and its "
        "direction stops with it. Without eps the norm grows on to 200 and the direction converges.",
        "The penalty of 2.2e-16 in the loss of (K, Q) matters. Once the loss is that small, descent stays at the minimum "
        "of loss and penalty, a point on the regularization path of the nuclear norm, and all starts agree up to one "
        "step back and forth around it. Without the penalty the direction is that of descent itself. On the second data "
        "set, whose nuclear solution has rank 2, it arrives late where K starts nearly singular: the smaller singular "
        "value has to grow from almost nothing."};
    return result;
  }

 private:
  static void one_figure(const ExperimentContext& context, const PlaneCase& known, const Dataset& data,
                         std::uint64_t starts, std::int64_t long_steps, ExperimentResult& result) {
    TrainingSet set;
    const RecordSchedule often = RecordSchedule::log_spaced(40);
    // The milestones are recorded by a run of its own, which has the same bits.
    const std::size_t path = set.add(data, W{}, {}, plane_rule, {.steps = 2000, .record = often});
    std::vector<std::int64_t> steps;
    for (const Milestone& one : known.path) steps.push_back(one.step);
    const std::size_t milestones =
        set.add(data, W{}, {}, plane_rule, {.steps = 2000, .record = RecordSchedule::at(steps)});
    const std::size_t exact = set.add(data, W{}, {}, exact_rule, {.steps = 2000, .record = often});
    const auto start = [](std::uint64_t seed) {
      Initialization init{.kind = InitKind::normal, .std = 0.1, .seed = seed};
      init.given.Q = Matrix::Zero(2, 2);
      return init;
    };
    const std::size_t factors = set.size();
    for (std::uint64_t seed = 1; seed <= starts; ++seed)
      set.add(data, KQ{}, {.penalty = plane_penalty}, plane_rule,
              {.steps = 2000, .record = often, .init = start(seed)});
    for (std::uint64_t seed = 1; seed <= starts; ++seed)
      set.add(data, KQ{}, {}, exact_rule,
              {.steps = long_steps, .record = RecordSchedule::at({2000}), .init = start(seed)});
    const std::vector<DescentRun> runs = train_all(context, set.tasks());

    const Selection optimal = optimal_tokens(data);
    const MarginSolution frobenius = max_margin(data, optimal, Norm::frobenius());
    const MarginSolution nuclear = max_margin(data, optimal, Norm::nuclear());
    const auto of = [&](const char* what) { return fmt::format("{}: {}", known.name, what); };

    std::vector<Finding>& findings = result.findings;
    findings.push_back(same_text(of("optimal tokens"), known.optimal, to_string(optimal)));
    findings.push_back(same_text(of("tokens that W selects"), known.optimal, to_string(runs[path].selected)));
    findings.push_back(known_digits(of("least Frobenius norm"), known.frobenius, 5, frobenius.norm));
    findings.push_back(known_entries(of("its solution W"), known.frobenius_W, 1e-5, frobenius.W));
    findings.push_back(known_digits(of("least nuclear norm"), known.nuclear, 5, nuclear.norm));
    // A relative gap g leaves entries uncertain by about sqrt(g) of the norm: ours by 1e-4, the reference's by more.
    findings.push_back(known_entries(of("its solution W*"), known.nuclear_W, 1e-4, nuclear.W));
    findings.push_back(same_text(of("rank of W*"), fmt::format("{}", known.nuclear_rank),
                                 fmt::format("{}", relative_rank(nuclear.singular_values, 1e-4))));
    findings.push_back(
        {.quantity = of("larger gap of the two certificates"),
         .ours = std::max(frobenius.gap, nuclear.gap),
         .note = fmt::format("{} and {}", to_string(frobenius.status), to_string(nuclear.status)),
         .digits = 2});
    if (known.is_first()) slopes(data, frobenius.W, nuclear.W, findings);
    for (std::size_t m = 0; m < known.path.size(); ++m)
      findings.push_back(
          known_digits(fmt::format("{}: correlation of W with its solution, step {}", known.name, steps[m]),
                       known.path[m].correlation, known.path[m].decimals,
                       correlation(frobenius.W, runs[milestones].records[m].parameters.W)));
    findings.push_back(
        known_digits(of("norm of W, step 2000"), known.final_norm, known.norm_decimals, runs[path].norm));
    if (known.is_first())
      findings.push_back(
          known_entries(of("W, step 2000"), {64.930, -56.533, 123.047, 124.817}, 6e-4, runs[path].last().W));
    findings.push_back({.quantity = of("the same without eps: correlation, step 2000"),
                        .ours = correlation(frobenius.W, runs[exact].last().W),
                        .note = fmt::format("norm {:.1f}", runs[exact].norm),
                        .digits = 6});

    std::vector<double> with_nuclear, with_frobenius, without, later;
    for (std::size_t s = 0; s < starts; ++s) {
      const Matrix W = combined_weights(runs[factors + s].last());
      with_nuclear.push_back(correlation(nuclear.W, W));
      with_frobenius.push_back(correlation(frobenius.W, W));
      const DescentRun& free = runs[factors + starts + s];
      without.push_back(correlation(nuclear.W, combined_weights(free.records.front().parameters)));
      later.push_back(correlation(nuclear.W, combined_weights(free.last())));
    }
    findings.push_back(
        among_starts(of("correlation of K Q^T with W*, step 2000"), known.kq_nuclear, with_nuclear));
    if (!std::isnan(known.kq_frobenius))
      findings.push_back(
          among_starts(of("correlation of K Q^T with W, step 2000"), known.kq_frobenius, with_frobenius));
    findings.push_back(
        {.quantity = of("the same without penalty and eps, step 2000, worst start"),
         .ours = std::ranges::min(without),
         .note = fmt::format("median {:.5f}, best {:.5f}", median_of(without), std::ranges::max(without)),
         .digits = 6});
    findings.push_back({.quantity = fmt::format("{}: the same, step {}, worst start", known.name, long_steps),
                        .published = 1,
                        .source = ReferenceSource::theory,
                        .ours = std::ranges::min(later),
                        .tolerance = Tolerance::absolute(0.002),
                        .note = fmt::format("median {:.5f}", median_of(later)),
                        .digits = 6});
    result.figures.push_back(convergence_figure(known, frobenius.W, nuclear.W, runs[path], runs[exact],
                                                {runs.data() + factors, starts}));
    result.figures.push_back(plane_figure(known, data, optimal, frobenius.W, nuclear.W, runs[path]));
  }

  // The lines that the published figure draws: W z_i is nearly vertical, and these are its tilts.
  static void slopes(const Dataset& data, const Matrix& frobenius, const Matrix& nuclear,
                     std::vector<Finding>& findings) {
    const auto tilt = [&](const Matrix& W, std::ptrdiff_t i) {
      const Vector direction = W * data.queries().eigen().row(i).transpose();
      return direction(0) / direction(1);
    };
    const auto add = [&](const char* quantity, double published, double reading, double ours) {
      findings.push_back({.quantity = fmt::format("first data set: slope of the drawn line, {}", quantity),
                          .published = published,
                          .source = ReferenceSource::figure,
                          .ours = ours,
                          .reading = reading,
                          .tolerance = Tolerance::absolute(0),
                          .digits = 4});
    };
    add("W, sequence 1", .128, 5e-4, tilt(frobenius, 0));
    add("W, sequence 2", -.0349, 5e-5, tilt(frobenius, 1));
    add("W*, sequence 1", .0695, 5e-5, tilt(nuclear, 0));
    add("W*, sequence 2", .0695, 5e-5, tilt(nuclear, 1));
  }

  static Figure convergence_figure(const PlaneCase& known, const Matrix& frobenius, const Matrix& nuclear,
                                   const DescentRun& path, const DescentRun& exact,
                                   std::span<const DescentRun> factors) {
    Figure figure{.id = fmt::format("convergence-{}", known.id),
                  .title = fmt::format("W and K Q^T approach different solutions on the {}", known.name),
                  .x = {.label = "step k", .scale = Axis::Scale::log},
                  .y = {.label = "1 − correlation with the max-margin solution", .scale = Axis::Scale::log}};
    const auto curve = [&](std::string name, const DescentRun& run, const Matrix& solution) {
      Series series{.name = std::move(name)};
      for (const Record& record : run.records) {
        if (record.step == 0) continue;
        series.x.push_back(static_cast<double>(record.step));
        series.y.push_back(1 - correlation(solution, combined_weights(record.parameters)));
      }
      return series;
    };
    figure.series.push_back(curve("W with the Frobenius solution", path, frobenius));
    figure.series.back().color = 0;
    figure.series.push_back(curve("the same without eps", exact, frobenius));
    figure.series.back().dash = Series::Dash::dashed;
    figure.series.back().color = 0;
    Series middle{.name = "K Q^T with the nuclear solution, median of the starts", .color = 1};
    for (std::size_t r = 0; r < factors.front().records.size(); ++r) {
      if (factors.front().records[r].step == 0) continue;  // Q = 0
      std::vector<double> values;
      for (const DescentRun& run : factors)
        values.push_back(1 - correlation(nuclear, combined_weights(run.records[r].parameters)));
      middle.x.push_back(static_cast<double>(factors.front().records[r].step));
      middle.y.push_back(median_of(values));
      middle.low.push_back(std::ranges::min(values));
      middle.high.push_back(std::ranges::max(values));
    }
    figure.series.push_back(std::move(middle));
    figure.caption = fmt::format(
        "At step 2,000, 1 − correlation is {:.2g} for W with the solution of least Frobenius norm and {:.2g} for K Q^T with "
        "that of least nuclear norm (median; the band holds all starts of K).",
        figure.series[0].y.back(), figure.series[2].y.back());
    figure.description = fmt::format(
        "One minus the correlation against the step, both logarithmic. At step 2,000 W is at {:.2g} ({:.2g} "
        "without eps), the median start of K Q^T at {:.2g}, the worst at {:.2g}.",
        figure.series[0].y.back(), figure.series[1].y.back(), figure.series[2].y.back(),
        figure.series[2].high.back());
    return figure;
  }

  // Tokens, and where W z_i goes: scaled so that the last one is as long as the farthest token.
  static Figure plane_figure(const PlaneCase& known, const Dataset& data, const Selection& optimal,
                             const Matrix& frobenius, const Matrix& nuclear, const DescentRun& path) {
    Figure figure{.id = fmt::format("plane-{}", known.id),
                  .title = fmt::format("Tokens and trained directions of the {}", known.name),
                  .x = {.label = "first coordinate of tokens and of W z"},
                  .y = {.label = "second coordinate of tokens and of W z"},
                  .equal_axes = true};
    const double reach = data.all_tokens().eigen().rowwise().norm().maxCoeff();
    for (std::ptrdiff_t i = 0; i < data.samples(); ++i) {
      const int color = static_cast<int>(i);
      const Vector z = data.queries().eigen().row(i).transpose();
      Series tokens{.name = fmt::format("tokens of sequence {}", i + 1), .mark = Series::Mark::points};
      for (std::ptrdiff_t t = 0; t < data.length(i); ++t) {
        tokens.x.push_back(data.tokens(i).eigen()(t, 0));
        tokens.y.push_back(data.tokens(i).eigen()(t, 1));
        tokens.labels.push_back(t == optimal.tokens[static_cast<std::size_t>(i)] ? "optimal token" : "token");
      }
      Series trained{.name = fmt::format("path of W z, sequence {}", i + 1)};
      const double scale = reach / (path.last().W * z).norm();
      for (const Record& record : path.records) {
        const Vector at = scale * (record.parameters.W * z);
        trained.x.push_back(at(0));
        trained.y.push_back(at(1));
      }
      const auto direction = [&](const char* name, const Matrix& W, Series::Dash dash) {
        const Vector end = W * z * (reach / (W * z).norm());
        return Series{.name = fmt::format("{}, sequence {}", name, i + 1),
                      .x = {0, end(0)},
                      .y = {0, end(1)},
                      .dash = dash,
                      .color = color};
      };
      tokens.color = trained.color = color;
      figure.series.push_back(std::move(tokens));
      figure.series.push_back(std::move(trained));
      figure.series.push_back(direction("Frobenius solution", frobenius, Series::Dash::dashed));
      figure.series.push_back(direction("nuclear solution", nuclear, Series::Dash::dotted));
    }
    figure.caption = fmt::format(
        "After 2,000 steps W has a correlation of {:.4f} with the Frobenius solution and {:.4f} with the nuclear one. A "
        "token's attention grows with its component along W z, which is scaled to the size of the tokens here.",
        correlation(frobenius, path.last().W), correlation(nuclear, path.last().W));
    figure.description = fmt::format(
        "Tokens of two sequences in the plane with optimal tokens {}, the path of W z during training and "
        "the directions of both max-margin solutions; after 2,000 steps W has correlation {:.5f} with the "
        "Frobenius solution and {:.5f} with the nuclear one.",
        known.optimal, correlation(frobenius, path.last().W), correlation(nuclear, path.last().W));
    return figure;
  }
};

}  // namespace

ExperimentPointer make_p3_plane() { return std::make_unique<P3Plane>(); }

}  // namespace attmirror

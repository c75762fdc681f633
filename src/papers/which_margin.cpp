// Which margin does your optimizer maximize?
//
// Every direction that separates the selected tokens from the others drives the loss down; the optimizer decides
// which of them the weights take. For linear classifiers on separable data it is a theorem that steepest descent in a
// norm maximizes the margin in that norm (Gunasekar, Lee, Soudry and Srebro 2018), that l_p mirror descent does so
// for l_p (Sun and others 2022), Adam without its eps for l_inf (Zhang, Zou and Cao 2024), Muon for the spectral norm
// (Fan and others 2025). For attention P1 proves it for l_p mirror descent, P3 for the regularization path of (K,Q)
// and the nuclear norm. Here it is measured for all of them, on P1's data (n = 6, T = 8, d = 10) of seeds 101 to 200,
// from W = 0:
//
//   ratio = (min (x_alpha - x_t)^T W z / ||W||) / (1 / ||W_mm||)
//
// with W_mm the certified max-margin solution in the norm for the tokens alpha that this run selected: 1 where no
// direction has a larger margin. Theory says that 1 is reached in the limit and in one column only: that of the
// optimizer's own norm. AdaGrad has none (Qian and Qian 2019: its limit is a max-margin solution in a norm that the
// run itself makes, from the gradients that it has seen). Of it the table says which of these norms it comes
// nearest to.
#include "base/numbers.hpp"
#include "papers/experiments.hpp"
#include "papers/shorthand.hpp"
#include "papers/workers.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr double close_enough =
    0.95;  // of the largest margin: what counts as having reached it at the end of a run

constexpr std::size_t first_seed = 101;

struct NormColumn {
  std::string name;
  Norm norm;
};

const std::vector<NormColumn>& columns() {
  static const std::vector<NormColumn> all{{"ℓ1", Norm::l(1)},           {"ℓ1.1", Norm::l(1.1)},
                                           {"ℓ1.75", Norm::l(1.75)},     {"ℓ2", Norm::l(2)},
                                           {"ℓ3", Norm::l(3)},           {"ℓ∞", Norm::l(infinity)},
                                           {"nuclear", Norm::nuclear()}, {"spectral", Norm::spectral()}};
  return all;
}

struct Row {
  std::string name;
  Optimizer optimizer;
  std::int64_t steps;
  std::optional<Norm> predicted;  // empty: theory predicts none
  std::string reason = {};        // what keeps it from its limit, where we know
  bool has_theorem = true;        // otherwise what it does is news
  bool factored = false;          // trains K and Q from a start near 0
};

// Step sizes and lengths with which each is near its limit, chosen on the data of seeds 1 to 8, which are not measured.
// Averages of gradients want short steps: gradients shrink by a
// factor in each step, and an average over ten is ruled by the oldest.
std::vector<Row> rows() {
  const Norm largest = Norm::l(infinity);
  const auto md = [](double p, double lr) { return MirrorDescent{.p = p, .lr = lr, .normalized = true}; };
  SteepestDescent decaying = muon(0.5);
  decaying.schedule = {.kind = ScheduleKind::power, .exponent = 0.5};
  return {
      {"gradient descent", GradientDescent{.lr = 0.1, .normalized = true}, 100'000, Norm::l(2)},
      {"ℓ1.1 mirror descent", md(1.1, 0.1), 10'000, Norm::l(1.1)},
      {"ℓ1.75 mirror descent", md(1.75, 0.1), 10'000, Norm::l(1.75)},
      {"ℓ3 mirror descent", md(3, 1), 100'000, Norm::l(3)},
      {"hyperbolic entropy",
       MirrorDescent{.lr = 0.1, .normalized = true, .geometry = Geometry::hyperbolic_entropy}, 2'000,
       Norm::l(1)},
      {"coordinate descent", coordinate_descent(0.3), 30'000, Norm::l(1)},
      {"sign descent", sign_descent(0.1), 10'000, largest},
      {"Signum", signum(0.02), 20'000, largest},
      {"Adam, β₂ = 0.95", Adam{.lr = 0.01, .beta2 = 0.95}, 20'000, largest},
      {"Adam, β₂ = 0.999", Adam{.lr = 0.01}, 20'000, largest,
       "the theorem is about the limit, from which this run is far: its second moment forgets 0.1 % a step, while "
       "gradients fall faster, so that the steps shrink with them"},
      {"Lion", Lion{.lr = 0.002}, 50'000, largest,
       "the theorem is about the sign of a single average, which this is only for β₁ = β₂", false},
      {"AdaGrad", AdaGrad{.lr = 0.1}, 30'000, std::nullopt,
       "theory predicts no norm: the limit is a max-margin solution in a norm that depends on the gradients of the "
       "run"},
      {"spectral descent", spectral_descent(0.1), 10'000, Norm::spectral()},
      {"Muon, exact", muon(0.02, 0.95, Orthogonalization::exact), 10'000, Norm::spectral()},
      {"Muon, Newton–Schulz", decaying, 20'000, Norm::spectral(),
       "the theorem is about exact orthogonalization; five Newton–Schulz steps leave singular values between "
       "0.7 and 1.2",
       false},
      {"(K, Q) gradient descent", GradientDescent{.lr = 0.1, .normalized = true}, 30'000, Norm::nuclear(), "",
       true, true},
      {"nuclear steepest descent", SteepestDescent{.norm = Norm::nuclear(), .lr = 0.1}, 10'000,
       Norm::nuclear()},
      {"Schatten-1.1 mirror descent",
       MirrorDescent{.p = 1.1, .lr = 0.1, .normalized = true, .geometry = Geometry::schatten}, 2'000,
       Norm::nuclear(), "theory's norm is Schatten-1.1, which is close to the nuclear norm", false},
  };
}

// What came out of one optimizer: for each column the ratios over seeds.
struct Measured {
  std::vector<std::vector<double>> ratios{columns().size()};
  std::vector<std::ptrdiff_t> largest = std::vector<std::ptrdiff_t>(columns().size());  // in how many seeds
  std::ptrdiff_t optimal = 0, failed = 0;

  std::vector<double> means() const {
    std::vector<double> means;
    for (const std::vector<double>& column : ratios) means.push_back(mean_of(column).value);
    return means;
  }
  std::size_t nearest() const {
    const std::vector<double> shares = means();
    return static_cast<std::size_t>(std::ranges::max_element(shares) - shares.begin());
  }
};

std::optional<std::size_t> predicted_column(const Row& row) {
  if (!row.predicted) return std::nullopt;
  return static_cast<std::size_t>(std::ranges::find(columns(), *row.predicted, &NormColumn::norm) -
                                  columns().begin());
}

class WhichMargin final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {
        .id = "which-margin",
        .paper = "ours",
        .item = "not in the papers",
        .title = "Which margin does your optimizer maximize?",
        .summary =
            "Trains attention with eighteen optimizers and measures the margin that each reaches in eight norms, relative "
            "to the certified largest margin for the tokens it selected.",
        .seconds = 25,
        .quick_seconds = 1};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    const std::size_t seeds = context.quick() ? 3 : 100;
    std::deque<Dataset> data;
    std::deque<Attention> plain, factored;
    for (std::size_t s = 0; s < seeds; ++s) {
      data.push_back(generate(SphereData{.seed = first_seed + s}));
      plain.emplace_back(data.back());
      factored.emplace_back(data.back(), KQ{});
    }
    const std::vector<Row> all = rows();
    std::vector<DescentTask> tasks;
    for (const Row& row : all)
      for (std::size_t s = 0; s < seeds; ++s) {
        DescentTask task{.model = row.factored ? &factored[s] : &plain[s], .optimizer = row.optimizer};
        task.options = {.steps = row.steps, .record = RecordSchedule::none()};
        if (row.factored) task.options.init = {.kind = InitKind::normal, .std = 0.001, .seed = 0};
        tasks.push_back(std::move(task));
      }
    const std::vector<DescentRun> runs = train_all(context.part(0, 0.9), tasks);
    const Largest largest(context.part(0.9, 1), data, runs);

    std::vector<Measured> measured(all.size());
    for (std::size_t r = 0; r < all.size(); ++r)
      for (std::size_t s = 0; s < seeds; ++s) measure(data[s], runs[r * seeds + s], s, largest, measured[r]);

    ExperimentResult result;
    result.sample = counted(seeds, "data set");
    result.conclusion = conclusion(all, measured);
    add_findings(result, all, measured, largest, seeds);
    add_table(result, all, measured, seeds);
    add_heatmap(result, all, measured, seeds);
    result.configuration.emplace_back(
        "data", fmt::format("n = 6, T = 8, d = 10, seeds {} to {}", first_seed, first_seed + seeds - 1));
    result.configuration.emplace_back("start", "W = 0; K and Q normal with deviation 0.001, seed 0");
    result.configuration.emplace_back("margins",
                                      fmt::format("{} max-margin problems, certified to a relative gap of "
                                                  "1e-10 (1e-8 for ℓ1, ℓ∞, nuclear, spectral)",
                                                  largest.count()));
    for (const Row& row : all)
      result.configuration.emplace_back(row.name,
                                        fmt::format("{}, {} steps", to_string(row.optimizer), row.steps));
    result.remarks = {
        "A share is at most 1 and belongs to a run of finite length: 0.99 means that some other direction has a margin 1 % "
        "larger. Theory predicts the column in which a row is largest.",
        "Compare within a row, not within a column: the directions of the other methods reach about 0.8 of the largest ℓ2 "
        "margin, but only about 0.4 of the largest ℓ∞ margin.",
        "Two rows stand out. Adam with its usual β₂ = 0.999 does not come near the ℓ∞ margin in 20,000 steps, because its "
        "second moment remembers gradients that were far larger. Muon with five Newton–Schulz steps falls short of the "
        "spectral margin, which exact orthogonalization almost reaches; its steps shrink like 1/√k here, because it falls "
        "further short with constant ones. (With lr 0.01 for 100,000 steps, on the data of seeds 1 to 8: 0.880 with "
        "Newton–Schulz, 0.996 exact.)",
        "Lion needs short steps, because its average reaches back about a hundred of them: with lr 0.01 instead of 0.002 it "
        "is at 0.56 of the largest ℓ∞ margin after 50,000 steps (seeds 1 to 8).",
        "AdaGrad has no norm of its own. Which of these norms it comes nearest to depends on its step size: with lr 3 instead "
        "of 0.1 it is ℓ2 (0.69 after 100,000 steps, seeds 1 to 8). More steps change little: 0.74 of the largest ℓ3 margin "
        "after 30,000 steps becomes 0.77 after 300,000.",
        "Step sizes and numbers of steps were chosen on other data (seeds 1 to 8) so that each method comes near its limit.",
        "ℓ1.1 mirror descent also comes near the ℓ1 margin, as p close to 1 should. A high share in ℓ1 is therefore no "
        "evidence against the theory, which only says that the share in ℓ1.1 is higher."};
    return result;
  }

 private:
  // The certified norms ||W_mm||: each (seed, tokens, norm) is solved once, whoever selected the tokens.
  class Largest {
   public:
    Largest(const ExperimentContext& context, const std::deque<Dataset>& data,
            const std::vector<DescentRun>& runs) {
      std::set<std::pair<std::size_t, std::vector<std::int64_t>>> problems;
      for (std::size_t i = 0; i < runs.size(); ++i)
        if (!runs[i].selected.tokens.empty()) problems.emplace(i % data.size(), runs[i].selected.tokens);
      std::vector<MarginTask> tasks;
      for (const auto& [s, tokens] : problems)
        for (const NormColumn& column : columns())
          tasks.push_back(
              {.data = &data[s], .problem = AttentionSvm{.tokens = {tokens}}, .norm = column.norm});
      const std::vector<MarginSolution> solutions = solve_all(context, tasks);
      std::size_t i = 0;
      for (const auto& problem : problems) {
        std::vector<double>& norms = norms_[problem];
        for (std::size_t c = 0; c < columns().size(); ++c, ++i) {
          const bool certified = solutions[i].status == MarginStatus::certified;
          norms.push_back(certified ? solutions[i].norm : std::numeric_limits<double>::quiet_NaN());
          uncertified_ += certified ? 0 : 1;
          worst_gap_ = std::max(worst_gap_, certified ? std::abs(solutions[i].gap) : 0.0);
        }
      }
      count_ = static_cast<std::ptrdiff_t>(solutions.size());
    }

    const std::vector<double>& norms(std::size_t seed, const Selection& tokens) const {
      return norms_.at({seed, tokens.tokens});
    }
    std::ptrdiff_t count() const { return count_; }
    std::ptrdiff_t uncertified() const { return uncertified_; }
    double worst_gap() const { return worst_gap_; }

   private:
    std::map<std::pair<std::size_t, std::vector<std::int64_t>>, std::vector<double>> norms_;
    std::ptrdiff_t count_ = 0, uncertified_ = 0;
    double worst_gap_ = 0;
  };

  static void measure(const Dataset& data, const DescentRun& run, std::size_t seed, const Largest& largest,
                      Measured& into) {
    if (run.status != RunStatus::completed) {
      ++into.failed;
      return;
    }
    const Matrix W = combined_weights(run.last());
    const double margin = selection_margin(data, run.selected, W);
    const std::vector<double>& norms = largest.norms(seed, run.selected);
    std::vector<double> ratios;
    for (std::size_t c = 0; c < columns().size(); ++c)
      ratios.push_back(margin / norm(W, columns()[c].norm) * norms[c]);
    for (std::size_t c = 0; c < ratios.size(); ++c) into.ratios[c].push_back(ratios[c]);
    ++into.largest[static_cast<std::size_t>(std::ranges::max_element(ratios) - ratios.begin())];
    into.optimal += run.selected == optimal_tokens(data) ? 1 : 0;
  }

  // "16 of the 17 optimizers for which theory predicts a norm come nearest to the largest margin in that norm; ..."
  static std::string conclusion(const std::vector<Row>& all, const std::vector<Measured>& measured) {
    std::size_t predicted = 0, right = 0;
    std::string exceptions;
    for (std::size_t r = 0; r < all.size(); ++r) {
      const std::optional<std::size_t> column = predicted_column(all[r]);
      if (!column) continue;
      ++predicted;
      if (measured[r].nearest() == *column)
        ++right;
      else
        exceptions += fmt::format("{}{} ({} instead of {})", exceptions.empty() ? "" : ", ", all[r].name,
                                  columns()[measured[r].nearest()].name, columns()[*column].name);
    }
    return fmt::format(
        "{} of the {} optimizers for which theory predicts a norm come nearest to the largest margin in that norm{}.",
        right, predicted,
        exceptions.empty()
            ? ""
            : fmt::format("; the exception{} {}", predicted - right == 1 ? " is" : "s are", exceptions));
  }

  static void add_findings(ExperimentResult& result, const std::vector<Row>& all,
                           const std::vector<Measured>& measured, const Largest& largest, std::size_t seeds) {
    std::ptrdiff_t failed = 0;
    for (std::size_t r = 0; r < all.size(); ++r) {
      const Row& row = all[r];
      const std::size_t best = measured[r].nearest(), column = predicted_column(row).value_or(best);
      const std::string count =
          fmt::format("largest there in {} of {} seeds", measured[r].largest[column], seeds);
      Finding nearest{.quantity = fmt::format("{}: norm whose largest margin it comes nearest to", row.name),
                      .source = ReferenceSource::theory,
                      .ours_text = columns()[best].name,
                      .note = count};
      const Mean mean = mean_of(measured[r].ratios[column]);
      Finding share{
          .quantity = fmt::format("{}: share of the largest {} margin", row.name, columns()[column].name),
          .source = ReferenceSource::theory,
          .ours = mean.value,
          .standard_error = mean.error,
          .tolerance = Tolerance::at_least(1 - close_enough),
          .digits = 3};
      share.note = row.reason;
      if (row.predicted && row.has_theorem) {
        nearest.published_text = columns()[column].name;
        share.published = 1;
      }
      result.findings.push_back(std::move(nearest));
      result.findings.push_back(std::move(share));
      failed += measured[r].failed;
    }
    result.findings.push_back({.quantity = "max-margin problems without a certificate",
                               .published = 0,
                               .source = ReferenceSource::theory,
                               .ours = static_cast<double>(largest.uncertified()),
                               .tolerance = Tolerance::absolute(0),
                               .note = fmt::format("of {}; the largest relative gap is {:.0e}",
                                                   largest.count(), largest.worst_gap())});
    result.findings.push_back({.quantity = "runs that diverged or were stopped",
                               .published = 0,
                               .source = ReferenceSource::theory,
                               .ours = static_cast<double>(failed),
                               .tolerance = Tolerance::absolute(0),
                               .note = fmt::format("of {}", all.size() * seeds)});
  }

  static void add_table(ExperimentResult& result, const std::vector<Row>& all,
                        const std::vector<Measured>& measured, std::size_t seeds) {
    Table table;
    table.title = fmt::format(
        "Share of the largest margin in each norm, mean over {} ± standard error. * marks the norm that theory predicts, ° "
        "the largest where theory predicts none",
        counted(seeds, "data set"));
    table.columns.push_back({"optimizer", Align::left});
    for (const NormColumn& column : columns()) table.columns.push_back({column.name});
    table.columns.push_back({"largest at * or °"});
    table.columns.push_back({"optimal tokens"});
    for (std::size_t r = 0; r < all.size(); ++r) {
      std::vector<std::string> cells{all[r].name};
      const std::optional<std::size_t> predicted = predicted_column(all[r]);
      const std::size_t column = predicted.value_or(measured[r].nearest());
      for (std::size_t c = 0; c < columns().size(); ++c) {
        const Mean mean = mean_of(measured[r].ratios[c]);
        cells.push_back(fmt::format("{:.3f} ± {:.3f}{}", mean.value, mean.error,
                                    c != column ? ""
                                    : predicted ? " *"
                                                : " °"));
      }
      cells.push_back(fmt::format("{} of {}", measured[r].largest[column], seeds));
      cells.push_back(fmt::format("{} of {}", measured[r].optimal, seeds));
      table.rows.push_back(std::move(cells));
    }
    result.tables.push_back({"margins", table});
  }

  static void add_heatmap(ExperimentResult& result, const std::vector<Row>& all,
                          const std::vector<Measured>& measured, std::size_t seeds) {
    Heatmap map;
    map.digits = 2;
    for (const NormColumn& column : columns()) map.columns.push_back(column.name);
    std::string outcome;
    for (std::size_t r = 0; r < all.size(); ++r) {
      map.rows.push_back(all[r].name);
      map.values.push_back(measured[r].means());
      const std::optional<std::size_t> predicted = predicted_column(all[r]);
      if (!predicted) continue;
      map.marked.emplace_back(r, *predicted);
      outcome += fmt::format("{}{}: {:.3f} in {}", outcome.empty() ? "" : "; ", all[r].name,
                             map.values[r][*predicted], columns()[*predicted].name);
    }
    result.figures.push_back(
        {.id = "which-margin",
         .title = "Which margin does your optimizer maximize?",
         .caption = fmt::format(
             "{} Margin of each optimizer's direction in each norm, as a share of the largest possible; "
             "mean over {}. The norm that theory predicts is outlined; for AdaGrad it predicts none.",
             conclusion(all, measured), counted(seeds, "data set")),
         .description =
             "A table of shares as colors, one row an optimizer, one column a norm. In the outlined cells: " +
             outcome + ".",
         .x = {.label = "norm in which the margin is measured"},
         .y = {.label = "optimizer"},
         .heatmap = std::move(map)});
  }
};

}  // namespace

ExperimentPointer make_which_margin() { return std::make_unique<WhichMargin>(); }

}  // namespace attmirror

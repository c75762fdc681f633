// P4's claim on unseen sentences, which its reviewers asked to see: what does a model that was trained in two stages
// predict where the data have shifted?
//
// The training order of a query says something about every pair of tokens that it compares, directly or by a chain x
// > ... > x'. The max-margin solution W_kq* gives each such pair a difference of scores of at least 1. So of an
// unseen sentence with the right token x and others x' three things may hold:
//
//   implied     x > x' for every other x', by the order or a chain of it: W_kq* is right, for every embedding
//   extended    not so, but it follows from optimal > non-comparable > non-optimal, the extended order of P4: W_kq*
//               is right
//               for one-hot embeddings and orders of three classes, where tokens that were never compared have score 0
//   open        neither: nothing in the training data tells
//
// Sentences of the same generator, longer ones, and ones made of tokens that training never compared under their
// query (three classes only). Published is the theorem; how often each case occurs, how early in training a model is
// right and what Gaussian embeddings do to the extended order is new.
#include "papers/experiments.hpp"
#include "papers/next_token_study.hpp"
#include "papers/shorthand.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace attmirror {

namespace {

using namespace next_token_study;

constexpr std::array kinds{UnseenKind::same_order, UnseenKind::longer, UnseenKind::non_comparable};
constexpr std::size_t case_count = 3;
enum Case { implied, extended, open };
constexpr std::array<std::string_view, case_count> case_names{"implied by the order", "by the extended order",
                                                              "open"};

std::string kind_name(UnseenKind kind) {
  switch (kind) {
    case UnseenKind::same_order:
      return "new sentences";
    case UnseenKind::longer:
      return "longer sentences";
    case UnseenKind::non_comparable:
      return "never compared tokens";
  }
  return "unnamed";
}

const std::array<Setting, 4>& all_settings() {
  static const std::array<Setting, 4> all{{settings()[0],
                                           settings()[1],
                                           {"one-hot, linear", EmbeddingKind::one_hot, OrderKind::linear},
                                           settings()[2]}};
  return all;
}

// Which pairs a query's training order decides, chains included: above[x][x'].
class Closure {
 public:
  explicit Closure(const PartialOrders& orders) {
    for (Token q = 0; q < vocabulary; ++q) {
      std::vector<std::vector<bool>> above(vocabulary, std::vector<bool>(vocabulary, false));
      for (const Preference& one : orders.preferences(q))
        above[static_cast<std::size_t>(one.better)][static_cast<std::size_t>(one.worse)] = true;
      for (std::size_t k = 0; k < vocabulary; ++k)  // Warshall
        for (std::size_t i = 0; i < vocabulary; ++i)
          if (above[i][k])
            for (std::size_t j = 0; j < vocabulary; ++j)
              if (above[k][j]) above[i][j] = true;
      above_.push_back(std::move(above));
      classes_.push_back(orders.token_classes(q));
    }
  }

  Case what(std::span<const Token> tokens, Token right) const {
    const auto q = static_cast<std::size_t>(tokens.back());
    const auto rank = [&](Token x) {
      switch (classes_[q][static_cast<std::size_t>(x)]) {
        case TokenClass::optimal:
          return 2;
        case TokenClass::non_comparable:
          return 1;
        case TokenClass::non_optimal:
          return 0;
      }
      return 0;
    };
    bool by_order = true, by_extension = true;
    for (const Token x : tokens) {
      if (x == right) continue;
      by_order = by_order && above_[q][static_cast<std::size_t>(right)][static_cast<std::size_t>(x)];
      by_extension = by_extension && rank(right) > rank(x);
    }
    return by_order ? implied : by_extension ? extended : open;
  }

 private:
  std::vector<std::vector<std::vector<bool>>> above_;
  std::vector<std::vector<TokenClass>> classes_;
};

// One kind of sentences in one setting: [seed][record] and, at the end, [case].
struct Shifted {
  std::vector<std::vector<double>> accuracy;
  std::array<std::ptrdiff_t, case_count> sentences{}, right{};
};

struct Trained {
  Setting setting;
  std::vector<std::int64_t> steps;
  std::vector<std::vector<double>> training_accuracy;
  std::array<Shifted, kinds.size()> shifted;
  bool has(std::size_t kind) const {
    return kinds[kind] != UnseenKind::non_comparable || setting.order == OrderKind::three_class;
  }
};

class P4Unseen final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {
        .id = "p4-unseen",
        .paper = "P4",
        .item = "the claim on unseen sentences",
        .title = "Does training predict sentences it has not seen?",
        .summary =
            "Measures next-token accuracy during training on new sentences, longer ones and ones with tokens that were never "
            "compared, split by what the training order implies about them.",
        .seconds = 3,
        .quick_seconds = 0.4};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    const std::size_t seeds = context.quick() ? 2 : 8;
    const std::int64_t steps2 = context.quick() ? 5'000 : attention_steps;
    const std::ptrdiff_t count = context.quick() ? 100 : 400;
    std::vector<Trained> trained;
    for (const Setting& setting : all_settings()) {
      const double share = 0.25 * static_cast<double>(trained.size());
      trained.push_back(train(context.part(share, share + 0.25), setting, seeds, steps2, count));
    }
    ExperimentResult result;
    result.sample = fmt::format("{} in each of {} settings, {} unseen sentences of each kind",
                                counted(seeds, "data set"), trained.size(), count);
    for (const Trained& one : trained) add_findings(result, one);
    result.tables = {{"cases", cases_table(trained)}};
    result.figures = {accuracy_figure(trained, OrderKind::three_class),
                      accuracy_figure(trained, OrderKind::linear)};
    result.configuration = problem_configuration(seeds);
    result.configuration.emplace_back(
        "training", fmt::format("P4's two stages, {} and {} steps", collocation_steps, steps2));
    result.configuration.emplace_back(
        "unseen sentences", fmt::format("{} of each kind and seed, seed 1000 + that of the data", count));
    result.remarks = remarks(trained);
    std::ptrdiff_t right = 0, all = 0;
    for (const Trained& one : trained)
      for (const Shifted& shifted : one.shifted) {
        right += shifted.right[implied];
        all += shifted.sentences[implied];
      }
    result.conclusion = fmt::format(
        "Of the unseen sentences whose next token follows from the training order, {} of {} are predicted correctly.",
        right, all);
    return result;
  }

 private:
  static Trained train(const ExperimentContext& context, const Setting& setting, std::size_t seeds,
                       std::int64_t steps2, std::ptrdiff_t count) {
    Trained result{.setting = setting,
                   .steps = log_steps(steps2, 6, {100, 1000}),
                   .training_accuracy = {},
                   .shifted = {}};
    result.training_accuracy.resize(seeds);
    struct Counts {
      std::array<std::ptrdiff_t, case_count> sentences{}, right{};
    };
    std::vector<std::array<Counts, kinds.size()>> counts(seeds);
    for (Shifted& shifted : result.shifted) shifted.accuracy.resize(seeds);
    for_all(context, static_cast<std::ptrdiff_t>(seeds), [&](std::ptrdiff_t i) {
      const auto s = static_cast<std::size_t>(i);
      const Problem problem(setting, s + 1);
      const Closure closure(problem.orders);
      StageOptions first = paper_stage(Stage::collocation, vocabulary, collocation_steps);
      StageOptions second = paper_stage(Stage::attention, vocabulary, steps2);
      first.descent.record = RecordSchedule::none();
      second.descent.record = RecordSchedule::at(result.steps);
      const TwoStageRun run = train_two_stage(problem.view(), first, second);
      for (const std::int64_t step : result.steps)
        result.training_accuracy[s].push_back(metric(record_at(run.attention, step), "accuracy"));
      std::vector<Token> before(vocabulary, no_token);
      for (Token x = 0; x < vocabulary; ++x)
        before[static_cast<std::size_t>(problem.data.collocations.successor(x))] = x;
      for (std::size_t k = 0; k < kinds.size(); ++k) {
        if (!result.has(k)) continue;
        const Sentences unseen = unseen_sentences(problem.data, kinds[k], count, 1000 + s + 1);
        for (const std::int64_t step : result.steps)
          result.shifted[k].accuracy[s].push_back(
              accuracy(unseen, problem.embedding, with_frozen(record_at(run.attention, step), run)));
        const std::vector<Token> predicted = predict(unseen, problem.embedding, run.last());
        for (std::ptrdiff_t n = 0; n < unseen.count(); ++n) {
          const Token y = unseen.label(n);
          const Case which = closure.what(unseen.tokens(n), before[static_cast<std::size_t>(y)]);
          ++counts[s][k].sentences[which];
          counts[s][k].right[which] += predicted[static_cast<std::size_t>(n)] == y ? 1 : 0;
        }
      }
    });
    for (const auto& of_seed : counts)
      for (std::size_t k = 0; k < kinds.size(); ++k)
        for (std::size_t c = 0; c < case_count; ++c) {
          result.shifted[k].sentences[c] += of_seed[k].sentences[c];
          result.shifted[k].right[c] += of_seed[k].right[c];
        }
    return result;
  }

  static Parameters with_frozen(const Record& record, const TwoStageRun& run) {
    Parameters parameters = record.parameters;
    parameters.matrices["W_ov"] = run.last().matrix("W_ov");
    return parameters;
  }

  static std::vector<std::string> remarks(const std::vector<Trained>& trained) {
    // All kinds of sentences of a setting together.
    const auto share = [](const Trained& one, Case which) {
      std::ptrdiff_t right = 0, all = 0;
      for (const Shifted& shifted : one.shifted) {
        right += shifted.right[which];
        all += shifted.sentences[which];
      }
      return all == 0 ? std::nan("") : ratio(right, all);
    };
    return {
        "What the training order implies, chains included, is predicted in every setting, as the theorem says.",
        fmt::format(
            "The extended order is a property of one-hot (and other orthonormal) embeddings, where scores of "
            "tokens that were never compared stay exactly 0: of the sentences of three classes that it "
            "decides {:.3f} are right. Gaussian embeddings share directions between tokens, and the score of "
            "a token that was never compared is what its neighbors make of it: {:.3f}.",
            share(trained[0], extended), share(trained[1], extended)),
        fmt::format(
            "What the training data leave open is predicted correctly in {:.2f} and {:.2f} of the cases (one-hot, "
            "three classes and linear), which is chance.",
            share(trained[0], open), share(trained[2], open))};
  }

  static void add_findings(ExperimentResult& result, const Trained& one) {
    const bool exact =
        one.setting.embedding == EmbeddingKind::one_hot && one.setting.order == OrderKind::three_class;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      if (!one.has(k)) continue;
      const Shifted& shifted = one.shifted[k];
      const std::ptrdiff_t all = shifted.sentences[0] + shifted.sentences[1] + shifted.sentences[2];
      for (const Case which : {implied, extended, open}) {
        if (shifted.sentences[which] == 0) continue;
        const Mean share = share_of(shifted.right[which], shifted.sentences[which]);
        Finding finding{.quantity = fmt::format("{}, {}: accuracy where the label is {}", one.setting.name,
                                                kind_name(kinds[k]), case_names[which]),
                        .source = ReferenceSource::theory,
                        .ours = share.value,
                        .note = fmt::format("{} of {} sentences", shifted.sentences[which], all)};
        if (which == implied || (which == extended && exact)) {
          finding.published = 1;
          finding.tolerance = Tolerance::absolute(0);
        } else {
          finding.standard_error = share.error;
        }
        result.findings.push_back(std::move(finding));
      }
    }
  }

  static Table cases_table(const std::vector<Trained>& trained) {
    Table table{.title = "Accuracy after training, with the share of sentences of each case",
                .columns = {{"setting", Align::left}, {"sentences", Align::left}}};
    for (const std::string_view name : case_names) table.columns.push_back({std::string(name)});
    table.columns.push_back({"all"});
    for (const Trained& one : trained)
      for (std::size_t k = 0; k < kinds.size(); ++k) {
        if (!one.has(k)) continue;
        const Shifted& shifted = one.shifted[k];
        std::vector<std::string> row{one.setting.name, kind_name(kinds[k])};
        std::ptrdiff_t all = 0, right = 0;
        for (std::size_t c = 0; c < case_count; ++c) {
          all += shifted.sentences[c];
          right += shifted.right[c];
        }
        for (std::size_t c = 0; c < case_count; ++c)
          row.push_back(shifted.sentences[c] == 0
                            ? "none"
                            : fmt::format("{:.3f} ({:.0f} %)", ratio(shifted.right[c], shifted.sentences[c]),
                                          100 * ratio(shifted.sentences[c], all)));
        row.push_back(fmt::format("{:.3f}", ratio(right, all)));
        table.rows.push_back(std::move(row));
      }
    return table;
  }

  static double ratio(std::ptrdiff_t part, std::ptrdiff_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  }

  static Figure accuracy_figure(const std::vector<Trained>& trained, OrderKind order) {
    const bool classes = order == OrderKind::three_class;
    Figure figure{.id = classes ? "three-classes" : "linear",
                  .title = classes ? "Three classes: accuracy on unseen sentences during stage 2"
                                   : "Linear orders: accuracy on unseen sentences during stage 2",
                  .caption = "Mean over data sets. Solid: one-hot embeddings; dashed: Gaussian ones.",
                  .x = {.label = "step of stage 2", .scale = Axis::Scale::log},
                  .y = {.label = "share of sentences predicted correctly", .range = {{0, 1.02}}}};
    std::string ends;
    for (const Trained& one : trained) {
      if (one.setting.order != order) continue;
      const auto dash =
          one.setting.embedding == EmbeddingKind::one_hot ? Series::Dash::solid : Series::Dash::dashed;
      const auto add = [&](const std::string& what, const std::vector<std::vector<double>>& values,
                           int color) {
        Series series =
            band(fmt::format("{}: {}", one.setting.name, what), one.steps, values, Averages::plain, color);
        series.dash = dash;
        series.low.clear();
        series.high.clear();
        ends += fmt::format("{}{} {:.3f}", ends.empty() ? "" : ", ", series.name, series.y.back());
        figure.series.push_back(std::move(series));
      };
      add("training", one.training_accuracy, 0);
      for (std::size_t k = 0; k < kinds.size(); ++k)
        if (one.has(k)) add(kind_name(kinds[k]), one.shifted[k].accuracy, static_cast<int>(k) + 1);
    }
    lead_with(figure, fmt::format("At the end: {}.", ends));
    figure.description = fmt::format("Accuracy against the step of stage 2. At the end: {}.", ends);
    return figure;
  }
};

}  // namespace

ExperimentPointer make_p4_unseen() { return std::make_unique<P4Unseen>(); }

}  // namespace attmirror

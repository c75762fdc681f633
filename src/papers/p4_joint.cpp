// P4 trains in two stages: first W_ov on the collocations, then W_kq on the sentences with W_ov frozen. Its reviewers
// asked what happens in one. Here both blocks move at once, from 0, on L + L0, each along its own normalized
// gradient, with as many steps as the two stages have together.
//
// The question is not the loss, which goes down either way, but the direction: do W_ov and W_kq reach W_ov* and W_kq*
// of the theory? While both are small the gradient of W_kq is that of a model that does not know its successors yet,
// and normalized steps go as far along it as along any other. What was learned so must be outgrown.
//
// No paper has numbers on it: all of ours are new, beside those of two stages on the same data. Joint training is
// done with both step sizes of P4, since one optimizer moves both blocks: 0.05/sqrt(d), and 0.2/sqrt(d), that of its
// stage 1.
#include "papers/experiments.hpp"
#include "papers/next_token_study.hpp"
#include "papers/shorthand.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace attmirror {

namespace {

using namespace next_token_study;

enum Way { two_stages, joint_small, joint_large };
constexpr std::array ways{two_stages, joint_small, joint_large};
constexpr std::array<std::string_view, ways.size()> way_names{"two stages", "joint, lr 0.05/√d",
                                                              "joint, lr 0.2/√d"};

// [seed][record]; a step counts those of both stages.
struct WayCurves {
  std::vector<std::int64_t> steps;
  std::vector<std::vector<double>> ov_direction, kq_direction;
  // At the end, of each seed.
  std::vector<double> L0, L, accuracy, unseen, ov_end, kq_end;
  std::vector<double>
      misplaced;  // share of sentences whose attention is mostly on tokens that the label does not follow
};

struct Compared {
  Setting setting;
  std::array<WayCurves, ways.size()> curves;
  std::ptrdiff_t uncertified = 0;
};

// The loss of one stage at given weights.
double stage_loss(const Problem& problem, Stage stage, const Parameters& parameters) {
  const NextTokenModel model(problem.view(), stage);
  ThreadPool pool(1);
  NextTokenEngine engine(model, pool);
  ParameterBlocks blocks(model.blocks());
  Parameters used;
  for (const BlockShape& block : model.blocks()) used.matrices[block.name] = parameters.matrix(block.name);
  blocks.assign(used);
  return engine.evaluate(blocks).loss;
}

// The share of training sentences that have less than half of their attention on the tokens that the label follows.
double misplaced_attention(const Problem& problem, const Matrix& W_kq) {
  const Matrix scores = attention_scores(problem.embedding, W_kq);
  const Sentences& sentences = problem.data.sentences;
  std::ptrdiff_t misplaced = 0;
  for (std::ptrdiff_t i = 0; i < sentences.count(); ++i) {
    const Token q = sentences.query(i);
    double largest = -std::numeric_limits<double>::infinity(), right = 0, all = 0;
    for (const Token x : sentences.tokens(i)) largest = std::max(largest, scores(x, q));
    for (const Token x : sentences.tokens(i)) {
      const double weight = std::exp(scores(x, q) - largest);
      all += weight;
      if (problem.data.collocations.successor(x) == sentences.label(i)) right += weight;
    }
    misplaced += right < all / 2 ? 1 : 0;
  }
  return static_cast<double>(misplaced) / static_cast<double>(sentences.count());
}

class P4Joint final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {
        .id = "p4-joint",
        .paper = "P4",
        .item = "a question of its reviewers: single-stage training",
        .title = "Is one stage as good as two?",
        .summary =
            "Trains W_ov and W_kq together on L + L0 and compares losses, directions and accuracy with those of two stages "
            "that take as many steps.",
        .seconds = 7,
        .quick_seconds = 0.5};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    const std::size_t seeds = context.quick() ? 1 : 5;
    const std::int64_t first = context.quick() ? 1'000 : collocation_steps,
                       second = context.quick() ? 2'000 : attention_steps;
    const std::size_t settings_used = context.quick() ? 2 : settings().size();
    std::vector<Compared> all;
    for (std::size_t c = 0; c < settings_used; ++c) {
      const auto total = static_cast<double>(settings_used);
      all.push_back(compare(context.part(static_cast<double>(c) / total, static_cast<double>(c + 1) / total),
                            settings()[c], seeds, first, second));
    }
    ExperimentResult result;
    result.sample = fmt::format("{} in each of {} settings", counted(seeds, "data set"), settings_used);
    for (const Compared& one : all) add_findings(result, one);
    std::ptrdiff_t uncertified = 0;
    for (const Compared& one : all) uncertified += one.uncertified;
    result.findings.push_back({.quantity = "targets without a certificate",
                               .published = 0,
                               .source = ReferenceSource::theory,
                               .ours = static_cast<double>(uncertified),
                               .tolerance = Tolerance::absolute(0),
                               .note = fmt::format("of {}", 2 * seeds * settings_used)});
    result.tables = {{"comparison", comparison_table(all)}};
    for (const Compared& one : all)
      for (const Block& block : {NextTokenBlock::W_kq, NextTokenBlock::W_ov})
        if (Figure figure = direction_figure(one, block); !figure.series.empty())
          result.figures.push_back(std::move(figure));
    result.configuration = problem_configuration(seeds);
    result.configuration.emplace_back("two stages",
                                      fmt::format("P4's: {} steps of W_ov, {} of W_kq", first, second));
    result.configuration.emplace_back(
        "joint", fmt::format("both blocks from 0 on L + L0, normalized each, {} steps", first + second));
    result.configuration.emplace_back("unseen sentences",
                                      "400 of the same generator, seed 1000 + that of the data");
    result.remarks = remarks(all);
    const auto same = std::ranges::count_if(all, reaches_the_same);
    result.conclusion = fmt::format(
        "Training in one stage reaches the same attention directions as two stages in {} of {} settings.",
        same, all.size());
    return result;
  }

 private:
  static Compared compare(const ExperimentContext& context, const Setting& setting, std::size_t seeds,
                          std::int64_t first, std::int64_t second) {
    Compared result{.setting = setting, .curves = {}};
    for (WayCurves& way : result.curves) {
      way.steps = log_steps(first + second, 12);
      for (auto* list : {&way.ov_direction, &way.kq_direction}) list->resize(seeds);
      for (auto* list :
           {&way.L0, &way.L, &way.accuracy, &way.unseen, &way.ov_end, &way.kq_end, &way.misplaced})
        list->resize(seeds);
    }
    result.curves[two_stages].steps = log_steps(second, 12);
    std::vector<std::ptrdiff_t> uncertified(seeds);
    for_all(context, static_cast<std::ptrdiff_t>(seeds * ways.size()), [&](std::ptrdiff_t i) {
      const std::size_t s = static_cast<std::size_t>(i) / ways.size(),
                        w = static_cast<std::size_t>(i) % ways.size();
      const Problem problem(setting, s + 1);
      const MarginSolution ov =
          collocation_target(problem.embedding, problem.data.collocations, Norm::frobenius());
      const MarginSolution kq = attention_target(problem.embedding, problem.orders, Norm::frobenius());
      if (w == 0)
        uncertified[s] =
            (ov.status != MarginStatus::certified ? 1 : 0) + (kq.status != MarginStatus::certified ? 1 : 0);
      const NextTokenMeasures measures{.W_ov = ov.W, .W_kq = kq.W};
      WayCurves& way = result.curves[w];
      const Parameters last =
          ways[w] == two_stages
              ? train_both(problem, measures, first, second, way, s)
              : train_once(problem, measures, first + second,
                           ways[w] == joint_small ? attention_lr() : collocation_lr(), way, s);
      way.ov_end[s] = direction_gap(last.matrix("W_ov"), ov.W);
      way.kq_end[s] = direction_gap(last.matrix("W_kq"), kq.W);
      way.L0[s] = stage_loss(problem, Stage::collocation, last);
      way.L[s] = stage_loss(problem, Stage::attention, last);
      way.accuracy[s] = accuracy(problem.data.sentences, problem.embedding, last);
      const Sentences unseen = unseen_sentences(problem.data, UnseenKind::same_order, 400, 1000 + s + 1);
      way.unseen[s] = accuracy(unseen, problem.embedding, last);
      way.misplaced[s] = misplaced_attention(problem, last.matrix("W_kq"));
    });
    for (const std::ptrdiff_t one : uncertified) result.uncertified += one;
    return result;
  }

  static Parameters train_both(const Problem& problem, const NextTokenMeasures& measures, std::int64_t first,
                               std::int64_t second, WayCurves& way, std::size_t seed) {
    StageOptions one = paper_stage(Stage::collocation, vocabulary, first);
    StageOptions two = paper_stage(Stage::attention, vocabulary, second);
    one.descent.keep = two.descent.keep = Keep::metrics;
    one.descent.record = two.descent.record = RecordSchedule::at(way.steps);
    const TwoStageRun run = train_two_stage(problem.view(), one, two, measures);
    for (const std::int64_t step : way.steps) {
      way.kq_direction[seed].push_back(metric(record_at(run.attention, step), "direction_W_kq"));
      way.ov_direction[seed].push_back(
          step > first ? std::nan("") : metric(record_at(run.collocation, step), "direction_W_ov"));
    }
    return run.last();
  }

  static Parameters train_once(const Problem& problem, const NextTokenMeasures& measures, std::int64_t steps,
                               double lr, WayCurves& way, std::size_t seed) {
    StageOptions options{.optimizer = GradientDescent{.lr = lr, .normalized = true}};
    options.descent.steps = steps;
    options.descent.keep = Keep::metrics;
    options.descent.record = RecordSchedule::at(way.steps);
    const DescentRun run = train_joint(problem.view(), options, measures);
    for (const std::int64_t step : way.steps) {
      way.kq_direction[seed].push_back(metric(record_at(run, step), "direction_W_kq"));
      way.ov_direction[seed].push_back(metric(record_at(run, step), "direction_W_ov"));
    }
    return run.last();
  }

  static void add_findings(ExperimentResult& result, const Compared& one) {
    for (std::size_t w = 0; w < ways.size(); ++w) {
      const WayCurves& way = one.curves[w];
      const auto add = [&](std::string_view what, const std::vector<double>& values, int digits = 3) {
        const Mean mean = mean_of(values);
        Finding finding = new_number(fmt::format("{}, {}: {}", one.setting.name, way_names[w], what),
                                     mean.value, mean.error);
        finding.digits = digits;
        result.findings.push_back(std::move(finding));
      };
      add("1 − cos(W_ov, W_ov*) at the end", way.ov_end);
      add("1 − cos(W_kq, W_kq*) at the end", way.kq_end);
      add("L at the end", way.L, 2);
      add("training accuracy", way.accuracy);
      add("accuracy on new sentences", way.unseen);
      add("share of training sentences with most attention on wrong tokens", way.misplaced);
    }
  }

  static Table comparison_table(const std::vector<Compared>& all) {
    Table table{.title = "At the end: mean over seeds (losses: geometric)",
                .columns = {{"setting", Align::left},
                            {"training", Align::left},
                            {"1 − cos(W_ov, W_ov*)"},
                            {"1 − cos(W_kq, W_kq*)"},
                            {"L0"},
                            {"L"},
                            {"accuracy"},
                            {"new sentences"},
                            {"attention on wrong tokens"}}};
    const auto geometric = [](std::vector<double> values) {
      for (double& value : values) value = std::log(value);
      return std::exp(mean_of(values).value);
    };
    for (const Compared& one : all)
      for (std::size_t w = 0; w < ways.size(); ++w) {
        const WayCurves& way = one.curves[w];
        table.rows.push_back(
            {one.setting.name, std::string(way_names[w]), fmt::format("{:.2e}", mean_of(way.ov_end).value),
             fmt::format("{:.4f}", mean_of(way.kq_end).value), fmt::format("{:.1e}", geometric(way.L0)),
             fmt::format("{:.1e}", geometric(way.L)), fmt::format("{:.3f}", mean_of(way.accuracy).value),
             fmt::format("{:.3f}", mean_of(way.unseen).value),
             fmt::format("{:.3f}", mean_of(way.misplaced).value)});
      }
    return table;
  }

  // Whether the better of the two ways in one stage ends at most twice as far from the target as two stages do.
  static bool reaches_the_same(const Compared& one) {
    const auto end = [&](Way way) { return mean_of(one.curves[way].kq_end).value; };
    return std::min(end(joint_small), end(joint_large)) <= 2 * end(two_stages);
  }

  static std::vector<std::string> remarks(const std::vector<Compared>& all) {
    std::vector<std::string> texts;
    for (const Compared& one : all) {
      const auto end = [&](Way way) { return mean_of(one.curves[way].kq_end).value; };
      texts.push_back(fmt::format(
          "{}: {}. 1 − cos(W_kq, W_kq*) is {:.4f} after two stages, and {:.4f} and {:.4f} after one stage with the smaller "
          "and the larger step; {:.1f} and {:.1f} % of the sentences end with most of their attention on wrong tokens.",
          one.setting.name,
          reaches_the_same(one) ? "one stage reaches the same directions"
                                : "one stage does not reach the same directions",
          end(two_stages), end(joint_small), end(joint_large),
          100 * mean_of(one.curves[joint_small].misplaced).value,
          100 * mean_of(one.curves[joint_large].misplaced).value));
    }
    // What tells the runs that get there from those that do not.
    std::vector<double> placed, misplaced;
    for (const Compared& one : all)
      for (const Way way : {joint_small, joint_large})
        for (std::size_t s = 0; s < one.curves[way].kq_end.size(); ++s)
          (one.curves[way].misplaced[s] > 0 ? misplaced : placed).push_back(one.curves[way].kq_end[s]);
    if (misplaced.empty()) {
      texts.push_back(fmt::format(
          "No run in one stage ends with attention on wrong tokens; 1 − cos(W_kq, W_kq*) is {:.4f} at most.",
          std::ranges::max(placed)));
      return texts;
    }
    texts.push_back(fmt::format(
        "Attention on wrong tokens makes the difference. In one stage W_ov sees the sentences and can memorize one from the "
        "wrong token; the loss of that sentence is then small, and nothing turns its attention around any more. Of the {} "
        "runs in one stage, {} have such sentences, with a 1 − cos(W_kq, W_kq*) of {:.3f} on average; for the others it is "
        "{:.3f}. In two stages W_ov never sees a sentence.",
        placed.size() + misplaced.size(), misplaced.size(), mean_of(misplaced).value, mean_of(placed).value));
    return texts;
  }

  static Figure direction_figure(const Compared& one, const Block& block) {
    const bool attention = block == NextTokenBlock::W_kq;
    std::string id = attention ? "kq-" : "ov-";
    id += one.setting.embedding == EmbeddingKind::one_hot ? "one-hot" : "gaussian";
    if (one.setting.order == OrderKind::linear) id += "-linear";
    Figure figure{
        .id = id,
        .title = fmt::format("{} turns to its target in two stages and in one ({})", to_string(block),
                             one.setting.name),
        .caption =
            "Mean over data sets; bands are one standard deviation. For two stages, steps of the block's own stage.",
        .x = {.label = "step t", .scale = Axis::Scale::log},
        .y = {.label = fmt::format("1 − cos of the angle between {0} and {0}*", to_string(block)),
              .scale = Axis::Scale::log}};
    std::string ends;
    for (std::size_t w = 0; w < ways.size(); ++w) {
      const WayCurves& way = one.curves[w];
      Series series = band(std::string(way_names[w]), way.steps,
                           attention ? way.kq_direction : way.ov_direction, Averages::of_logarithms);
      series.color = static_cast<int>(w);
      // Rounding would stretch a logarithmic axis until nothing else could be read.
      if (std::ranges::max(series.y) < 1e-20)
        figure.caption += fmt::format(
            " Not drawn: {}, on its target from the first step (below 10^-20, rounding).", way_names[w]);
      else
        figure.series.push_back(std::move(series));
      const double end = mean_of(attention ? way.kq_end : way.ov_end).value;
      ends += fmt::format("{}{} {}", ends.empty() ? "" : ", ", way_names[w],
                          end < 1e-20 ? std::string("0 to rounding") : fmt::format("{:.2e}", end));
    }
    lead_with(figure, fmt::format("At the end: {}.", ends));
    figure.description = fmt::format("1 − cos against the step. At the end: {}.", ends);
    return figure;
  }
};

}  // namespace

ExperimentPointer make_p4_joint() { return std::make_unique<P4Joint>(); }

}  // namespace attmirror

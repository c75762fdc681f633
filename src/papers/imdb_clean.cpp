// IMDb by a clean protocol: should an engineer use lp mirror descent?
//
// p1-imdb follows P1: learning rates of P1 for mirror descent, training to 99.5 %, the best test accuracy over epochs.
// Here every optimizer gets what an engineer would give it. P1's network (3 blocks, 3 heads, width 384) trains for 6
// epochs with a warm-up and a cosine, on the mean loss. Every configuration is tuned by the same search of at most ten
// trainings on 20,000 reviews, by the accuracy on the other 5,000 after the last epoch. The winner of every family then
// trains on all 25,000 from five seeds, and the test set is read once, after the last epoch. The records are in
// docs/results/imdb_clean; this experiment trains nothing.
//
// The conclusion answers three questions with Welch's 95 % intervals:
//
//   1. accuracy: the best mirror descent against the best other optimizer and against AdamW;
//   2. cost: bytes of state per parameter, and epochs to 95 % of AdamW's final accuracy on held-out reviews;
//   3. sparsity of K, Q and V at equal accuracy: a mirror descent is as accurate as another optimizer if the interval
//      of the difference contains 0 or is above it, or if the difference is within half a point.
//
// Within a label, reviews of a film are neighbors in the data, so every fifth review is about films that the other four
// are about, too, mostly with the same label; the test set has other films. Some optimizers were therefore tuned a
// second time, with blocks of 500 neighbors held out, and a sentence says whether the first answer still holds. (Of
// such a film the reviews with the other label may still be trained on: this split punishes who memorizes films, where
// the first rewards it.)
#include "papers/imdb_clean.hpp"

#include "papers/experiments.hpp"
#include "papers/recorded_experiment.hpp"
#include "papers/recorded_studies.hpp"
#include "papers/shorthand.hpp"
#include "papers/training_views.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

// Points of accuracy that count as equal whatever the interval.
constexpr double equal_points = 0.5;

const char* accuracy_verdict(const WelchComparison& comparison) {
  constexpr std::array verdicts{
      "the best ℓp mirror descent is less accurate than the best other optimizer",
      "the best ℓp mirror descent and the best other optimizer cannot be told apart in accuracy",
      "the best ℓp mirror descent is more accurate than the best other optimizer"};
  return verdicts[static_cast<std::size_t>(sign_of(comparison) + 1)];
}

std::string accuracy_sentence(const CleanStudy& study) {
  const TrainingGroup *mirror = study.best_mirror(), *other = study.best_other(), *adamw = study.adamw();
  if (!mirror || !other)
    return "Whether ℓp mirror descent is as accurate as other optimizers cannot be judged: that takes two finished trainings of a mirror descent and of another optimizer.";
  const WelchComparison comparison = compare_tests(*mirror, *other);
  std::string text = fmt::format(
      "With every optimizer tuned alike, {}: {} has a mean test accuracy of {:.2f} %, {} than that of {}",
      accuracy_verdict(comparison), mirror->name, mirror->percent(clean_test).mean, higher_text(comparison),
      other->name);
  if (adamw && adamw != other)
    text += fmt::format(" and {} than that of AdamW", higher_text(compare_tests(*mirror, *adamw)));
  return text + (adamw ? "." : "; there is no AdamW to compare with.");
}

// The first question once more, for those that were tuned on blocks of neighbors.
std::string blocks_sentence(const CleanStudy& blocks) {
  const TrainingGroup *mirror = blocks.best_mirror(), *other = blocks.best_other(), *adamw = blocks.adamw();
  if (!mirror || !other) return "";
  const auto against = [&](const TrainingGroup& reference) {
    return fmt::format("{} than that of {}", higher_text(compare_tests(*mirror, reference)), reference.name);
  };
  std::string text = fmt::format(
      " The reviews that chose these settings, every fifth, are about films that the training reviews are about, too, and the test reviews are not. With settings chosen on blocks of neighbors, of which that is less so, {}: {} has {:.2f} %, {}",
      accuracy_verdict(compare_tests(*mirror, *other)), mirror->name, mirror->percent(clean_test).mean,
      against(*other));
  if (adamw && adamw != other) text += fmt::format(" and {}", against(*adamw));
  return text + ".";
}

// A number of the best mirror descent, then those of others: "4.0 bytes (Muon with AdamW: 5.3, AdamW: 8.0)".
struct Costs {
  std::optional<double> mirror, other;
  std::string text;
};

template <class Cost>
Costs costs_of(const CleanStudy& study, const char* format, const char* unit, const Cost& cost) {
  const TrainingGroup *other = study.best_other(), *adamw = study.adamw();
  Costs costs{.mirror = cost(*study.best_mirror()), .other = cost(*other), .text = {}};
  std::vector<std::string> others{fmt::format("{}: {}", other->name, cell_of(costs.other, format))};
  if (adamw && adamw != other) others.push_back(fmt::format("AdamW: {}", cell_of(cost(*adamw), format)));
  costs.text = fmt::format("{} {} ({})", cell_of(costs.mirror, format), unit, fmt::join(others, ", "));
  return costs;
}

// "less", "as much" or "more", up to the digits that are shown.
const char* amount_word(double mirror, double other, double digit, std::array<const char*, 3> words) {
  return std::abs(mirror - other) < digit / 2 ? words[1] : mirror < other ? words[0] : words[2];
}

std::string cost_sentence(const CleanStudy& study) {
  const TrainingGroup *mirror = study.best_mirror(), *other = study.best_other();
  if (!mirror || !other) return "";
  const Costs state = costs_of(study, "{:.1f}", "bytes of optimizer state per parameter",
                               [&](const TrainingGroup& group) { return study.state_per_parameter(group); });
  const std::optional<double> goal = study.common_goal();
  const auto epochs_of = [&](const TrainingGroup& group) -> std::optional<double> {
    const ImdbSearch* search = search_of(study.searches, group.config);
    if (!goal || !search || !search->winner) return {};
    const std::optional<std::int64_t> epochs = epochs_to(*search->winner, *goal);
    return epochs ? std::optional(static_cast<double>(*epochs)) : std::nullopt;
  };
  const bool single = epochs_of(*mirror) == 1;
  const Costs epochs = costs_of(study, "{:g}",
                                single ? "epoch to 95 % of AdamW's final accuracy on held-out reviews"
                                       : "epochs to 95 % of AdamW's final accuracy on held-out reviews",
                                epochs_of);
  std::vector<std::string> parts;
  if (state.mirror && state.other) parts.push_back(state.text);
  const ImdbSearch* search = search_of(study.searches, mirror->config);
  if (epochs.mirror)
    parts.push_back(fmt::format("in the one tuning run that won {}", epochs.text));
  else if (goal && search && search->winner)
    parts.push_back(
        "in the one tuning run that won no epoch that reaches 95 % of AdamW's final accuracy on held-out reviews");
  if (parts.empty()) return " What it costs in memory and epochs is not in the records.";
  const std::string lead = state.mirror && state.other
                               ? fmt::format(" Against {} it needs {}:", other->name,
                                             amount_word(*state.mirror, *state.other, 0.1,
                                                         {"less memory", "as much memory", "more memory"}))
                               : fmt::format(" {} has", mirror->name);
  return fmt::format("{} {}.", lead, fmt::join(parts, ", and "));
}

// Which mirror descents are as accurate as `other`.
std::vector<const TrainingGroup*> as_accurate_as(const CleanStudy& study, const TrainingGroup& other) {
  std::vector<const TrainingGroup*> list;
  for (const TrainingGroup& group : study.groups) {
    if (!training_optimizer(group.config).is_mirror_descent() || group.percent(clean_test).count < 2)
      continue;
    const WelchComparison comparison = compare_tests(group, other);
    if (comparison.high >= 0 || comparison.difference >= -equal_points) list.push_back(&group);
  }
  return list;
}

// Of those, the sparsest against `other`; `lead` begins the sentence.
std::string sparsity_comparison(const std::vector<const TrainingGroup*>& equal, const TrainingGroup& other,
                                const std::string& lead) {
  const TrainingGroup* sparsest = nullptr;
  for (const TrainingGroup* group : equal)
    if (group->mean_sparsity().count >= 2 && group->mean_above().count >= 2 &&
        (!sparsest || group->mean_sparsity().mean > sparsest->mean_sparsity().mean))
      sparsest = group;
  if (!sparsest || other.mean_sparsity().count < 2 || other.mean_above().count < 2)
    return " How sparse weights are at equal accuracy is not in the records.";
  const WelchComparison hoyer = welch(sparsest->mean_sparsity(), other.mean_sparsity());
  const WelchComparison above = welch(sparsest->mean_above(), other.mean_above());
  const auto favored = [&](int sign) {
    return sign > 0   ? "favors mirror descent"
           : sign < 0 ? fmt::format("favors {}", other.name)
                      : "decides nothing";
  };
  const int by_hoyer = sign_of(hoyer), by_above = -sign_of(above);
  std::string verdict = favored(by_hoyer);
  if (by_hoyer != by_above)
    verdict = fmt::format(
        "is not decided, because it {} by Hoyer's measure and {} by the share of weights above 0.06",
        favored(by_hoyer), favored(by_above));
  return fmt::format(
      " {} equal accuracy (to {}: an interval of the difference that is not below 0, or a difference within half a point), sparsity {}: {} has Hoyer sparsity {:.3f} against {:.3f} (95 % interval of the difference {:.3f} to {:.3f}) and {:.2f} against {:.2f} % of the weights of K, Q and V above 0.06 ({:.2f} to {:.2f}).",
      lead, other.name, verdict, sparsest->name, sparsest->mean_sparsity().mean, other.mean_sparsity().mean,
      hoyer.low, hoyer.high, sparsest->mean_above().mean, other.mean_above().mean, above.low, above.high);
}

std::string sparsity_sentence(const CleanStudy& study) {
  const TrainingGroup *other = study.best_other(), *adamw = study.adamw();
  if (!study.best_mirror() || !other) return "";
  for (const TrainingGroup* reference : {other, adamw}) {
    if (!reference) continue;
    if (const auto equal = as_accurate_as(study, *reference); !equal.empty())
      return sparsity_comparison(
          equal, *reference,
          reference == other ? "At"
                             : fmt::format("No mirror descent is as accurate as {}, but at", other->name));
  }
  return fmt::format(
      " Sparsity at equal accuracy does not favor it, because no mirror descent is as accurate as {}{} (an interval of the difference that is not below 0, or a difference within half a point).",
      other->name, adamw && adamw != other ? " or AdamW" : "");
}

// Nobody has published such numbers.
std::vector<Finding> clean_findings(const CleanStudy& study) {
  std::vector<Finding> findings;
  const auto compare = [&](const TrainingGroup* first, const TrainingGroup* second) {
    if (!first || !second || first == second) return;
    const WelchComparison comparison = compare_tests(*first, *second);
    findings.push_back(
        new_number(fmt::format("test accuracy, {} minus {}, points", first->name, second->name),
                   comparison.difference, comparison.standard_error));
    findings.back().note = fmt::format("Welch: {}", difference_text(comparison));
  };
  compare(study.best_mirror(), study.best_other());
  if (study.adamw() != study.best_other()) compare(study.best_mirror(), study.adamw());
  const auto add = [&](const TrainingGroup& group, const char* what, const SampleSummary& sample) {
    if (sample.count > 0)
      findings.push_back(new_number(fmt::format("{}, {}", what, group.name), sample.mean, error_of(sample)));
  };
  for (const TrainingGroup& group : study.groups) add(group, "test accuracy in %", group.percent(clean_test));
  for (const TrainingGroup& group : training_groups(study.records, TrainingRole::longer))
    add(group, "test accuracy in % of longer trainings", group.percent(clean_test));
  for (const TrainingGroup& group : training_groups(study.records, TrainingRole::transfer))
    add(group, "accuracy in % on SST-2", group.percent(clean_test));
  // Before the first main training there is only what the searches found.
  for (const ImdbSearch& search : study.searches)
    if (study.groups.empty() && search.winner)
      findings.push_back(
          new_number(fmt::format("accuracy in % on held-out reviews, {}", search.optimizer.name),
                     100 * search.accuracy()));
  return findings;
}

class ImdbClean final : public RecordedExperiment {
  ExperimentInfo about() const override {
    return {
        .id = "imdb-clean",
        .paper = "ours",
        .item = "P1's sentiment transformer on IMDb, size 3, with every optimizer tuned alike",
        .title = "Should an engineer use ℓp mirror descent?",
        .summary =
            "Reads the records of P1's sentiment transformer on IMDb, trained on a GPU by mirror descents with many p, with and without momentum and normalization, and by AdamW, Adam, Muon, Signum and SGD with momentum, each tuned on held-out reviews by the same search, and compares test accuracies, costs and sparsity."};
  }
  std::string study() const override { return "imdb_clean"; }
  RecordTexts texts() const override { return imdb_clean_records(); }
  ExperimentResult result_of(const RecordTexts& records) const override {
    return imdb_clean_result(read_records(records), read_speeds(records));
  }
};

}  // namespace

ExperimentResult imdb_clean_result(std::span<const TrainingRecord> records,
                                   std::span<const SpeedRecord> speeds) {
  const CleanStudy study(records, speeds), blocks(records, speeds, HeldOut::blocks);
  ExperimentResult result;
  result.conclusion =
      accuracy_sentence(study) + cost_sentence(study) + sparsity_sentence(study) + blocks_sentence(blocks);
  result.findings = clean_findings(study);
  for (const TrainingGroup& group : blocks.groups)
    if (const SampleSummary test = group.percent(clean_test); test.count > 0)
      result.findings.push_back(
          new_number(fmt::format("test accuracy in %, {}", group.name), test.mean, error_of(test)));
  for (Figure& figure : std::array<Figure, 5>{clean_curves(study), clean_memory_figure(study),
                                              sparsity_figure(study.groups, "last epoch", clean_test),
                                              clean_exponent_figure(study), clean_rate_figure(study)})
    if (!figure.series.empty() || figure.heatmap) result.figures.push_back(std::move(figure));
  const auto add = [&](const char* id, Table table) {
    if (!table.rows.empty()) result.tables.push_back({id, std::move(table)});
  };
  add("optimizers", clean_optimizer_table(study));
  add("comparisons", clean_comparison_table(study));
  add("blocks", clean_blocks_table(study, blocks));
  add("attention", clean_attention_table(study));
  add("exponents", clean_exponent_table(study));
  add("ablations", clean_ablation_table(study));
  add("longer", clean_longer_table(study));
  add("transfer", clean_transfer_table(study));
  add("searches", clean_search_table(study));
  add("block-searches", clean_search_table(blocks));
  add("trials", clean_trial_table(study));
  add("repeats", training_repeat_table(records, study.groups, "test", clean_test));
  add("trainings", clean_runs_table(study));
  add("weights", training_weights_table(records));
  result.sample = fmt::format("records of {} on {}, {}", counted(records.size(), "training"),
                              distinct_text(records, &TrainingRecord::device),
                              distinct_text(records, &TrainingRecord::date));
  result.remarks = clean_remarks(study);
  result.configuration = clean_configuration(study);
  return result;
}

ExperimentPointer make_imdb_clean() { return std::make_unique<ImdbClean>(); }

}  // namespace attmirror

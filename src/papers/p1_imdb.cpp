// P1's sentiment transformer on IMDb, size 3/3: does l1.1 mirror descent generalize better than gradient descent?
//
// P1 trains the network (3 blocks, 3 heads, width 384, dropout 0.2; reviews cut to 512 WordPieces; batches of 100,
// losses summed) until 99.5 % of the training reviews are answered right, ten times for each p, and reports the
// best test accuracy of a run: a maximum over epochs, on the test set itself. Its ten trials share one
// initialization, and it has no other optimizer on IMDb.
//
// An epoch takes a GPU, so this experiment trains nothing: it reads the records of docs/results/imdb. There every
// training has its own initialization, order and dropout, stops at 99.5 % or after 130 epochs, and the learning rates
// of Adam, AdamW, Muon and SGD with momentum were chosen on 5,000 held-out training reviews.
//
// A mean of ours and a published one agree if Welch's 95 % interval of their difference contains 0
// (imdb_published.cpp).
#include "papers/experiments.hpp"
#include "papers/imdb_published.hpp"
#include "papers/imdb_study.hpp"
#include "papers/recorded_experiment.hpp"
#include "papers/recorded_studies.hpp"
#include "papers/shorthand.hpp"
#include "papers/training_views.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

// What nobody has published: other optimizers, and what does not depend on choosing an epoch.
std::vector<Finding> new_findings(const std::vector<TrainingGroup>& groups) {
  std::vector<Finding> findings;
  const auto add = [&](const TrainingGroup& group, const char* what, const SampleSummary& sample) {
    if (sample.count == 0) return;
    findings.push_back(new_number(fmt::format("{}, {}", what, group.name), sample.mean, error_of(sample)));
  };
  for (const TrainingGroup& group : groups) {
    if (!published_row(group.config))
      add(group, "best test accuracy in %", group.percent(&TrainingRecord::best_test));
    add(group, "test accuracy in %, mean of the last ten epochs",
        group.percent(&TrainingRecord::last_ten_test));
    add(group, "token-selection score", group.numbers(&TrainingRecord::score));
  }
  return findings;
}

std::string claim_sentence(const TrainingGroup& md, const TrainingGroup& gd) {
  constexpr auto claim = "P1's claim that ℓ1.1 mirror descent generalizes better than gradient descent";
  if (md.runs.size() < 2 || gd.runs.size() < 2)
    return fmt::format("{} cannot be judged: {} and {} of the two have ended.", claim,
                       counted(md.runs.size(), "training"), counted(gd.runs.size(), "training"));
  const WelchComparison best =
      welch(md.percent(&TrainingRecord::best_test), gd.percent(&TrainingRecord::best_test));
  const WelchComparison last_ten =
      welch(md.percent(&TrainingRecord::last_ten_test), gd.percent(&TrainingRecord::last_ten_test));
  const std::string verdict = claim_verdict(best, last_ten, " at this size and with P1's learning rates");
  const std::string seeds = md.runs.size() == gd.runs.size()
                                ? fmt::format("{} independent seeds each,", md.runs.size())
                                : fmt::format("{} and {} independent seeds", md.runs.size(), gd.runs.size());
  return fmt::format("{} {}: over {} its best test accuracy is {}, and its mean over the last ten epochs {}.",
                     claim, verdict, seeds, higher_text(best), higher_text(last_ten));
}

std::string adam_sentence(const std::vector<TrainingGroup>& groups, const TrainingGroup& md) {
  const auto adam = std::ranges::find(groups, "adam", &TrainingGroup::config);
  if (adam == groups.end() || adam->runs.size() < 2 || md.runs.size() < 2)
    return "There is no Adam to compare with yet.";
  const WelchComparison best =
      welch(adam->percent(&TrainingRecord::best_test), md.percent(&TrainingRecord::best_test));
  const WelchComparison last_ten =
      welch(adam->percent(&TrainingRecord::last_ten_test), md.percent(&TrainingRecord::last_ten_test));
  return fmt::format(
      "Adam, which P1 does not have on IMDb, with a learning rate chosen on held-out reviews, {}: over {} seeds its best test accuracy is {}, and its mean over the last ten epochs {}.",
      beside_mirror_descent(best, last_ten), adam->runs.size(), higher_text(best), higher_text(last_ten));
}

// The optimizer with the highest mean of best test accuracies, where it has no sentence already.
std::string best_sentence(const std::vector<TrainingGroup>& groups, const TrainingGroup& md) {
  const auto mean = [](const TrainingGroup& group) {
    return group.runs.size() < 2 ? 0.0 : group.percent(&TrainingRecord::best_test).mean;
  };
  const TrainingGroup& best = *std::ranges::max_element(groups, {}, mean);
  if (best.runs.size() < 2 || md.runs.size() < 2 || best.config == md.config || best.config == "adam")
    return "";
  return fmt::format(
      " {} has the highest best test accuracy: over {} seeds it is {} than that of ℓ1.1 mirror descent.",
      best.name, best.runs.size(),
      higher_text(welch(best.percent(&TrainingRecord::best_test), md.percent(&TrainingRecord::best_test))));
}

std::vector<std::string> imdb_remarks(std::span<const TrainingRecord> records,
                                      const std::vector<TrainingGroup>& groups) {
  std::vector<std::string> remarks{
      fmt::format(
          "These numbers are records: the {} trainings behind them ran on a GPU ({}; {}), and this command computes only the tables, intervals and verdicts. scripts/training_study.py run --trainer attmirror --data DATA -o RUNS --only RUN trains a row again, with RUN as in the table of all trainings; without --only it trains all of them, and scripts/training_study.py collect RUNS writes the records anew. docs/results/imdb has the configurations and the plan.",
          records.size(), distinct_text(records, &TrainingRecord::device),
          distinct_text(records, &TrainingRecord::date)),
      "P1 reports the best test accuracy of a run: the largest over its epochs, chosen on the test set itself, which makes it optimistic, and the more so the longer a run is. The last epoch, and the mean of the last ten (of all, where there are fewer), choose nothing.",
      "P1's ten trials share one initialization, so that their deviations are those of order and dropout alone; ours have independent initializations. The optimizers of P1 have its learning rates; those of the others were chosen on 5,000 held-out training reviews, among those of the table of learning rates. Each interval is for one comparison."};
  remarks.push_back(left_out_remark(groups));
  return remarks;
}

std::vector<std::pair<std::string, std::string>> imdb_configuration(
    std::span<const TrainingRecord> records, const std::vector<TrainingGroup>& groups) {
  std::vector<std::pair<std::string, std::string>> entries{
      {"data",
       "Stanford Large Movie Reviews: 25,000 for training, 25,000 for testing, 512 WordPieces at most"},
      {"network", "3 blocks, 3 heads, width 384, dropout 0.2"},
      {"training", "batches of 100, summed losses; until 99.5 % training accuracy, 130 epochs at most"}};
  for (const TrainingGroup& group : groups) entries.push_back(group_configuration(group));
  entries.emplace_back("device", distinct_text(records, &TrainingRecord::device));
  entries.emplace_back("date", distinct_text(records, &TrainingRecord::date));
  entries.emplace_back("commit", distinct_text(records, &TrainingRecord::commit));
  return entries;
}

class Imdb final : public RecordedExperiment {
  ExperimentInfo about() const override {
    return {
        .id = "p1-imdb",
        .paper = "P1",
        .item = "Table of test accuracies on IMDb, size 3",
        .title = "IMDb: which optimizer generalizes best?",
        .summary =
            "Reads the records of P1's sentiment transformer on IMDb, trained on a GPU by mirror descent with p = 1.1, 2 and 3 and by Adam, AdamW, Muon and SGD with momentum from independent seeds, and compares test accuracies, sparsity and token selection."};
  }
  std::string study() const override { return "imdb"; }
  RecordTexts texts() const override { return imdb_records(); }
  ExperimentResult result_of(const RecordTexts& records) const override {
    return imdb_result(read_records(records));
  }
};

}  // namespace

ExperimentResult imdb_result(std::span<const TrainingRecord> records) {
  const std::vector<TrainingGroup> groups = training_groups(records);
  const TrainingGroup& md = group_of(groups, "md-1.1");
  const TrainingGroup& gd = group_of(groups, "md-2");
  ExperimentResult result;
  result.conclusion = claim_sentence(md, gd) + " " + adam_sentence(groups, md) + best_sentence(groups, md);
  result.findings = published_findings(groups);
  if (md.runs.size() >= 2 && gd.runs.size() >= 2) {
    const PublishedRow &p1_md = *published_row(md.config), &p1_gd = *published_row(gd.config);
    result.findings.push_back(compared_differences(
        fmt::format("best test accuracy, {} minus {}, points", md.name, gd.name),
        welch(p1_md.best, p1_gd.best),
        welch(md.percent(&TrainingRecord::best_test), gd.percent(&TrainingRecord::best_test))));
    result.findings.push_back(compared_differences(
        fmt::format("test accuracy of the last epoch, {} minus {}, points", md.name, gd.name),
        welch(p1_md.last, p1_gd.last),
        welch(md.percent(&TrainingRecord::last_test), gd.percent(&TrainingRecord::last_test))));
  }
  for (Finding& finding : new_findings(groups)) result.findings.push_back(std::move(finding));
  for (Figure& figure :
       std::array<Figure, 2>{accuracy_curves(groups, ", at 99.5 % training accuracy or after 130 epochs"),
                             sparsity_figure(groups, "last ten epochs", &TrainingRecord::last_ten_test)})
    if (!figure.series.empty()) result.figures.push_back(std::move(figure));
  result.tables = {{"optimizers", training_optimizer_table(groups)},
                   {"comparisons", training_comparison_table(groups)},
                   {"trainings", training_runs_table(records)},
                   {"weights", training_weights_table(records)}};
  if (const Table tuning = training_tuning_table(records, "5,000 held-out training reviews");
      !tuning.rows.empty())
    result.tables.push_back({"learning-rates", tuning});
  if (const Table repeats = training_repeat_table(records, groups, "best test", &TrainingRecord::best_test);
      !repeats.rows.empty())
    result.tables.push_back({"repeats", repeats});
  result.sample = fmt::format("records of {} on {}, {}", counted(records.size(), "training"),
                              distinct_text(records, &TrainingRecord::device),
                              distinct_text(records, &TrainingRecord::date));
  result.remarks = imdb_remarks(records, groups);
  result.configuration = imdb_configuration(records, groups);
  return result;
}

ExperimentPointer make_p1_imdb() { return std::make_unique<Imdb>(); }

}  // namespace attmirror

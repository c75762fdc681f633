// P1's sentiment transformer on IMDb with 4 and 6 blocks: does what p1-imdb finds at 3 blocks hold in deeper networks?
//
// P1's table has p = 1.1, 2 and 3 at three sizes: 3, 4 and 6 blocks, with as many heads each. At every size l1.1 mirror
// descent leads, by 1.5 to 2.3 points. At 6 blocks P1 also shows that it selects pivotal words better and has fewer
// large weights in K, Q and V, each on one network, and one of its ten trainings collapsed.
//
// This experiment trains nothing: it reads the records of docs/results/imdb_depth, and for 3 blocks those of
// docs/results/imdb. Every training has its own initialization. There are few seeds at each size, so that P1's claim is
// tested over all sizes in one model (pooled_difference.hpp), beside Welch's intervals at each.
//
// Large weights depend on how long a network has been trained, so that sparsity is compared at the end, as in P1, and
// at equal training accuracy.
#include "papers/imdb_depth.hpp"

#include "papers/experiments.hpp"
#include "papers/imdb_depth_claims.hpp"
#include "papers/imdb_depth_selection.hpp"
#include "papers/imdb_published.hpp"
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

constexpr RecordedNumber best_accuracy = &TrainingRecord::best_test;
constexpr RecordedNumber last_ten_accuracy = &TrainingRecord::last_ten_test;

std::vector<int> deep_sizes(std::vector<int> sizes) {
  std::erase(sizes, 3);
  return sizes;
}

// Each size alone: " At 6 blocks alone it is 1.50 points higher (95 % interval 1.20 to 1.80) at the best epoch, over 3
// and 3 seeds."
std::string size_sentences(const DepthStudy& study) {
  std::string text;
  for (const int blocks : {6, 4}) {
    const auto count = [&](const char* row) -> std::size_t {
      const TrainingGroup* group = study.group(row, blocks);
      return group ? group->runs.size() : 0;
    };
    if (const auto comparison = study.compared_at(blocks, "md-1.1", "md-2", best_accuracy))
      text += fmt::format(" At {} blocks alone it is {} at the best epoch, over {} and {} seeds.", blocks,
                          higher_text(*comparison), count("md-1.1"), count("md-2"));
    else
      text += fmt::format(" At {} blocks alone nothing can be said: {} and {} of the two have ended.", blocks,
                          counted(count("md-1.1"), "training"), counted(count("md-2"), "training"));
  }
  return text;
}

// Where a training that collapsed is in the means, what they are without it.
std::string sound_sentence(const DepthStudy& study) {
  const bool any = std::ranges::any_of(study.records, [](const TrainingRecord& record) {
    const TrainingOptimizer optimizer = training_optimizer(record.config);
    return counts_in_means(record) && collapse_of(record) && !optimizer.p.empty() && optimizer.p[0] != 3;
  });
  const auto by_best = study.pooled("md-1.1", "md-2", best_accuracy, Collapsed::left_out);
  const auto by_last = study.pooled("md-1.1", "md-2", last_ten_accuracy, Collapsed::left_out);
  if (!any || !by_best || std::isnan(by_best->freedom)) return "";
  return fmt::format(" Without the trainings that collapsed these are {} and {}.", higher_text(*by_best),
                     higher_text(*by_last));
}

enum class Wording { verdict, whole };

std::string claim_sentence(const DepthStudy& study, Wording wording = Wording::whole) {
  constexpr auto claim = "P1's claim that ℓ1.1 mirror descent generalizes better than gradient descent";
  const std::vector<int> sizes = study.sizes_of("md-1.1", "md-2");
  const auto by_best = study.pooled("md-1.1", "md-2", best_accuracy);
  const auto by_last = study.pooled("md-1.1", "md-2", last_ten_accuracy);
  if (deep_sizes(sizes).empty())
    return fmt::format(
        "{} cannot be judged in deeper networks: neither at 4 nor at 6 blocks have trainings of both ended.",
        claim);
  if (std::isnan(by_best->freedom))
    return fmt::format("{} cannot be judged: one training of each has ended, at {}.", claim,
                       blocks_text(sizes));
  const std::string where =
      fmt::format("{} {} and with P1's learning rates", sizes.size() > 1 ? " over" : " at",
                  sizes.size() > 1 ? blocks_text(sizes) + " together" : blocks_text(sizes));
  const std::string verdict = claim_verdict(*by_best, *by_last, where);
  if (wording == Wording::verdict)
    return fmt::format("{} {}: its best test accuracy is {}.", claim, verdict, higher_text(*by_best));
  return fmt::format(
      "{} {}: over independent seeds its best test accuracy is {}, and its mean over the last ten epochs {}.{}{}",
      claim, verdict, higher_text(*by_best), higher_text(*by_last), sound_sentence(study),
      size_sentences(study));
}

std::string adam_sentence(const DepthStudy& study) {
  std::string text;
  for (const char* row : adam_rows) {
    const auto by_best = study.compared_at(largest_depth, row, "md-1.1", best_accuracy);
    const auto by_last = study.compared_at(largest_depth, row, "md-1.1", last_ten_accuracy);
    if (!by_best) continue;
    text += fmt::format(
        "{}At {} blocks {} {}: over {} seeds its best test accuracy is {}, and its mean over the last ten epochs {}.",
        text.empty() ? "" : " ", largest_depth,
        row == adam_rows[0] ? "Adam, with its learning rate of 3 blocks," : optimizer_name(row),
        beside_mirror_descent(*by_best, *by_last), study.group(row, largest_depth)->runs.size(),
        higher_text(*by_best), higher_text(*by_last));
  }
  return text.empty() ? fmt::format("At {} blocks there is no Adam to compare with yet.", largest_depth)
                      : text;
}

std::string collapse_sentence(const DepthStudy& study) {
  std::vector<std::string> collapses;
  for (const TrainingRecord& record : study.records)
    if (const std::optional<std::string> collapse = collapse_of(record))
      collapses.push_back(fmt::format("{} ({})", record.run, *collapse));
  constexpr auto theirs = "in P1 one of ten did, of ℓ1.1 mirror descent at 6 blocks";
  if (collapses.empty())
    return fmt::format("None of the {} trainings collapsed; {}.", study.records.size(), theirs);
  return fmt::format("{} of the {} trainings collapsed: {}; {}.", collapses.size(), study.records.size(),
                     fmt::join(collapses, ", "), theirs);
}

// " 2 of 2 trainings of Adam, 6 blocks, collapsed.", for every configuration that has any.
std::string collapse_counts(const DepthStudy& study) {
  std::string text;
  for (const TrainingGroup& group : study.groups) {
    const auto is_of_group = [&](const TrainingRecord& record) { return record.config == group.config; };
    const auto collapsed = std::ranges::count_if(study.records, [&](const TrainingRecord& record) {
      return is_of_group(record) && collapse_of(record);
    });
    if (collapsed > 0)
      text += fmt::format(" {} of {} trainings of {}, collapsed.", collapsed,
                          std::ranges::count_if(study.records, is_of_group), group.name);
  }
  return text;
}

// The verdicts, one sentence each, for a reader who stops there: "P1's claim that ... holds over 3, 4 and 6 blocks
// together and with P1's learning rates: its best test accuracy is 1.16 points higher (95 % interval 0.90 to 1.43)."
std::string verdict_sentences(const DepthStudy& study, const DepthClaims& claims) {
  std::string text = claim_sentence(study, Wording::verdict);
  if (const auto score = claims.score.comparison()) {
    const auto [even, known] = even_networks(study, "md-1.1", largest_depth);
    text += fmt::format(
        " P1's claim that it selects pivotal words better at {} blocks {}{}.", largest_depth,
        claim_word(*score),
        even > 0 ? fmt::format("; {} of its {} networks attend almost evenly there", even, known) : "");
  }
  if (const std::string weights = sparsity_verdicts(study); !weights.empty())
    text += fmt::format(" P1's claim that it has fewer large weights {}.", weights);
  for (const char* row : adam_rows) {
    const auto by_best = study.compared_at(largest_depth, row, "md-1.1", best_accuracy);
    if (!by_best) continue;
    const auto by_last = study.compared_at(largest_depth, row, "md-1.1", last_ten_accuracy);
    text += fmt::format(" {} {} at {} blocks, over {} seeds.", optimizer_name(row),
                        beside_mirror_descent(*by_best, *by_last), largest_depth,
                        study.group(row, largest_depth)->runs.size());
  }
  return text + collapse_counts(study);
}

// l1.1 minus l2 at every deep size, then over all sizes: P1's by the same formulas from its means and deviations.
std::vector<Finding> difference_findings(const DepthStudy& study) {
  std::vector<Finding> findings;
  const auto named = [](const std::string& where) {
    return fmt::format("best test accuracy, ℓ1.1 mirror descent minus gradient descent (ℓ2), {}, points",
                       where);
  };
  std::vector<SamplePair> published;
  const std::vector<int> sizes = study.sizes_of("md-1.1", "md-2");
  for (const int blocks : sizes) {
    published.push_back({published_row(depth_config("md-1.1", blocks))->best,
                         published_row(depth_config("md-2", blocks))->best});
    const auto ours = study.compared_at(blocks, "md-1.1", "md-2", best_accuracy);
    if (ours && blocks > 3)
      findings.push_back(compared_differences(named(fmt::format("{} blocks", blocks)),
                                              welch(published.back().first, published.back().second), *ours));
  }
  if (deep_sizes(sizes).empty() || sizes.size() < 2) return findings;
  if (const auto ours = study.pooled("md-1.1", "md-2", best_accuracy); !std::isnan(ours->freedom))
    findings.insert(findings.begin(), compared_differences(named(blocks_text(sizes) + " together"),
                                                           pooled_difference(published), *ours));
  return findings;
}

std::vector<Finding> picture_findings(const DepthClaims& claims) {
  std::vector<Finding> findings;
  constexpr std::array rows{"md-1.1", "md-2"};
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (const DepthClaim* claim : claims.all()) {
      if (!claim->published || claim->ours[i].count == 0) continue;
      findings.push_back(compared_with_one(
          fmt::format("{}, {}", claim->quantity, optimizer_name(depth_config(rows[i], largest_depth))),
          (*claim->published)[i], claim->ours[i]));
      findings.back().reading = claim->reading;
      // What P1 does not print was read off its figure, to so many digits.
      if (claim->reading > 0) findings.back().source = ReferenceSource::figure;
      if (claim->decimals == 0) findings.back().digits = 5;  // a count
    }
  return findings;
}

std::vector<Finding> depth_findings(const DepthStudy& study, const DepthClaims& claims) {
  std::vector<TrainingGroup> deep;
  std::ranges::copy_if(study.groups, std::back_inserter(deep), [](const TrainingGroup& group) {
    return training_optimizer(group.config).blocks > 3;  // p1-imdb has those of 3
  });
  std::vector<Finding> findings = difference_findings(study);
  for (std::vector<Finding>& list :
       std::array<std::vector<Finding>, 2>{published_findings(deep), picture_findings(claims)})
    std::ranges::move(list, std::back_inserter(findings));
  const auto add = [&](const char* what, const TrainingGroup& group, const SampleSummary& sample) {
    if (sample.count > 0)
      findings.push_back(new_number(fmt::format("{}, {}", what, group.name), sample.mean, error_of(sample)));
  };
  for (const TrainingGroup& group : deep) {
    if (!published_row(group.config)) add("best test accuracy in %", group, group.percent(best_accuracy));
    add("test accuracy in %, mean of the last ten epochs", group, group.percent(last_ten_accuracy));
  }
  return findings;
}

class ImdbDepth final : public RecordedExperiment {
  ExperimentInfo about() const override {
    return {
        .id = "p1-imdb-depth",
        .paper = "P1",
        .item = "Table of test accuracies on IMDb, all sizes; attention and weights at size 6",
        .title = "IMDb: does ℓ1.1 mirror descent lead in deeper networks, too?",
        .summary =
            "Reads the records of P1's sentiment transformer on IMDb with 3, 4 and 6 blocks, trained on a GPU by mirror descent with p = 1.1, 2 and 3 and by Adam from independent seeds, and compares test accuracies over all sizes, collapses, token selection and sparsity."};
  }
  std::string study() const override { return "imdb_depth"; }
  RecordTexts texts() const override { return imdb_depth_records(); }
  ExperimentResult result_of(const RecordTexts& records) const override {
    const RecordTexts shallow = imdb_records();
    return imdb_depth_result(read_records(records),
                             shallow.has_runs() ? read_records(shallow) : std::vector<TrainingRecord>{});
  }
};

}  // namespace

ExperimentResult imdb_depth_result(std::span<const TrainingRecord> deep,
                                   std::span<const TrainingRecord> shallow) {
  const DepthStudy study(deep, shallow);
  const DepthClaims claims(study, largest_depth);
  ExperimentResult result;
  result.conclusion = verdict_sentences(study, claims);
  result.details = {claim_sentence(study), adam_sentence(study) + " " + collapse_sentence(study),
                    selection_sentence(study, claims), sparsity_sentence(study, claims)};
  result.findings = depth_findings(study, claims);
  for (Figure& figure : std::array<Figure, 4>{depth_size_figure(study), depth_curves(study, 6),
                                              depth_curves(study, 4), depth_score_figure(study)})
    if (!figure.series.empty()) result.figures.push_back(std::move(figure));
  result.tables = {{"sizes", depth_size_table(study, "best epoch", best_accuracy)},
                   {"sizes-last", depth_size_table(study, "last epoch", &TrainingRecord::last_test)},
                   {"differences", depth_difference_table(study)},
                   {"collapses", depth_collapse_table(study)},
                   {"six-blocks", depth_claims_table(claims)},
                   {"four-blocks", depth_claims_table(DepthClaims(study, 4))},
                   {"three-blocks", depth_claims_table(DepthClaims(study, 3))},
                   {"selection", depth_selection_table(study)},
                   {"selection-differences", depth_selection_difference_table(study)},
                   {"sentences-won", depth_wins_table(study)},
                   {"sentences", depth_sentence_table(study)},
                   {"weights-by-optimizer", depth_weights_table(study)},
                   {"trainings", training_runs_table(study.records)},
                   {"weights", training_weights_table(study.records)}};
  std::erase_if(result.tables, [](const NamedTable& one) { return one.table.rows.empty(); });
  result.sample = fmt::format("records of {} on {}, {}", counted(study.records.size(), "training"),
                              distinct_text(study.records, &TrainingRecord::device),
                              distinct_text(study.records, &TrainingRecord::date));
  result.remarks = depth_remarks(study);
  result.configuration = depth_configuration(study);
  return result;
}

ExperimentPointer make_p1_imdb_depth() { return std::make_unique<ImdbDepth>(); }

}  // namespace attmirror

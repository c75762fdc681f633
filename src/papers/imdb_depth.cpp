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
// Large weights depend on how long a network has been trained, so that sparsity is compared at the end, as in P1, and at
// equal training accuracy.
#include "papers/imdb_depth.hpp"

#include "papers/experiments.hpp"
#include "papers/imdb_published.hpp"
#include "papers/imdb_study.hpp"
#include "papers/recorded_studies.hpp"
#include "papers/shorthand.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

constexpr RecordedNumber best_accuracy = &TrainingRecord::best_test;
constexpr RecordedNumber last_ten_accuracy = &TrainingRecord::last_ten_test;
// P1's pictures of attention and weights are of this size.
constexpr int largest_size = 6;

// Of P1's figures at 6 blocks, one network each: l1.1 mirror descent and gradient descent.
struct PublishedWeights {
  const char* row;
  double score;
  std::array<double, 3> above;  // weights of K, Q and V above 0.06
  double largest_key;           // |w| of K, read off a figure to two digits
};
constexpr PublishedWeights published_weights[] = {{"md-1.1", 0.4387, {18206, 13964, 7643}, 0.70},
                                                  {"md-2", 0.3122, {27224, 14654, 10127}, 0.26}};

std::vector<int> deep_sizes(std::vector<int> sizes) {
  std::erase(sizes, 3);
  return sizes;
}

// Each size alone: "At 6 blocks alone its best test accuracy is 1.50 points higher (...), over 3 and 3 seeds."
std::string size_sentences(const DepthStudy& study) {
  std::string text;
  for (const int blocks : {6, 4}) {
    const auto count = [&](const char* row) -> std::size_t {
      const ImdbGroup* group = study.group(row, blocks);
      return group ? group->runs.size() : 0;
    };
    if (const auto comparison = study.compared_at(blocks, "md-1.1", "md-2", best_accuracy))
      text += fmt::format(" At {} blocks alone its best test accuracy is {}, over {} and {} seeds.", blocks,
                          higher_text(*comparison), count("md-1.1"), count("md-2"));
    else
      text += fmt::format(" At {} blocks alone nothing can be said: {} and {} of the two have ended.", blocks,
                          counted(count("md-1.1"), "training"), counted(count("md-2"), "training"));
  }
  return text;
}

std::string claim_sentence(const DepthStudy& study) {
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
  return fmt::format(
      "{} {}: over independent seeds its best test accuracy is {}, and its mean over the last ten epochs {}.{}",
      claim, claim_verdict(*by_best, *by_last, where), higher_text(*by_best), higher_text(*by_last),
      size_sentences(study));
}

std::string adam_sentence(const DepthStudy& study) {
  const auto by_best = study.compared_at(largest_size, "adam", "md-1.1", best_accuracy);
  const auto by_last = study.compared_at(largest_size, "adam", "md-1.1", last_ten_accuracy);
  if (!by_best) return fmt::format(" At {} blocks there is no Adam to compare with yet.", largest_size);
  return fmt::format(
      " At {} blocks Adam, with its learning rate of 3 blocks, {}: over {} seeds its best test accuracy is {}, and its mean over the last ten epochs {}.",
      largest_size, beside_mirror_descent(*by_best, *by_last), study.group("adam", largest_size)->runs.size(),
      higher_text(*by_best), higher_text(*by_last));
}

std::string collapse_sentence(const DepthStudy& study) {
  std::vector<std::string> collapses;
  for (const TrainingRecord& record : study.records)
    if (const std::optional<std::string> collapse = collapse_of(record))
      collapses.push_back(fmt::format("{} ({})", record.run, *collapse));
  constexpr auto theirs = "in P1 one of ten did, of ℓ1.1 mirror descent at 6 blocks";
  if (collapses.empty())
    return fmt::format(" None of the {} trainings collapsed; {}.", study.records.size(), theirs);
  return fmt::format(" {} of the {} trainings collapsed: {}; {}.", collapses.size(), study.records.size(),
                     fmt::join(collapses, ", "), theirs);
}

// Both optimizers of P1's pictures, with at least two trainings each.
std::optional<std::array<const ImdbGroup*, 2>> pictured_groups(const DepthStudy& study) {
  const ImdbGroup* md = study.group_of_at_least(2, published_weights[0].row, largest_size);
  const ImdbGroup* gd = study.group_of_at_least(2, published_weights[1].row, largest_size);
  return md && gd ? std::optional(std::array{md, gd}) : std::nullopt;
}

std::string selection_sentence(const DepthStudy& study) {
  const auto groups = pictured_groups(study);
  if (!groups) return "";
  const SampleSummary md = (*groups)[0]->numbers(&TrainingRecord::score),
                      gd = (*groups)[1]->numbers(&TrainingRecord::score);
  if (md.count < 2 || gd.count < 2) return " Token selection at 6 blocks is not in the records.";
  const WelchComparison comparison = welch(md, gd);
  return fmt::format(
      " P1's claim that it selects pivotal words better at 6 blocks (a score of {} against {}) {}: the mean score is {:.3f} against {:.3f} (95 % interval of the difference {:.3f} to {:.3f}).",
      published_weights[0].score, published_weights[1].score, claim_word(comparison), md.mean, gd.mean,
      comparison.low, comparison.high);
}

// The verdict on fewer large weights in all three maps.
std::string fewer_verdict(const std::array<int, 3>& signs) {
  const auto fewer = std::ranges::count(signs, -1), more = std::ranges::count(signs, 1);
  if (fewer == 3) return "holds";
  if (more == 3) return "is contradicted";
  if (fewer == 0 && more == 0) return "is not decided";
  constexpr std::array<std::string_view, 3> words{"holds for", "is open for", "is contradicted for"};
  std::vector<std::string> parts;
  for (const int sign : {-1, 1, 0}) {
    std::vector<std::string_view> maps;
    for (std::size_t map = 0; map < signs.size(); ++map)
      if (signs[map] == sign) maps.push_back(map_names[map]);
    if (!maps.empty())
      parts.push_back(
          fmt::format("{} {}", words[static_cast<std::size_t>(sign + 1)], fmt::join(maps, " and ")));
  }
  return fmt::format("{}", fmt::join(parts, " and "));
}

std::string sparsity_sentence(const DepthStudy& study) {
  const auto groups = pictured_groups(study);
  if (!groups) return "";
  std::array<int, 3> signs{};
  std::vector<std::string> counts;
  for (std::size_t map = 0; map < signs.size(); ++map) {
    const SampleSummary md = (*groups)[0]->map_count(map), gd = (*groups)[1]->map_count(map);
    if (md.count < 2 || gd.count < 2) return " Weights at 6 blocks are not in the records.";
    const WelchComparison comparison = welch(md, gd);
    signs[map] = sign_of(comparison);
    counts.push_back(
        fmt::format("{} {:.0f} against {:.0f} (95 % interval of the difference {:.0f} to {:.0f})",
                    map_names[map], md.mean, gd.mean, comparison.low, comparison.high));
  }
  std::string text =
      fmt::format(" P1's claim that it has fewer weights above 0.06 at 6 blocks {}: the mean counts are {}.",
                  fewer_verdict(signs), fmt::join(counts, ", "));
  const std::optional<EqualAccuracy> equal = equal_accuracy(study, largest_size);
  if (!equal) return text;
  std::array<SampleSummary, 2> sparsities{};
  for (const auto& [group, summaries] : equal->groups)
    for (std::size_t i = 0; i < 2; ++i)
      if (group == (*groups)[i]) sparsities[i] = summaries[1];
  if (sparsities[0].count < 2 || sparsities[1].count < 2) return text;
  const WelchComparison comparison = welch(sparsities[0], sparsities[1]);
  constexpr std::array verdicts{"less sparse", "neither more nor less sparse for certain", "sparser"};
  return text +
         fmt::format(
             " At equal training accuracy, {:.1f} %, its K, Q and V are {} by Hoyer's measure: {:.3f} against {:.3f} (95 % interval of the difference {:.3f} to {:.3f}).",
             100 * equal->accuracy, verdicts[static_cast<std::size_t>(sign_of(comparison) + 1)],
             sparsities[0].mean, sparsities[1].mean, comparison.low, comparison.high);
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

std::vector<Finding> weight_findings(const DepthStudy& study) {
  std::vector<Finding> findings;
  for (const PublishedWeights& published : published_weights) {
    const ImdbGroup* group = study.group_of_at_least(1, published.row, largest_size);
    if (!group) continue;
    const auto add = [&](const std::string& what, double theirs, const SampleSummary& ours) {
      if (ours.count > 0)
        findings.push_back(compared_with_one(fmt::format("{}, {}", what, group->name), theirs, ours));
    };
    add("token-selection score", published.score, group->numbers(&TrainingRecord::score));
    for (std::size_t map = 0; map < map_names.size(); ++map)
      add(fmt::format("weights of {} above 0.06", map_names[map]), published.above[map],
          group->map_count(map));
    const std::size_t before = findings.size();
    add("largest weight of K", published.largest_key, group->map_largest(0));
    if (findings.size() > before) findings.back().reading = 0.005;
  }
  return findings;
}

std::vector<Finding> depth_findings(const DepthStudy& study) {
  std::vector<ImdbGroup> deep;
  std::ranges::copy_if(study.groups, std::back_inserter(deep), [](const ImdbGroup& group) {
    return imdb_optimizer(group.config).blocks > 3;  // p1-imdb has those of 3
  });
  std::vector<Finding> findings = difference_findings(study);
  for (std::vector<Finding>& list :
       std::array<std::vector<Finding>, 2>{published_findings(deep), weight_findings(study)})
    std::ranges::move(list, std::back_inserter(findings));
  const auto add = [&](const char* what, const ImdbGroup& group, const SampleSummary& sample) {
    if (sample.count > 0)
      findings.push_back(new_number(fmt::format("{}, {}", what, group.name), sample.mean, error_of(sample)));
  };
  for (const ImdbGroup& group : deep) {
    if (!published_row(group.config)) add("best test accuracy in %", group, group.percent(best_accuracy));
    add("test accuracy in %, mean of the last ten epochs", group, group.percent(last_ten_accuracy));
  }
  return findings;
}

class ImdbDepth final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {
        .id = "p1-imdb-depth",
        .paper = "P1",
        .item = "Table of test accuracies on IMDb, all sizes; attention and weights at size 6",
        .title = "IMDb: does ℓ1.1 mirror descent lead in deeper networks, too?",
        .summary =
            "Reads the records of P1's sentiment transformer on IMDb with 3, 4 and 6 blocks, trained on a GPU by mirror descent with p = 1.1, 2 and 3 and by Adam from independent seeds, and compares test accuracies over all sizes, collapses, token selection and sparsity.",
        .seconds = 0.1,
        .quick_seconds = 0.1,
        .out_of_scope = imdb_depth_records().has_runs() ? "" : "no training has been recorded yet"};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    const RecordTexts deep = imdb_depth_records(), shallow = imdb_records();
    if (!deep.has_runs()) return {};  // out of scope, as info() says
    ExperimentResult result = imdb_depth_result(
        read_records(deep), shallow.has_runs() ? read_records(shallow) : std::vector<TrainingRecord>{});
    if (context.quick()) result.sample.clear();  // there is no smaller version of a record
    context.progress(1);
    return result;
  }
};

}  // namespace

ExperimentResult imdb_depth_result(std::span<const TrainingRecord> deep,
                                   std::span<const TrainingRecord> shallow) {
  const DepthStudy study(deep, shallow);
  ExperimentResult result;
  result.conclusion = claim_sentence(study) + adam_sentence(study) + collapse_sentence(study) +
                      selection_sentence(study) + sparsity_sentence(study);
  result.findings = depth_findings(study);
  for (Figure& figure :
       std::array<Figure, 3>{depth_size_figure(study), depth_curves(study, 6), depth_curves(study, 4)})
    if (!figure.series.empty()) result.figures.push_back(std::move(figure));
  result.tables = {{"sizes", depth_size_table(study, "best epoch", best_accuracy)},
                   {"sizes-last", depth_size_table(study, "last epoch", &TrainingRecord::last_test)},
                   {"differences", depth_difference_table(study)},
                   {"collapses", depth_collapse_table(study)},
                   {"attention", depth_attention_table(study)},
                   {"equal-accuracy", depth_equal_table(study)},
                   {"trainings", imdb_runs_table(study.records)},
                   {"weights", imdb_weights_table(study.records)}};
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

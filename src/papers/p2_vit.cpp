// P2's vision transformer (E2.5): does attention sparsify as its weights grow?
//
// P2 trains a ViT-base on CIFAR-10 for 400 epochs with a fixed learning rate of 3e-3 and shows that attention maps
// become sparser while the norms of attention weights grow, as its theory has it: gradient descent sends |W| to
// infinity, and softmax(X W z) then selects a token. It published neither code nor numbers. Our network is P1's,
// which is smaller: 6 blocks of width 512 instead of 12 of 768, 50 to 150 epochs. This experiment trains nothing; it
// reads the records of docs/results/cifar, where attention was measured on 64 test images after the first and every
// fifth epoch.
//
// For each block of each training, with s the attention of a query, means over queries, heads and images:
//
//   top share    max_t s_t                         1: one token
//   entropy      - sum_t s_t log s_t               0: one token; log T: all alike
//   tokens       the fewest that hold 90 % of s    1 to T
//   |K Q^T|      Frobenius, over all heads
//
// A block does what P2 describes if from the first measurement to the last |K Q^T| grew, the top share rose and the
// entropy fell, and if |K Q^T| and the top share rose together (Spearman's correlation over the epochs is positive).
// Details follow, because first and last measurements of all queries do not show everything: the correlations, where
// the top share peaked and fell again, and what the query of the class token does.
#include "papers/cifar_study.hpp"
#include "papers/experiments.hpp"
#include "papers/rank_correlation.hpp"
#include "papers/recorded_experiment.hpp"
#include "papers/recorded_studies.hpp"
#include "papers/shorthand.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

std::size_t count_blocks(const VitGroup& group, const std::function<bool(const BlockTrend&)>& counts) {
  return static_cast<std::size_t>(std::ranges::count_if(group.trends, counts));
}

std::size_t claimed_blocks(const VitGroup& group) { return count_blocks(group, &BlockTrend::as_claimed); }
std::size_t class_token_blocks(const VitGroup& group) {
  return count_blocks(
      group, [](const BlockTrend& trend) { return trend.sparsified(&AttentionRecord::class_token); });
}

// "all 42", "none of 42", "37 of 42"
std::string blocks_of(std::size_t blocks, std::size_t all) {
  return blocks == all ? fmt::format("all {}", all)
         : blocks == 0 ? fmt::format("none of {}", all)
                       : fmt::format("{} of {}", blocks, all);
}

std::string vit_claim(const std::vector<VitGroup>& groups) {
  constexpr auto claim = "P2's claim that attention sparsifies as weights grow";
  constexpr auto sizes = "P2's ViT-base is larger and trains longer, for 400 epochs";
  if (groups.empty())
    return fmt::format(
        "{} cannot be judged yet: no training has measured attention twice. (The network is P1's; {}.)",
        claim, sizes);
  std::size_t claimed = 0, ended = 0, all = 0;
  std::set<const TrainingRecord*> trainings;
  for (const VitGroup& group : groups) {
    claimed += claimed_blocks(group);
    ended += count_blocks(group, [](const BlockTrend& trend) { return trend.grew() && trend.sparsified(); });
    all += group.trends.size();
    for (const BlockTrend& trend : group.trends) trainings.insert(trend.run);
  }
  return fmt::format(
      "{} {} on P1's vision transformer ({}): in {} blocks of {} K Qᵀ is larger and attention more concentrated after the last epoch than after the first, and in {} the two rose together over the epochs.",
      claim,
      claimed == all ? "holds"
      : ended == 0   ? "does not hold"
                     : "holds in part",
      sizes, blocks_of(ended, all), counted(trainings.size(), "training"), blocks_of(claimed, all));
}

// "-0.28 to 0.96 with Adam (positive in 9 of 12)"
std::string correlations_text(const VitGroup& group) {
  double low = 1, high = -1;
  std::size_t positive = 0;
  for (const BlockTrend& trend : group.trends) {
    if (std::isnan(trend.correlation)) continue;
    low = std::min(low, trend.correlation);
    high = std::max(high, trend.correlation);
    positive += trend.correlation > 0 ? 1 : 0;
  }
  const std::string range = low > high ? "undefined" : fmt::format("{:.2f} to {:.2f}", low, high);
  return fmt::format("{} with {} (positive in {})", range, group.name,
                     blocks_of(positive, group.trends.size()));
}

std::string correlations_detail(const std::vector<VitGroup>& groups) {
  std::vector<std::string> parts;
  for (const VitGroup& group : groups) parts.push_back(correlations_text(group));
  return fmt::format(
      "Rank correlations of the norm of K Qᵀ and the share of attention on the top token, over the epochs of a block (1: they always rise or fall together): {}.",
      fmt::join(parts, ", "));
}

// How the numbers behind the claim went for gradient descent, which P2's theory is about, or else for the first one.
std::string trend_detail(const std::vector<VitGroup>& groups) {
  const auto gradient = std::ranges::find(groups, optimizer_name("md-2"), &VitGroup::name);
  const VitGroup& group = gradient == groups.end() ? groups.front() : *gradient;
  const std::vector<std::int64_t> epochs = group.epochs();
  const AttentionRecord first = group.mean_at(epochs.front()), last = group.mean_at(epochs.back());
  const auto word = [](double from, double to, const char* up, const char* down) {
    return to > from ? up : to < from ? down : "stays";
  };
  return fmt::format(
      "With {}, from epoch {} to epoch {}, the norm of K Qᵀ {} from {:.3g} to {:.3g}, the share of attention on the top token {} from {:.3f} to {:.3f}, and {:.1f} tokens instead of {:.1f} hold 90 % of attention (means over blocks).",
      group.name, epochs.front(), epochs.back(),
      word(first.product_norm, last.product_norm, "grows", "shrinks"), first.product_norm, last.product_norm,
      word(first.all.top_share, last.all.top_share, "rises", "falls"), first.all.top_share,
      last.all.top_share, last.all.tokens_90, first.all.tokens_90);
}

using Queries = AttentionSpreadRecord AttentionRecord::*;

// "with AdamW at 0.228 in epoch 15, and 0.142 at the end", for each optimizer whose mean share lost a tenth of its peak.
std::vector<std::string> peak_texts(const std::vector<VitGroup>& groups, Queries queries) {
  std::vector<std::string> parts;
  for (const VitGroup& group : groups) {
    AttentionRecord peak, last;
    for (const std::int64_t epoch : group.epochs()) {
      last = group.mean_at(epoch);
      if ((last.*queries).top_share > (peak.*queries).top_share) peak = last;
    }
    if ((last.*queries).top_share < kept_of_peak * (peak.*queries).top_share)
      parts.push_back(fmt::format("with {} at {:.3f} in epoch {}, and {:.3f} at the end", group.name,
                                  (peak.*queries).top_share, peak.epoch, (last.*queries).top_share));
  }
  return parts;
}

std::string peak_detail(const std::vector<VitGroup>& groups) {
  const std::vector<std::string> parts = peak_texts(groups, &AttentionRecord::all);
  return parts.empty()
             ? ""
             : fmt::format("The share of the top token peaks and falls again {}.", fmt::join(parts, "; "));
}

// The query of the class token is one of 145, so that means over all of them do not show what it does.
std::string class_token_detail(const std::vector<VitGroup>& groups) {
  std::size_t fallen = 0, sparser = 0, all = 0;
  for (const VitGroup& group : groups) {
    fallen += count_blocks(group, [](const BlockTrend& trend) {
      return trend.last.class_token.top_share < kept_of_peak * trend.class_token_peak;
    });
    sparser += class_token_blocks(group);
    all += group.trends.size();
  }
  const std::vector<std::string> parts = peak_texts(groups, &AttentionRecord::class_token);
  return fmt::format(
      "The class token, from which the answer is read: in {} blocks its attention is more concentrated after the last epoch than after the first, and in {} the share of its top token ends more than a tenth below its peak{}.",
      blocks_of(sparser, all), blocks_of(fallen, all),
      parts.empty() ? "" : fmt::format(" (means over blocks: {})", fmt::join(parts, "; ")));
}

// Nobody has published such numbers.
std::vector<Finding> vit_findings(const std::vector<VitGroup>& groups) {
  std::vector<Finding> findings;
  for (const VitGroup& group : groups) {
    const std::vector<std::int64_t> epochs = group.epochs();
    for (const std::int64_t epoch : {epochs.front(), epochs.back()}) {
      const AttentionRecord mean = group.mean_at(epoch);
      const auto add = [&](const char* what, double number) {
        findings.push_back(new_number(fmt::format("{} after epoch {}, {}", what, epoch, group.name), number));
        findings.back().note = fmt::format("mean over blocks, {}", counted(group.longest.size(), "training"));
      };
      add("share of attention on the top token", mean.all.top_share);
      add("norm of K Qᵀ", mean.product_norm);
    }
    const auto add_share = [&](const char* what, std::size_t blocks) {
      findings.push_back(new_number(fmt::format("{}, {}", what, group.name),
                                    static_cast<double>(blocks) / static_cast<double>(group.trends.size())));
      findings.back().note = fmt::format("{} of {} blocks", blocks, group.trends.size());
    };
    add_share("share of blocks that do what P2 describes", claimed_blocks(group));
    add_share("share of blocks whose class token's attention concentrated", class_token_blocks(group));
  }
  if (findings.empty()) findings.push_back(new_number("trainings whose attention was measured twice", 0));
  return findings;
}

class VisionTransformer final : public RecordedExperiment {
  ExperimentInfo about() const override {
    return {
        .id = "p2-vit",
        .paper = "P2",
        .item = "Figures of attention sparsity in a vision transformer",
        .title = "Does attention sparsify as weights grow?",
        .summary =
            "Reads the records of P1's vision transformer on CIFAR-10, which is smaller than P2's ViT-base, and follows how concentrated its attention is and how large K, Q and K Qᵀ are during training, for gradient descent, mirror descent with and without momentum, Adam and AdamW."};
  }
  std::string study() const override { return "cifar"; }
  RecordTexts texts() const override { return cifar_records(); }
  ExperimentResult result_of(const RecordTexts& records) const override {
    return vit_result(read_records(records));
  }
};

}  // namespace

std::vector<BlockTrend> block_trends(const TrainingRecord& run) {
  std::vector<BlockTrend> trends;
  for (std::int64_t block = 1;; ++block) {
    std::vector<double> norms, shares;
    BlockTrend trend{.run = &run, .first = {}, .last = {}, .class_token_peak = 0};
    for (const AttentionRecord& record : run.attention) {
      if (record.block != block) continue;
      if (norms.empty()) trend.first = record;
      trend.last = record;
      trend.class_token_peak = std::max(trend.class_token_peak, record.class_token.top_share);
      norms.push_back(record.product_norm);
      shares.push_back(record.all.top_share);
    }
    if (norms.size() < 2) return trends;
    trend.correlation = rank_correlation(norms, shares);
    trends.push_back(trend);
  }
}

std::int64_t VitGroup::blocks() const {
  std::int64_t most = 0;
  for (const BlockTrend& trend : trends) most = std::max(most, trend.first.block);
  return most;
}

std::vector<std::int64_t> VitGroup::epochs() const {
  std::vector<std::int64_t> common;
  for (const TrainingRecord* run : longest) {
    std::vector<std::int64_t> measured, both;
    for (const AttentionRecord& record : run->attention)
      if (record.block == 1) measured.push_back(record.epoch);
    if (run == longest.front()) {
      common = std::move(measured);
      continue;
    }
    std::ranges::set_intersection(common, measured, std::back_inserter(both));
    common = std::move(both);
  }
  return common;
}

AttentionRecord VitGroup::mean_at(std::int64_t epoch) const {
  AttentionRecord mean;
  mean.epoch = epoch;
  double count = 0;
  const auto move = [&](double& to, double value) { to += (value - to) / count; };
  for (const TrainingRecord* run : longest)
    for (const AttentionRecord& record : run->attention) {
      if (record.epoch != epoch) continue;
      ++count;
      for (const auto spread : {&AttentionRecord::all, &AttentionRecord::class_token})
        for (const auto member : {&AttentionSpreadRecord::entropy, &AttentionSpreadRecord::top_share,
                                  &AttentionSpreadRecord::tokens_90})
          move(mean.*spread.*member, record.*spread.*member);
      for (const auto norm :
           {&AttentionRecord::key_norm, &AttentionRecord::query_norm, &AttentionRecord::product_norm})
        move(mean.*norm, record.*norm);
    }
  return mean;
}

std::vector<VitGroup> vit_groups(const std::vector<TrainingGroup>& groups) {
  std::vector<VitGroup> list;
  for (const TrainingGroup& group : groups) {
    VitGroup measured{.name = group.name, .longest = {}, .trends = {}};
    std::int64_t last = 0;
    for (const TrainingRecord* run : group.runs) {
      const std::vector<BlockTrend> trends = block_trends(*run);
      if (trends.empty()) continue;
      const std::int64_t end = trends.front().last.epoch;
      if (end > last) measured.longest.clear();
      if (end >= last) measured.longest.push_back(run);
      last = std::max(last, end);
      measured.trends.insert(measured.trends.end(), trends.begin(), trends.end());
    }
    // Means need epochs that all of these trainings have.
    if (measured.epochs().size() >= 2) list.push_back(std::move(measured));
  }
  return list;
}

ExperimentResult vit_result(std::span<const TrainingRecord> records) {
  const std::vector<TrainingGroup> groups = training_groups(records);
  const std::vector<VitGroup> measured = vit_groups(with_unfinished(groups));
  ExperimentResult result;
  result.conclusion = vit_claim(measured);
  if (!measured.empty())
    for (std::string& detail : std::array{trend_detail(measured), correlations_detail(measured),
                                          peak_detail(measured), class_token_detail(measured)})
      if (!detail.empty()) result.details.push_back(std::move(detail));
  result.findings = vit_findings(measured);
  result.figures = vit_figures(measured);
  if (Table blocks = vit_block_table(measured); !blocks.rows.empty())
    result.tables.push_back({"blocks", std::move(blocks)});
  std::size_t trainings = 0;
  for (const TrainingGroup& group : groups) trainings += group.runs.size() + group.others.size();
  result.sample = fmt::format("records of {} on {}, {}", counted(trainings, "main training"),
                              distinct_text(records, &TrainingRecord::device),
                              distinct_text(records, &TrainingRecord::date));
  result.remarks = {
      cifar_records_remark(records),
      fmt::format(
          "P2 trains a ViT-base (12 blocks of width 768) for 400 epochs with a learning rate of 3e-3 and published neither code nor numbers, so that there is a claim to compare with and no number. Ours has 6 blocks of width 512, 145 tokens and at most {} epochs, and the learning rate of gradient descent was chosen on held-out images.",
          main_epochs(records)),
      "Attention is measured on 64 test images from all classes, the first time after the first epoch. The means of the figures are over blocks and trainings, without those that were stopped before others of the same optimizer; the table has every block, and the attention of the class token, which the answer is read from."};
  for (std::string& remark : cifar_left_out_remarks(groups)) result.remarks.push_back(std::move(remark));
  result.configuration = cifar_configuration(records, groups);
  return result;
}

ExperimentPointer make_p2_vit() { return std::make_unique<VisionTransformer>(); }

}  // namespace attmirror

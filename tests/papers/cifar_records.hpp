// Made-up records of a study like docs/results/cifar, whose outcome is known.
#pragma once

#include "papers/cifar_study.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace attmirror::test {

// How a training's attention goes, from the first measurement to the last.
struct AttentionTrend {
  double share_from = 0.05, share_to = 0.2;
  double norm_from = 2, norm_to = 10;
};

// Records that are added one by one.
struct CifarRecords {
  std::vector<TrainingRecord> list;

  // Seeds 1, 2, ..., whose accuracies climb to `accuracy` minus and plus 0.001.
  void train(const std::string& config, double lr, double accuracy, double sparsity, std::int64_t seeds = 2,
             const AttentionTrend& trend = {}, std::int64_t epochs = 150) {
    for (std::int64_t seed = 1; seed <= seeds; ++seed) {
      TrainingRecord record;
      record.run = fmt::format("{}-s{}", config, seed);
      record.config = config;
      record.seed = seed;
      record.lr = lr;
      record.data = "cifar10";
      record.epochs = epochs;
      const double move = seeds == 1 ? 0 : seed == 1 ? -0.001 : 0.001;
      for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
        EpochRecord& row = record.curve.emplace_back();
        row.epoch = epoch;
        // Flat from epoch 140 on; half of the way is done after ten epochs.
        const double part = epoch >= 140 ? 1 : 1 - std::exp2(-static_cast<double>(epoch) / 10);
        row.test_accuracy = 0.1 + (accuracy + move - 0.1) * part;
      }
      record.best_test = record.last_test = record.last_ten_test = record.curve.back().test_accuracy;
      record.best_epoch = epochs;
      for (std::size_t m = 0; m < 3; ++m)
        record.maps[m] = {
            .above = 1000, .share = 0.3 - sparsity / 4 + move, .largest = 0.4, .sparsity = sparsity + move};
      for (const char map : {'K', 'Q', 'V'})
        for (int bin = -20; bin <= 20; ++bin)
          record.histogram.push_back(
              {map, 0.01 * bin,
               1 + static_cast<std::int64_t>(1000 * std::exp(-std::abs(bin) * (sparsity + move)))});
      for (std::int64_t epoch = 5; epoch <= epochs; epoch += 5)
        for (std::int64_t block = 1; block <= 6; ++block)
          record.attention.push_back(measured(epoch, block, static_cast<double>(epoch - 5) / 145, trend));
      record.seconds = 300;
      record.device = "a made-up GPU";
      record.date = "2026-01-02";
      record.commit = "0123abc";
      list.push_back(std::move(record));
    }
  }

  void tune(const std::string& config, double lr, double accuracy) {
    TrainingRecord record;
    record.run = fmt::format("{}-s100-lr{:g}", config, lr);
    record.config = config;
    record.role = TrainingRole::tuning;
    record.seed = 100;
    record.lr = lr;
    record.epochs = 1;
    record.curve.emplace_back().epoch = 1;
    record.curve.back().validation_accuracy = record.best_validation = accuracy;
    list.push_back(std::move(record));
  }

  // A main training that was stopped after so many epochs.
  void stop(const std::string& run, std::int64_t epochs) {
    const auto found = std::ranges::find(list, run, &TrainingRecord::run);
    found->status = RecordStatus::unfinished;
    found->epochs = epochs;
    found->curve.resize(static_cast<std::size_t>(epochs));
    found->best_test = found->last_test = found->last_ten_test = found->curve.back().test_accuracy;
    found->best_epoch = epochs;
    std::erase_if(found->attention, [&](const AttentionRecord& record) { return record.epoch > epochs; });
    found->histogram.clear();
  }

 private:
  static AttentionRecord measured(std::int64_t epoch, std::int64_t block, double part,
                                  const AttentionTrend& trend) {
    AttentionRecord record{.epoch = epoch, .block = block, .all = {}, .class_token = {}};
    const double share = trend.share_from + (trend.share_to - trend.share_from) * part;
    record.all = {.entropy = -std::log(share), .top_share = share, .tokens_90 = 1 / share};
    record.class_token = {.entropy = -std::log(share) / 2, .top_share = share, .tokens_90 = 0.5 / share};
    record.product_norm = trend.norm_from + (trend.norm_to - trend.norm_from) * part;
    record.key_norm = record.query_norm = std::sqrt(record.product_norm) + 1;
    return record;
  }
};

// As in docs/results/cifar/plan.toml; mirror descent ends at the accuracy given, and Adam at 80.5 %.
inline CifarRecords made_up_cifar_records(double mirror = 0.80, double mirror_sparsity = 0.4) {
  CifarRecords records;
  records.train("md-1.1", 0.05, mirror, mirror_sparsity);
  records.train("adam", 1e-4, 0.805, 0.2);
  records.train("md-2", 0.1, 0.72, 0.2);
  records.train("adamw", 3e-4, 0.86, 0.2, 1);
  records.train("md-momentum-1.5", 0.1, 0.85, 0.25, 1);
  for (const double lr : {0.01, 0.03, 0.1, 0.3}) records.tune("md-2", lr, lr == 0.1 ? 0.5 : 0.4);
  return records;
}

}  // namespace attmirror::test

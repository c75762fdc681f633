// Made-up records of a study like docs/results/imdb_clean, whose outcome is known.
#pragma once

#include "papers/imdb_clean.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace attmirror::test {

inline constexpr std::int64_t clean_parameters = 1'000'000;

// Records that are added one by one. Five seeds scatter by 0.0016 about their mean, so that Welch's 95 % interval of a
// difference of two optimizers is 0.23 points to either side.
struct CleanRecords {
  std::vector<TrainingRecord> list;

  // A tuning run whose accuracies on held-out reviews are those, epoch by epoch.
  TrainingRecord& tune(const std::string& config, double lr, const std::vector<double>& accuracies,
                       RecordStatus status = RecordStatus::completed) {
    TrainingRecord record;
    record.run = fmt::format("{}-s100-lr{:g}", config, lr);
    record.config = config;
    record.role = TrainingRole::tuning;
    record.seed = 100;
    record.lr = lr;
    record.settings = fmt::format("optimizer.lr={:g} model.embedding_deviation=0.02", lr);
    record.status = status;
    record.epochs = std::ssize(accuracies);
    for (const double accuracy : accuracies) {
      const std::int64_t epoch = std::ssize(record.curve) + 1;
      record.curve.emplace_back().epoch = epoch;
      record.curve.back().validation_accuracy = accuracy;
      record.best_validation = std::max(record.best_validation.value_or(0), accuracy);
    }
    list.push_back(std::move(record));
    return list.back();
  }

  // Trainings from seeds 1, 2, ... with that learning rate.
  void train(const std::string& config, double lr, double test, double sparsity, std::int64_t state_bytes,
             TrainingRole role = TrainingRole::main, std::int64_t seeds = 5) {
    constexpr std::array scatter{-0.002, -0.001, 0.0, 0.001, 0.002};
    for (std::int64_t seed = 1; seed <= seeds; ++seed) {
      TrainingRecord record;
      record.run = fmt::format("{}-{}-s{}", config, to_string(role), seed);
      record.config = config;
      record.role = role;
      record.seed = seed;
      record.lr = lr;
      record.settings = fmt::format("optimizer.lr={:g} model.embedding_deviation=0.02", lr);
      record.data = role == TrainingRole::transfer ? "sst2" : "imdb";
      record.state_bytes = state_bytes;
      record.epochs = role == TrainingRole::longer ? 20 : 6;
      for (std::int64_t epoch = 1; epoch <= record.epochs; ++epoch) record.curve.emplace_back().epoch = epoch;
      const double move = scatter[static_cast<std::size_t>(seed - 1)];
      record.best_test = record.last_test = record.last_ten_test = test + move;
      record.curve.back().test_accuracy = record.last_test;
      record.best_epoch = record.epochs;
      record.score = 0.5 + move;
      for (MapRecord& map : record.maps) {
        map.above = 1000;
        map.share = 0.1 * (1 - sparsity) + move;
        map.largest = 0.3;
        map.sparsity = sparsity + move;
      }
      record.seconds = 40;
      record.device = "a made-up GPU";
      record.date = "2026-01-02";
      record.commit = "0123abc";
      list.push_back(std::move(record));
    }
  }

  // Both: three learning rates, of which the middle one wins, then five seeds with it.
  void add(const std::string& config, double lr, double test, double sparsity, std::int64_t state_bytes) {
    tune(config, lr / 3, {0.6, 0.7, test - 0.02});
    tune(config, lr, {0.7, test - 0.01, test});
    tune(config, 3 * lr, {0.7, test - 0.02, test - 0.01});
    train(config, lr, test, sparsity, state_bytes);
  }
};

// All families; the best mirror descent is the normalized one with momentum.
inline CleanRecords made_up_clean_records(double best_mirror, double mirror_sparsity = 0.5) {
  CleanRecords records;
  records.add("adamw", 3e-4, 0.87, 0.17, 8 * clean_parameters);
  records.add("adam", 3e-4, 0.865, 0.17, 8 * clean_parameters);
  records.add("muon", 2e-3, 0.88, 0.16, 5 * clean_parameters);
  records.add("signum", 1e-4, 0.86, 0.18, 4 * clean_parameters);
  records.add("sgd-momentum", 1e-2, 0.85, 0.19, 4 * clean_parameters);
  records.add("md-1.1", 0.08, 0.83, 0.4, 0);
  records.add("md-momentum-1.1", 0.008, 0.831, 0.4, 4 * clean_parameters);
  records.add("md-normalized-1.1", 0.002, 0.832, 0.4, 0);
  records.add("md-two-1.1-2", 0.1, 0.833, 0.4, 4 * clean_parameters);
  records.add("md-normalized-momentum-1.2", 0.005, best_mirror, mirror_sparsity, 4 * clean_parameters);
  records.tune("md-1.5", 0.1, {0.6, 0.7, 0.8});
  return records;
}

inline std::vector<SpeedRecord> made_up_speeds() {
  return {{"md", 3, clean_parameters},
          {"md-momentum", 3.25, clean_parameters},
          {"md-normalized-momentum", 3.5, clean_parameters},
          {"adamw", 3.25, clean_parameters},
          {"muon-adamw", 4.5, clean_parameters}};
}

}  // namespace attmirror::test

// Made-up records of studies like docs/results/imdb_depth and docs/results/imdb, whose outcome is known.
#pragma once

#include "papers/imdb_depth.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace attmirror::test {

// Seeds scatter by 0, +0.1 and -0.1 points about their mean.
struct DepthRecords {
  std::vector<TrainingRecord> deep, shallow;

  // Trainings from seeds 1, 2, ... of four epochs: training accuracies 80, 90, 97 and 99.6 %, sparsity from 0.1 in
  // steps of `sparser`; large weights and the largest grow evenly to what they are at the end.
  void add(const char* row, int blocks, double test, std::int64_t seeds, double score = 0.4,
           std::int64_t above = 10'000, double sparser = 0.05) {
    constexpr std::array scatter{0.0, 0.001, -0.001, 0.0, 0.0};
    constexpr std::array training{0.8, 0.9, 0.97, 0.996};
    constexpr std::array climb{-0.1, -0.05, 0.0, -0.01};  // of test accuracies: the third is the best
    for (std::int64_t seed = 1; seed <= seeds; ++seed) {
      const double move = scatter[static_cast<std::size_t>(seed - 1)];
      TrainingRecord record;
      record.config = depth_config(row, blocks);
      record.run = fmt::format("{}-s{}", record.config, seed);
      record.seed = seed;
      record.lr = 0.001;
      record.status = RecordStatus::reached_accuracy;
      record.epochs = std::ssize(training);
      for (std::size_t e = 0; e < training.size(); ++e) {
        EpochRecord epoch;
        epoch.epoch = static_cast<std::int64_t>(e) + 1;
        epoch.train_accuracy = training[e];
        epoch.test_accuracy = test + move + climb[e];
        epoch.sparsity.fill(0.1 + sparser * static_cast<double>(e) + move);
        const double part = static_cast<double>(e + 1) / static_cast<double>(training.size());
        epoch.share.fill((static_cast<double>(above) + 1e5 * move) * part / (384 * 384 * blocks));
        epoch.largest.fill((0.3 + move) * part);
        record.curve.push_back(epoch);
      }
      record.best_test = test + move;
      record.best_epoch = 3;
      record.last_test = test + move - 0.01;
      record.last_ten_test = test + move - 0.04;
      record.epochs_to_stop = record.epochs;
      record.train_accuracy = training.back();
      record.score = score + 10 * move;
      record.word_score = score + 10 * move;
      for (MapRecord& map : record.maps) {
        map.above = above + static_cast<std::int64_t>(1e5 * move);
        map.share = 0.05;
        map.largest = 0.3 + move;
        map.sparsity = record.curve.back().sparsity[0];
      }
      record.seconds = 100;
      record.device = "a made-up GPU";
      record.date = "2026-01-02";
      record.commit = "0123abc";
      (blocks == 3 ? shallow : deep).push_back(std::move(record));
    }
  }

  // The score of each sentence, published way and by words, for one seed after the other; a negative one is dropped.
  void score_sentences(const char* row, int blocks, const std::vector<std::vector<double>>& seeds) {
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      TrainingRecord& record = run(fmt::format("{}-s{}", depth_config(row, blocks), i + 1));
      for (const double score : seeds[i]) {
        SentenceRecord& sentence = record.sentences.emplace_back();
        sentence.sentence = std::ssize(record.sentences);
        sentence.pivotal = fmt::format("word{}", sentence.sentence);
        if (score >= 0) sentence.score = sentence.word_score = score;
      }
    }
  }

  // Scores on reviews, scattering as seeds do.
  void score_reviews(const char* row, int blocks, double score, double lift, double top) {
    for (std::vector<TrainingRecord>* list : {&deep, &shallow})
      for (TrainingRecord& record : *list)
        if (record.config == depth_config(row, blocks)) {
          const double move = *record.word_score - 0.4;
          record.review_score = score + move / 10;
          record.review_lift = lift + move;
          record.review_top = top + move / 10;
        }
  }

  TrainingRecord& run(std::string_view id) {
    for (std::vector<TrainingRecord>* list : {&deep, &shallow})
      for (TrainingRecord& record : *list)
        if (record.run == id) return record;
    throw std::runtime_error("no training " + std::string(id));
  }

  ExperimentResult result() const { return imdb_depth_result(deep, shallow); }
};

// As planned: l1.1 leads by `lead` at 4 and 6 blocks, and by 1.2 points at 3.
inline DepthRecords made_up_depth_records(double lead) {
  DepthRecords records;
  records.add("md-1.1", 3, 0.83, 5);
  records.add("md-2", 3, 0.818, 5);
  records.add("md-3", 3, 0.825, 3);
  records.add("adam", 3, 0.852, 3);
  records.add("md-1.1", 4, 0.81 + lead, 2);
  records.add("md-2", 4, 0.81, 2);
  records.add("md-3", 4, 0.824, 2);
  records.add("md-1.1", 6, 0.81 + lead, 3, 0.44, 18'200, 0.08);
  records.add("md-2", 6, 0.81, 3, 0.31, 27'200, 0.05);
  records.add("md-3", 6, 0.806, 2);
  records.add("adam", 6, 0.85, 2);
  return records;
}

inline const Table& depth_table(const ExperimentResult& result, std::string_view id) {
  const auto found = std::ranges::find(result.tables, id, &NamedTable::id);
  if (found == result.tables.end()) throw std::runtime_error("no table " + std::string(id));
  return found->table;
}

// The conclusion and what it rests on, as one text.
inline std::string whole_conclusion(const DepthRecords& records) {
  const ExperimentResult result = records.result();
  std::string text = result.conclusion;
  for (const std::string& detail : result.details) text += "\n" + detail;
  return text;
}

inline void expect_conclusion(const DepthRecords& records, std::string_view part) {
  const std::string text = whole_conclusion(records);
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

}  // namespace attmirror::test

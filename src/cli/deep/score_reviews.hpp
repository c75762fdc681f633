// The part of `attmirror deep score` that reads reviews: its options, the list of words, the numbers.
#pragma once

#include "base/json.hpp"
#include "cli/deep/model_files.hpp"
#include "cli/options.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace attmirror::cli {

struct ReviewOptions {
  std::filesystem::path reviews;            // empty: none are asked for
  std::filesystem::path words, words_from;  // one of them
  std::filesystem::path list;               // where the list of words_from is written; empty: nowhere
  SentimentRule rule;
  std::int64_t limit = 1000;
};

void add_review_options(CLI::App& app, ReviewOptions& options);

// Refuses what does not fit together, before anything is read.
void check_review_options(const CLI::App& app, const ReviewOptions& options);

deep::ReviewStudy score_reviews(const TextModels& loaded, const ReviewOptions& options,
                                const CommonOptions& common);

Json mean_json(const deep::ScoreMean& mean);
Json pairs_json(std::span<const deep::ScorePair> pairs, const std::vector<std::string>& networks,
                const char* words_way);
Json reviews_json(const deep::ReviewStudy& study, const ReviewOptions& options);

}  // namespace attmirror::cli

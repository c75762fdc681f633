// Numbers that P1 published of its sentiment transformer beside ours, for p1-imdb (3 blocks) and p1-imdb-depth (4 and
// 6). Internal.
//
// A mean of ours and a published one agree if Welch's 95 % interval of their difference contains 0.
#pragma once

#include "papers/training_groups.hpp"
#include <attmirror/papers/finding.hpp>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// As P1 prints them, one row for each p and size.
struct PublishedRow {
  const char* config;
  SampleSummary best, last;  // test accuracy in percent
  double epochs;             // to 99.5 % training accuracy
  // Of the epochs; 0: not published. P1 has it where a training took all of its 1000.
  double epochs_deviation = 0;
  const char* remark = "";  // what a reader must know of the published numbers
};
// The row of a configuration; null: none is published.
const PublishedRow* published_row(std::string_view config);

// What P1 shows by one network each, at 6 blocks: printed numbers, but for the largest weight.
struct PublishedPicture {
  const char* config;
  double score;                 // of token selection
  std::array<double, 3> above;  // weights of K, Q and V above 0.06 in size, over all blocks
  double largest_key;           // the largest weight of K, read off a figure to two digits
  static constexpr double largest_reading = 0.005;
};
// Null: none is published.
const PublishedPicture* published_picture(std::string_view config);

// Two samples of trainings: they agree if Welch's interval contains 0, which is a tolerance of so many standard errors.
Finding compared(std::string quantity, const SampleSummary& published, const SampleSummary& ours);
// A difference of ours and a published one, each of two means: its variance is the sum of all four, with the degrees of
// freedom of Welch and Satterthwaite.
Finding compared_differences(std::string quantity, const WelchComparison& published,
                             const WelchComparison& ours);
// A published number of a single training: one more draw from what ours are drawn from, if it agrees. It is in the
// interval of Student's t for such a draw, whose standard error is that of our mean and our deviation together.
Finding compared_with_one(std::string quantity, double published, const SampleSummary& ours);

// Best and last accuracies and epochs of the groups that P1 has, in the order of the groups.
std::vector<Finding> published_findings(const std::vector<TrainingGroup>& groups);

}  // namespace attmirror

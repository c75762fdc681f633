#include "papers/imdb_published.hpp"

#include "papers/shorthand.hpp"
#include "papers/student_t.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

// Deviations are those of ten trials, nine for p = 3 at 3 blocks.
constexpr PublishedRow published_rows[] = {
    {"md-1.1", {83.47, 0.09, 10}, {82.57, 0.19, 10}, 72.1},
    {"md-2", {81.66, 0.09, 10}, {80.61, 0.32, 10}, 79.9},
    {"md-3", {82.57, 0.10, 9}, {81.33, 0.23, 9}, 161.7},
    {"md-1.1-4blocks", {83.36, 0.13, 10}, {82.93, 0.33, 10}, 87.3},
    {"md-2-4blocks", {81.05, 0.17, 10}, {79.97, 0.46, 10}, 88.0},
    {"md-3-4blocks", {82.40, 0.12, 10}, {80.91, 0.37, 10}, 134.6},
    {"md-1.1-6blocks",
     {82.57, 0.15, 10},
     {78.07, 9.87, 10},
     150.1,
     298.6,
     "one of the ten published trainings collapsed and took all 1000 epochs"},
    {"md-2-6blocks", {81.03, 0.18, 10}, {80.11, 0.29, 10}, 57.9},
    {"md-3-6blocks", {80.65, 0.13, 10}, {79.47, 0.32, 10}, 95.2},
};

constexpr PublishedPicture published_pictures[] = {
    {"md-1.1-6blocks", 0.4387, {18206, 13964, 7643}, 0.70},
    {"md-2-6blocks", 0.3122, {27224, 14654, 10127}, 0.26},
};

// A sample that cannot tell a point of accuracy, about what P1's optimizers differ by, does not decide.
constexpr double point_resolution = 1;

// Where trainings of ours and of P1 are compared, the standard error of both together must tell `wanted`: P1's mean of
// ten trainings of which one collapsed agrees with nearly everything. Finding::resolution is about our error alone.
double resolution_by_both(const Finding& finding, double wanted) {
  return wanted * finding.standard_error / std::hypot(finding.standard_error, finding.published_error);
}

// A training that stopped at the limit has no number of epochs.
Finding epochs_finding(const TrainingGroup& group, const PublishedRow& row) {
  const SampleSummary ours = group.counts(&TrainingRecord::epochs_to_stop);
  const std::string quantity = fmt::format("epochs to 99.5 % training accuracy, {}", group.name);
  if (ours.count == std::ssize(group.runs) && ours.count >= 2) {
    Finding finding{
        .quantity = quantity, .published = row.epochs, .source = ReferenceSource::printed, .ours = ours.mean};
    finding.standard_error = error_of(ours);
    if (row.epochs_deviation > 0) {
      const SampleSummary published{row.epochs, row.epochs_deviation, row.best.count};
      finding.published_error = error_of(published);
      finding.tolerance = Tolerance::standard_errors(welch(ours, published).factor);
      finding.resolution = resolution_by_both(finding, row.epochs / 2);
    } else {
      finding.tolerance =
          Tolerance::standard_errors(student_quantile(0.95, static_cast<double>(ours.count - 1)));
    }
    return finding;
  }
  Finding finding = new_number(quantity, ours.count > 0 ? ours.mean : NAN);
  finding.note = fmt::format("published: {}; {} of {} got there before their end", row.epochs, ours.count,
                             counted(group.runs.size(), "training"));
  return finding;
}

// P1's last epoch is the one that reaches 99.5 %: of trainings that stopped at the limit it is another.
Finding last_epoch_finding(const TrainingGroup& group, const SampleSummary& published) {
  const std::string quantity = fmt::format("test accuracy of the last epoch, {}, %", group.name);
  const SampleSummary ours = group.percent(&TrainingRecord::last_test);
  const std::int64_t reached = group.counts(&TrainingRecord::epochs_to_stop).count;
  if (reached == std::ssize(group.runs)) return compared(quantity, published, ours);
  Finding finding = new_number(quantity, ours.mean, error_of(ours));
  finding.note = fmt::format("published: {} at 99.5 % training accuracy, where {} of {} got before their end",
                             published.mean, reached, counted(group.runs.size(), "training"));
  return finding;
}

void add_note(Finding& finding, const char* remark) {
  if (*remark) finding.note += fmt::format("{}{}", finding.note.empty() ? "" : "; ", remark);
}

}  // namespace

const PublishedRow* published_row(std::string_view config) {
  const auto found = std::ranges::find(published_rows, config, &PublishedRow::config);
  return found == std::ranges::end(published_rows) ? nullptr : found;
}

const PublishedPicture* published_picture(std::string_view config) {
  const auto found = std::ranges::find(published_pictures, config, &PublishedPicture::config);
  return found == std::ranges::end(published_pictures) ? nullptr : found;
}

Finding compared(std::string quantity, const SampleSummary& published, const SampleSummary& ours) {
  if (ours.count < 2) {
    Finding finding = new_number(std::move(quantity), ours.count == 1 ? ours.mean : NAN);
    finding.note = fmt::format("published: {}; {} cannot be compared", published.mean,
                               counted(static_cast<std::uint64_t>(ours.count), "training"));
    return finding;
  }
  const WelchComparison comparison = welch(ours, published);
  Finding finding{.quantity = std::move(quantity),
                  .published = published.mean,
                  .source = ReferenceSource::printed,
                  .ours = ours.mean};
  finding.standard_error = error_of(ours);
  finding.published_error = error_of(published);
  finding.tolerance = Tolerance::standard_errors(comparison.factor);
  finding.resolution = resolution_by_both(finding, point_resolution);
  finding.note = fmt::format("Welch: {}", difference_text(comparison));
  return finding;
}

Finding compared_differences(std::string quantity, const WelchComparison& published,
                             const WelchComparison& ours) {
  Finding finding{.quantity = std::move(quantity),
                  .published = published.difference,
                  .source = ReferenceSource::printed,
                  .ours = ours.difference};
  finding.standard_error = ours.standard_error;
  finding.published_error = published.standard_error;
  const double v1 = ours.standard_error * ours.standard_error,
               v2 = published.standard_error * published.standard_error;
  const double freedom = (v1 + v2) * (v1 + v2) / (v1 * v1 / ours.freedom + v2 * v2 / published.freedom);
  finding.tolerance = Tolerance::standard_errors(student_quantile(0.95, freedom));
  finding.resolution = resolution_by_both(finding, point_resolution);
  finding.note = fmt::format("ours: {}", difference_text(ours));
  return finding;
}

Finding compared_with_one(std::string quantity, double published, const SampleSummary& ours) {
  if (ours.count < 2) {
    Finding finding = new_number(std::move(quantity), ours.count == 1 ? ours.mean : NAN);
    finding.note = fmt::format("published: {}; {} cannot be compared", published,
                               counted(static_cast<std::uint64_t>(ours.count), "training"));
    return finding;
  }
  Finding finding{.quantity = std::move(quantity),
                  .published = published,
                  .source = ReferenceSource::printed,
                  .ours = ours.mean};
  finding.standard_error = error_of(ours);
  // The standard error of the draw is sqrt(n + 1) times that of our mean. By it, the sample must tell half of the
  // published number.
  const double draw = std::sqrt(static_cast<double>(ours.count + 1));
  finding.tolerance =
      Tolerance::standard_errors(draw * student_quantile(0.95, static_cast<double>(ours.count - 1)));
  finding.resolution = std::abs(published) / 2 / draw;
  finding.note = "published of a single training, which is taken to scatter as ours do";
  return finding;
}

std::vector<Finding> published_findings(const std::vector<TrainingGroup>& groups) {
  std::vector<Finding> findings;
  for (const TrainingGroup& group : groups) {
    const PublishedRow* row = published_row(group.config);
    if (!row) continue;
    findings.push_back(compared(fmt::format("best test accuracy, {}, %", group.name), row->best,
                                group.percent(&TrainingRecord::best_test)));
    findings.push_back(last_epoch_finding(group, row->last));
    add_note(findings.back(), row->remark);
    findings.push_back(epochs_finding(group, *row));
    add_note(findings.back(), row->remark);
  }
  return findings;
}

}  // namespace attmirror

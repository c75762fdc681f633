#include "papers/shorthand.hpp"

#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

Finding to_decimals(std::string quantity, double published, double ours, int decimals,
                    ReferenceSource source) {
  Finding finding{.quantity = std::move(quantity), .published = published, .source = source, .ours = ours};
  // A little more than half a unit of the last digit: the published number may have been rounded from the middle.
  finding.tolerance = Tolerance::absolute(0.51 * std::pow(10.0, -decimals));
  const double size = std::abs(published);
  finding.digits = std::max(2, decimals + (size >= 1 ? 1 + static_cast<int>(std::log10(size)) : 0));
  return finding;
}

Finding to_errors(std::string quantity, double published, const Mean& ours, ReferenceSource source,
                  double published_error) {
  Finding finding{
      .quantity = std::move(quantity), .published = published, .source = source, .ours = ours.value};
  finding.standard_error = ours.error;
  finding.published_error = published_error;
  finding.tolerance = Tolerance::standard_errors(3);
  if (ours.is_share) finding.resolution = share_resolution;
  return finding;
}

Finding at_least(std::string quantity, double bound, double ours) {
  Finding finding{
      .quantity = std::move(quantity), .published = bound, .source = ReferenceSource::theory, .ours = ours};
  finding.tolerance = Tolerance::at_least();
  return finding;
}

Finding at_most(std::string quantity, double bound, double ours) {
  Finding finding{
      .quantity = std::move(quantity), .published = bound, .source = ReferenceSource::theory, .ours = ours};
  finding.tolerance = Tolerance::at_most();
  return finding;
}

Finding same_text(std::string quantity, std::string published, std::string ours, ReferenceSource source) {
  Finding finding{.quantity = std::move(quantity), .source = source};
  finding.published_text = std::move(published);
  finding.ours_text = std::move(ours);
  return finding;
}

Finding new_number(std::string quantity, double ours, double standard_error) {
  Finding finding{.quantity = std::move(quantity), .ours = ours};
  finding.standard_error = standard_error;
  return finding;
}

Vector vector_of(std::initializer_list<double> values) {
  Vector result(static_cast<std::ptrdiff_t>(values.size()));
  std::ranges::copy(values, result.data());
  return result;
}

std::vector<std::int64_t> log_steps(std::int64_t last, int per_decade, std::vector<std::int64_t> besides) {
  std::vector<std::int64_t> steps = std::move(besides);
  const RecordSchedule schedule = RecordSchedule::log_spaced(per_decade);
  for (std::int64_t step = schedule.next(0); step >= 0 && step <= last; step = schedule.next(step + 1))
    steps.push_back(step);
  steps.push_back(last);
  std::ranges::sort(steps);
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

const Record& record_at(const DescentRun& run, std::int64_t step) {
  const auto found = std::ranges::find(run.records, step, &Record::step);
  if (found == run.records.end()) throw bad_input(fmt::format("the run has no record of step {}", step));
  return *found;
}

double mean_probability(const Attention& model, const Parameters& parameters, std::ptrdiff_t token) {
  const std::vector<Vector> all = attention_probabilities(model, parameters);
  double sum = 0;
  for (const Vector& s : all) sum += s(token);
  return sum / static_cast<double>(all.size());
}

Series prompt_path(std::string name, const DescentRun& run, std::int64_t last) {
  Series path{.name = std::move(name)};
  for (const Record& record : run.records) {
    if (record.step > last) break;
    path.x.push_back(record.parameters.p(0));
    path.y.push_back(record.parameters.p(1));
    path.labels.push_back(fmt::format("step {}", record.step));
  }
  return path;
}

void lead_with(Figure& figure, const std::string& outcome) {
  figure.caption = figure.caption.empty() ? outcome : outcome + " " + figure.caption;
}

std::string counted(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string list_text(const std::vector<double>& values) {
  return fmt::format("{:g}", fmt::join(values, ", "));
}

}  // namespace attmirror

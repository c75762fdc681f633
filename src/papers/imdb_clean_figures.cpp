// The trainings of docs/results/imdb_clean in figures: accuracy on held-out reviews by epoch, by p, by learning
// rate; on the test set by memory.
#include "base/numbers.hpp"
#include "papers/imdb_clean.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

// What is compared is at the top; the climb from 50 % would take most of the height.
constexpr double shown_points = 20;

// The name of an optimizer at the beginning of a sentence.
std::string with_capital(std::string text) {
  if (!text.empty() && text.front() >= 'a' && text.front() <= 'z')
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text;
}

void frame_top(Figure& figure) {
  double lowest = 100, highest = 0;
  for (const Series& series : figure.series)
    for (const double y : series.y) {
      lowest = std::min(lowest, y);
      highest = std::max(highest, y);
    }
  figure.y.range = {std::floor(std::max(lowest, highest - shown_points)), std::ceil(highest)};
}

// The most accurate winner among mirror descents that have a single p.
const ImdbSearch* best_of_one_p(const CleanStudy& study) {
  const ImdbSearch* best = nullptr;
  for (const ImdbSearch& search : study.searches)
    if (search.optimizer.variant_and_p() && search.winner && (!best || search.accuracy() > best->accuracy()))
      best = &search;
  return best;
}

}  // namespace

Figure clean_curves(const CleanStudy& study) {
  Figure figure{.id = "curves", .title = "Accuracy on held-out reviews by epoch, with the settings that won"};
  figure.x = {.label = "epoch", .whole = true};
  figure.y.label = "accuracy on held-out reviews, %";
  figure.description = "Accuracy on held-out reviews against epochs, a curve for each optimizer:";
  double highest = -1;
  std::string leader;
  for (const TrainingGroup& group : study.groups) {
    const ImdbSearch* search = search_of(study.searches, group.config);
    if (!search || !search->winner) continue;
    Series series{.name = group.name};
    series.mark = Series::Mark::both;
    series.dash = search->optimizer.is_mirror_descent() ? Series::Dash::solid : Series::Dash::dashed;
    for (const EpochRecord& epoch : search->winner->curve)
      if (epoch.validation_accuracy) {
        series.x.push_back(static_cast<double>(epoch.epoch));
        series.y.push_back(100 * *epoch.validation_accuracy);
      }
    figure.description +=
        fmt::format(" {} has {:.2f} % after epoch {:.0f} and {:.2f} % after epoch {:.0f};", group.name,
                    series.y.front(), series.x.front(), series.y.back(), series.x.back());
    if (series.y.back() > highest) {
      highest = series.y.back();
      leader = fmt::format("{} ends highest, at {:.2f} %.", with_capital(group.name), highest);
    }
    figure.series.push_back(std::move(series));
  }
  if (figure.series.empty()) return figure;
  figure.description.back() = '.';
  frame_top(figure);
  figure.caption = fmt::format(
      "{} A curve is the tuning run that won, one seed on 20,000 reviews; mirror descents are solid, other optimizers dashed.",
      leader);
  return figure;
}

Figure clean_memory_figure(const CleanStudy& study) {
  Figure figure{.id = "memory", .title = "Test accuracy against the memory that an optimizer takes"};
  figure.x.label = "optimizer state, bytes per parameter";
  figure.y.label = "test accuracy, last epoch, %";
  figure.description = "Mean test accuracies with their 95 % intervals against bytes of state per parameter:";
  // Bytes, accuracy and name of each.
  std::vector<std::tuple<double, double, std::string>> points;
  for (const TrainingGroup& group : study.groups) {
    const SampleSummary test = group.percent(clean_test);
    const std::optional<double> bytes = study.state_per_parameter(group);
    if (test.count < 2 || !bytes) continue;
    Series series{.name = group.name, .x = {*bytes}, .y = {test.mean}};
    series.low = {test.mean - mean_reach(test)};
    series.high = {test.mean + mean_reach(test)};
    series.mark = Series::Mark::points;
    figure.series.push_back(std::move(series));
    points.emplace_back(*bytes, test.mean, group.name);
    figure.description += fmt::format(" {} has {:.1f} bytes and {:.2f} ± {:.2f} %;", group.name, *bytes,
                                      test.mean, mean_reach(test));
  }
  if (points.empty()) return figure;
  figure.description.back() = '.';
  std::vector<std::string> undominated;
  for (const auto& [bytes, accuracy, name] : points)
    if (std::ranges::none_of(points, [&, bytes = bytes, accuracy = accuracy](const auto& other) {
          const auto& [other_bytes, other_accuracy, other_name] = other;
          return other_bytes <= bytes && other_accuracy >= accuracy &&
                 (other_bytes < bytes || other_accuracy > accuracy);
        }))
      undominated.push_back(fmt::format("{} ({:.1f} bytes, {:.2f} %)", name, bytes, accuracy));
  figure.caption = fmt::format(
      "By their means, nothing beats these in accuracy without taking more memory: {}. A bar is a 95 % interval of a mean.",
      fmt::join(undominated, ", "));
  return figure;
}

Figure clean_exponent_figure(const CleanStudy& study) {
  Figure figure{.id = "exponents",
                .title = "Accuracy on held-out reviews by p and variant of mirror descent, %"};
  figure.x.label = "p";
  figure.y.label = "variant";
  const ImdbSearch* best = best_of_one_p(study);
  if (!best) return figure;
  std::set<double> exponents;
  std::set<OptimizerFamily> variants;
  for (const ImdbSearch& search : study.searches) {
    const auto place = search.optimizer.variant_and_p();
    if (!place || !search.winner) continue;
    variants.insert(place->first);
    exponents.insert(place->second);
  }
  Heatmap map{.digits = 1};
  for (const double p : exponents) map.columns.push_back(fmt::format("{:g}", p));
  for (const OptimizerFamily variant : variants) {
    map.rows.emplace_back(variant_name(variant));
    map.values.emplace_back();
    for (const double p : exponents) {
      const auto found = std::ranges::find_if(study.searches, [&](const ImdbSearch& search) {
        return search.winner && search.optimizer.variant_and_p() == std::pair(variant, p);
      });
      map.values.back().push_back(found == study.searches.end() ? nan_value : 100 * found->accuracy());
      if (found != study.searches.end() && &*found == best)
        map.marked.emplace_back(map.rows.size() - 1, map.values.back().size() - 1);
    }
  }
  figure.caption = fmt::format(
      "{} is best, at {:.2f} % (outlined). A cell is the winner of a search of at most {} tuning runs, with one seed; an empty one was not searched.",
      with_capital(best->optimizer.name), 100 * best->accuracy(), search_budget);
  figure.description = fmt::format(
      "A table of accuracies with a row for each variant of mirror descent and a column for each p. The highest is {:.2f} %, of {}.",
      100 * best->accuracy(), best->optimizer.name);
  figure.heatmap = std::move(map);
  return figure;
}

Figure clean_rate_figure(const CleanStudy& study) {
  const ImdbSearch* best = best_of_one_p(study);
  Figure figure{.id = "rates"};
  if (!best) return figure;
  const OptimizerFamily variant = best->optimizer.variant_and_p()->first;
  figure.title = fmt::format("Accuracy on held-out reviews by learning rate and p: {}", to_string(variant));
  figure.x.label = "learning rate";
  figure.x.scale = Axis::Scale::log;
  figure.y.label = "accuracy on held-out reviews, %";
  figure.description = "The best accuracy at each learning rate, a curve for each p:";
  std::size_t lost = 0;
  for (const ImdbSearch& search : study.searches) {
    const auto place = search.optimizer.variant_and_p();
    if (!place || place->first != variant) continue;
    std::map<double, double> highest;
    for (const TrainingRecord* trial : search.trials) {
      const std::optional<double> accuracy = final_validation(*trial);
      lost += !accuracy;
      if (accuracy && trial->lr) {
        double& here = highest.try_emplace(*trial->lr, 0).first->second;
        here = std::max(here, 100 * *accuracy);
      }
    }
    if (highest.empty()) continue;
    Series series{.name = fmt::format("p = {:g}", place->second)};
    series.mark = Series::Mark::both;
    for (const auto& [rate, accuracy] : highest) {
      series.x.push_back(rate);
      series.y.push_back(accuracy);
    }
    figure.description += fmt::format(" p = {:g} has {:.2f} % at {:.3g};", place->second,
                                      100 * search.accuracy(), search.winner->lr.value_or(nan_value));
    figure.series.push_back(std::move(series));
  }
  figure.description.back() = '.';
  frame_top(figure);
  figure.caption = fmt::format(
      "{} is best, at a learning rate of {:.3g}. A point is the best accuracy at its learning rate, over the other settings that were tried there{}.",
      with_capital(best->optimizer.name), best->winner->lr.value_or(nan_value),
      lost == 0
          ? ""
          : fmt::format("; {} that diverged or did not end {} not shown", lost, lost == 1 ? "is" : "are"));
  return figure;
}

}  // namespace attmirror

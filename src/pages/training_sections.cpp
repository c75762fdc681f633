// What a reader wants to know of trainings of transformers: how accurate, how soon, and how much that depends
// on chance.
//
// Trials of one run are one curve, the mean over them, with a band of one standard deviation. They stop at epochs of
// their own; one that has stopped counts with its last numbers, as otherwise the mean would jump whenever one ends.
#include "base/numbers.hpp"
#include "pages/run_sections.hpp"
#include "pages/shown_names.hpp"
#include "pages/sources.hpp"
#include "pages/training_folder.hpp"
#include "report/short_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace attmirror {

namespace {

namespace fs = std::filesystem;

struct NamedTraining {
  std::string name;
  TrainingFolder folder;
};

struct TrialSpread {
  double mean = nan_value, deviation = nan_value;
  std::size_t count = 0;
};

TrialSpread trial_spread(const std::vector<double>& numbers) {
  TrialSpread spread;
  double sum = 0, squares = 0;
  for (const double number : numbers)
    if (std::isfinite(number)) {
      sum += number;
      ++spread.count;
    }
  if (spread.count == 0) return spread;
  spread.mean = sum / static_cast<double>(spread.count);
  for (const double number : numbers)
    if (std::isfinite(number)) squares += (number - spread.mean) * (number - spread.mean);
  if (spread.count > 1) spread.deviation = std::sqrt(squares / static_cast<double>(spread.count - 1));
  return spread;
}

std::string spread_text(const TrialSpread& spread, int digits, double factor = 1) {
  if (spread.count == 0) return "–";
  if (spread.count == 1) return fmt::format("{:.{}f}", factor * spread.mean, digits);
  return fmt::format("{:.{}f} ± {:.{}f}", factor * spread.mean, digits, factor * spread.deviation, digits);
}

std::string number_text(double value, int digits, double factor = 1) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", factor * value, digits) : "–";
}

using Value = std::function<double(const TrainingEpoch&)>;

// The curve of a run: mean over trials, and a band where there are several.
Series curve_of(const NamedTraining& training, const Value& value) {
  std::map<std::int64_t, std::vector<double>> by_epoch;
  for (const TrainingTrial& trial : training.folder.trials)
    for (const TrainingEpoch& epoch : trial.epochs)
      if (std::isfinite(value(epoch))) by_epoch[epoch.epoch];
  for (const TrainingTrial& trial : training.folder.trials) {
    std::size_t next = 0;
    double held = nan_value;
    for (auto& [epoch, numbers] : by_epoch) {
      for (; next < trial.epochs.size() && trial.epochs[next].epoch <= epoch; ++next)
        if (const double number = value(trial.epochs[next]); std::isfinite(number)) held = number;
      numbers.push_back(held);
    }
  }
  std::vector<std::int64_t> epochs;
  for (const auto& [epoch, numbers] : by_epoch) epochs.push_back(epoch);
  Series series;
  series.name = training.name;
  for (const std::size_t i : thinned(epochs.size())) {
    const TrialSpread spread = trial_spread(by_epoch[epochs[i]]);
    if (spread.count == 0) continue;
    const double deviation = spread.count > 1 ? spread.deviation : 0;
    series.x.push_back(static_cast<double>(epochs[i]));
    series.y.push_back(spread.mean);
    series.low.push_back(spread.mean - deviation);
    series.high.push_back(spread.mean + deviation);
  }
  if (training.folder.trials.size() < 2) {
    series.low.clear();
    series.high.clear();
  }
  if (series.x.size() == 1) series.mark = Series::Mark::points;
  return series;
}

std::string ends_of(const Figure& figure) {
  std::string text;
  for (const Series& series : figure.series)
    text += fmt::format("{}{}: {:.4g} at epoch {:g}", text.empty() ? "" : "; ", series.name, series.y.back(),
                        series.x.back());
  return text + ".";
}

struct TrainingQuantity {
  const char* id;
  const char* title;
  const char* label;
  double TrainingEpoch::*value;
};

std::vector<Figure> training_curves(const std::vector<NamedTraining>& trainings) {
  const TrainingQuantity quantities[] = {
      {"test-accuracy", "Accuracy on the test data", "share of test samples classified correctly",
       &TrainingEpoch::test_accuracy},
      {"train-accuracy", "Accuracy on the training data", "share of training samples classified correctly",
       &TrainingEpoch::train_accuracy},
      {"train-loss", "Loss on the training data", "loss of a training sample, mean",
       &TrainingEpoch::train_loss},
      {"test-loss", "Loss on the test data", "loss of a test sample, mean", &TrainingEpoch::test_loss}};
  bool several = false;
  for (const NamedTraining& training : trainings) several = several || training.folder.trials.size() > 1;
  std::vector<Figure> figures;
  for (const TrainingQuantity& quantity : quantities) {
    Figure figure;
    figure.id = fmt::format("training-{}", quantity.id);
    figure.title = quantity.title;
    figure.x = {.label = "epoch", .whole = true};
    figure.y.label = quantity.label;
    if (several)
      figure.caption =
          "Mean over trials with a band of one standard deviation; a trial that has stopped counts with its last value.";
    for (std::size_t r = 0; r < trainings.size(); ++r) {
      Series series =
          curve_of(trainings[r], [&](const TrainingEpoch& epoch) { return epoch.*quantity.value; });
      series.color = static_cast<int>(r);  // the same in all figures
      if (!series.x.empty()) figure.series.push_back(std::move(series));
    }
    if (figure.series.empty()) continue;
    figure.description = fmt::format("{} during training. {}", figure.title, ends_of(figure));
    figure.caption = ends_of(figure) + (figure.caption.empty() ? "" : " " + figure.caption);
    figures.push_back(std::move(figure));
  }
  return figures;
}

// K, Q and V by the kind of line, runs by color.
std::vector<Figure> weight_curves(const std::vector<NamedTraining>& trainings) {
  const std::tuple<const char*, const char*, const char*> measures[] = {
      {"above_0.06", "How many weights are large", "share of weights with |w| > 0.06"},
      {"largest", "How large the largest weight is", "largest |w|"},
      {"sparsity", "How sparse the weights are", "Hoyer sparsity (0: all equal, 1: a single one)"}};
  const std::pair<const char*, Series::Dash> maps[] = {
      {"K", Series::Dash::solid}, {"Q", Series::Dash::dashed}, {"V", Series::Dash::dotted}};
  std::vector<Figure> figures;
  for (const auto& [measure, title, label] : measures) {
    Figure figure;
    figure.id = fmt::format("training-weights-{}", id_of(measure));
    figure.title = title;
    figure.x = {.label = "epoch", .whole = true};
    figure.y.label = label;
    for (std::size_t r = 0; r < trainings.size(); ++r)
      for (const auto& [map, dash] : maps) {
        const std::string key = fmt::format("{}.{}", map, measure);
        Series series = curve_of(trainings[r], [&](const TrainingEpoch& epoch) {
          const auto found = epoch.weights.find(key);
          return found == epoch.weights.end() ? nan_value : found->second;
        });
        series.name = fmt::format("{} {}", trainings[r].name, map);
        series.color = static_cast<int>(r);
        series.dash = dash;
        if (!series.x.empty()) figure.series.push_back(std::move(series));
      }
    if (figure.series.empty()) continue;
    figure.description = fmt::format("{}, during training. {}", title, ends_of(figure));
    figure.caption = ends_of(figure);
    figures.push_back(std::move(figure));
  }
  return figures;
}

Table trainings_table(const std::vector<NamedTraining>& trainings) {
  Table table;
  table.title = "Trainings: accuracy, epochs and minutes of a trial";
  table.columns = {{"training", Align::left},
                   {"optimizer", Align::left},
                   {"network", Align::left},
                   {"trials"},
                   {"best test, %"},
                   {"last test, %"},
                   {"epochs"},
                   {"minutes"},
                   {"status", Align::left}};
  for (const NamedTraining& one : trainings) {
    std::vector<double> best, last, epochs, minutes;
    for (const TrainingTrial& trial : one.folder.trials) {
      best.push_back(trial.best_test_accuracy().first);
      last.push_back(trial.last_test_accuracy());
      epochs.push_back(static_cast<double>(trial.epochs.back().epoch));
      minutes.push_back(trial.epochs.back().seconds / 60);
    }
    table.rows.push_back({one.name, with_short_numbers(one.folder.optimizer_text()), one.folder.model_text(),
                          fmt::format("{}", one.folder.trials.size()),
                          spread_text(trial_spread(best), 2, 100), spread_text(trial_spread(last), 2, 100),
                          spread_text(trial_spread(epochs), 1), spread_text(trial_spread(minutes), 1),
                          one.folder.status});
  }
  return table;
}

Table trials_table(const TrainingFolder& folder) {
  Table table;
  table.title = "Trials";
  table.columns = {{"trial"},
                   {"status", Align::left},
                   {"epochs"},
                   {"steps"},
                   {"training loss"},
                   {"training accuracy, %"},
                   {"test accuracy, %"},
                   {"best test accuracy, %"},
                   {"at epoch"},
                   {"minutes"}};
  for (const TrainingTrial& trial : folder.trials) {
    const TrainingEpoch& last = trial.epochs.back();
    const auto [best, epoch] = trial.best_test_accuracy();
    table.rows.push_back({fmt::format("{}", trial.trial), trial.status, fmt::format("{}", last.epoch),
                          fmt::format("{}", last.step), number_text(last.train_loss, 4),
                          number_text(last.train_accuracy, 2, 100),
                          number_text(trial.last_test_accuracy(), 2, 100), number_text(best, 2, 100),
                          epoch > 0 ? fmt::format("{}", epoch) : "–", number_text(last.seconds / 60, 1)});
  }
  return table;
}

// "optimizer: learning rate" for "optimizer.lr".
std::string configuration_name(const std::string& key) {
  const std::size_t point = key.find('.');
  return point == std::string::npos
             ? setting_name(key)
             : fmt::format("{}: {}", setting_name(key.substr(0, point)), setting_name(key.substr(point + 1)));
}

Tone tone_of(const std::string& status) {
  if (status == "diverged") return Tone::bad;
  if (status == "completed" || status == "reached accuracy") return Tone::neutral;
  return Tone::caution;
}

// "adam reaches the best test accuracy, 87.31 %; the lowest is sgd's, 84.20 %."
std::string trainings_conclusion(const std::vector<NamedTraining>& trainings) {
  std::string unfinished;
  struct Reached {
    const NamedTraining* training;
    TrialSpread best;
  };
  std::vector<Reached> reached;
  for (const NamedTraining& one : trainings) {
    if (one.folder.status != "completed")
      unfinished += fmt::format("{}{} ({})", unfinished.empty() ? "" : ", ", one.name, one.folder.status);
    std::vector<double> best;
    for (const TrainingTrial& trial : one.folder.trials) best.push_back(trial.best_test_accuracy().first);
    if (const TrialSpread spread = trial_spread(best); spread.count > 0) reached.push_back({&one, spread});
  }
  std::string text = unfinished.empty() ? "" : fmt::format("Not completed: {}. ", unfinished);
  if (reached.empty()) return text + "No test accuracy has been measured yet.";
  const auto by_mean = [](const Reached& one) { return one.best.mean; };
  const Reached& best = *std::ranges::max_element(reached, {}, by_mean);
  const Reached& worst = *std::ranges::min_element(reached, {}, by_mean);
  const auto accuracy = [](const Reached& one) {
    return fmt::format(
        "{} %{}", spread_text(one.best, 2, 100),
        one.best.count > 1 ? fmt::format(" (mean of {} trials)", one.best.count) : std::string());
  };
  if (reached.size() == 1) return text + fmt::format("The best test accuracy is {}.", accuracy(best));
  return text + fmt::format("{} reaches the best test accuracy, {}; the lowest is that of {}, {}.",
                            best.training->name, accuracy(best), worst.training->name, accuracy(worst));
}

Section section_of(const NamedTraining& training, const std::string& id) {
  const TrainingFolder& folder = training.folder;
  Section section{.id = id, .title = "Training " + training.name, .badge = folder.status, .blocks = {}};
  section.badge_tone = tone_of(folder.status);
  if (folder.trials.empty()) {
    section.blocks.push_back(Paragraph{"No epoch has ended yet."});
  } else {
    TableBlock trials{.id = id + "-trials", .table = trials_table(folder)};
    for (const TrainingTrial& trial : folder.trials) trials.tones.push_back(tone_of(trial.status));
    trials.tone_column = 1;
    section.blocks.push_back(std::move(trials));
  }
  Facts facts{"", {}};
  for (const auto& [key, value] : folder.configuration)
    if (!value.empty()) facts.entries.emplace_back(configuration_name(key), with_short_numbers(value));
  section.blocks.push_back(Folded{"Configuration", {std::move(facts)}});
  return section;
}

}  // namespace

PagePart training_sections(const std::vector<fs::path>& folders) {
  std::vector<NamedTraining> trainings;
  const std::vector<std::string> names = short_names(folders);
  for (std::size_t r = 0; r < folders.size(); ++r) trainings.push_back({names[r], load_training(folders[r])});
  Section overview{.id = "trainings",
                   .title = trainings.size() == 1 ? "How the training went" : "How the trainings went",
                   .blocks = {}};
  overview.blocks.push_back(TableBlock{.id = "trainings", .table = trainings_table(trainings)});
  for (Figure& figure : training_curves(trainings)) overview.blocks.push_back(std::move(figure));
  if (std::vector<Figure> figures = weight_curves(trainings); !figures.empty()) {
    Folded folded{"Weights of K, Q and V during training", {}};
    for (Figure& figure : figures) folded.blocks.push_back(std::move(figure));
    overview.blocks.push_back(std::move(folded));
  }
  std::vector<Section> sections{std::move(overview)};
  for (std::size_t r = 0; r < trainings.size(); ++r)
    sections.push_back(section_of(trainings[r], fmt::format("training-{}", r + 1)));
  return {trainings_conclusion(trainings), std::move(sections)};
}

}  // namespace attmirror

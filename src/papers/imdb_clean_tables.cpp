// The trainings of docs/results/imdb_clean in tables: by optimizer, in pairs, by search, one by one.
#include "papers/imdb_clean.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace attmirror {

namespace {

void append_cells(std::vector<std::string>& row, std::vector<std::string> cells) {
  for (std::string& cell : cells) row.push_back(std::move(cell));
}

std::vector<Column> with_comparison(std::vector<Column> columns) {
  for (Column& column : comparison_columns()) columns.push_back(std::move(column));
  return columns;
}

// The most accurate first; those without a number last.
std::vector<const TrainingGroup*> by_accuracy(const std::vector<TrainingGroup>& groups) {
  std::vector<const TrainingGroup*> list;
  for (const TrainingGroup& group : groups) list.push_back(&group);
  std::ranges::stable_sort(list, std::ranges::greater(), [](const TrainingGroup* group) {
    return group->runs.empty() ? -1.0 : group->percent(clean_test).mean;
  });
  return list;
}

bool has_test(const TrainingGroup& group) { return group.percent(clean_test).count > 0; }

// "3", "never", or "–" where nothing is known.
std::string goal_cell(const ImdbSearch* search, const std::optional<double>& goal) {
  if (!search || !search->winner || !goal) return "–";
  const std::optional<std::int64_t> epochs = epochs_to(*search->winner, *goal);
  return epochs ? std::to_string(*epochs) : "never";
}

// "no-momentum" becomes "no momentum".
std::string change_text(std::string_view config) {
  constexpr std::string_view prefix = "ablation-";
  std::string text(config.starts_with(prefix) ? config.substr(prefix.size()) : config);
  std::ranges::replace(text, '-', ' ');
  return text;
}

std::string validation_cell(const TrainingRecord& record) {
  if (record.status == RecordStatus::diverged) return "diverged";
  const std::optional<double> accuracy = final_validation(record);
  return accuracy ? percent_cell(accuracy) : std::string(to_string(record.status));
}

// What a group has in the place of one part of the recipe, "p = 1.1" or "normalized"; "" where more than that differs.
std::string replaced_part(const TrainingOptimizer& recipe, const TrainingOptimizer& other) {
  const auto here = recipe.variant_and_p(), there = other.variant_and_p();
  if (!here || !there) return "";
  const auto& [family, p] = *there;
  const auto& [recipe_family, recipe_p] = *here;
  if (family == recipe_family && p != recipe_p) return fmt::format("p = {:g}", p);
  const bool to_normalized =
      (recipe_family == OptimizerFamily::momentum && family == OptimizerFamily::normalized_momentum) ||
      (recipe_family == OptimizerFamily::plain && family == OptimizerFamily::normalized);
  return to_normalized && p == recipe_p ? "normalized" : "";
}

}  // namespace

Table clean_optimizer_table(const CleanStudy& study) {
  Table table;
  table.title =
      "Optimizers: test accuracy after the last epoch, mean over seeds with half of its 95 % interval";
  table.columns = {{"optimizer", Align::left},
                   {"trainings"},
                   {"test accuracy, %"},
                   {"bytes of state per parameter"},
                   {"epochs to 95 % of its own final accuracy"},
                   {"epochs to 95 % of AdamW's"},
                   {"seconds to 95 % of AdamW's"},
                   {"seconds per epoch"},
                   {"chosen settings", Align::left}};
  const std::optional<double> goal = study.common_goal();
  for (const TrainingGroup* group : by_accuracy(study.groups)) {
    const ImdbSearch* search = search_of(study.searches, group->config);
    const bool tuned = search && search->winner;
    const std::optional<double> seconds = study.epoch_seconds(group->config);
    const std::optional<std::int64_t> epochs =
        tuned && goal ? epochs_to(*search->winner, *goal) : std::nullopt;
    table.rows.push_back(
        {group->name, trainings_cell(*group), mean_text(group->percent(clean_test), 2),
         cell_of(study.state_per_parameter(*group), "{:.1f}"),
         goal_cell(search, tuned ? std::optional(goal_share * search->accuracy()) : std::nullopt),
         goal_cell(search, goal),
         seconds && epochs ? fmt::format("{:.1f}", *seconds * static_cast<double>(*epochs)) : "–",
         cell_of(seconds, "{:.2f}"), settings_text(group->any().settings)});
  }
  return table;
}

Table clean_blocks_table(const CleanStudy& study, const CleanStudy& blocks) {
  Table table;
  table.title =
      "Settings chosen on blocks of neighbors: test accuracy, and its difference to that with settings chosen on every fifth review and to AdamW's, in points";
  table.columns = with_comparison(
      {{"optimizer", Align::left}, {"trainings"}, {"test accuracy, %"}, {"against", Align::left}});
  for (const TrainingGroup* group : by_accuracy(blocks.groups)) {
    const auto add = [&](const std::string& against, std::vector<std::string> cells) {
      std::vector<std::string> row{group->name, trainings_cell(*group),
                                   mean_text(group->percent(clean_test), 2), against};
      append_cells(row, std::move(cells));
      table.rows.push_back(std::move(row));
    };
    const TrainingOptimizer optimizer = training_optimizer(group->config);
    const auto before = std::ranges::find_if(study.groups, [&](const TrainingGroup& other) {
      const TrainingOptimizer named = training_optimizer(other.config);
      return named.family == optimizer.family && named.p == optimizer.p && has_test(other);
    });
    const bool compared = before != study.groups.end() && has_test(*group);
    add("every fifth review",
        compared ? comparison_cells(compare_tests(*group, *before)) : std::vector<std::string>(5, "–"));
    if (blocks.adamw() && group != blocks.adamw() && has_test(*group))
      add(blocks.adamw()->name, comparison_cells(compare_tests(*group, *blocks.adamw())));
  }
  return table;
}

Table clean_attention_table(const CleanStudy& study) {
  Table table;
  table.title = "Token selection and sparsity: means over seeds with half of their 95 % intervals";
  table.columns = {{"optimizer", Align::left}, {"token-selection score"}};
  for (const char* map : {"K", "Q", "V"}) table.columns.push_back({fmt::format("{}: Hoyer sparsity", map)});
  for (const char* map : {"K", "Q", "V"}) table.columns.push_back({fmt::format("{}: above 0.06, %", map)});
  for (const TrainingGroup* group : by_accuracy(study.groups)) {
    std::vector<std::string> row{group->name, mean_text(group->numbers(&TrainingRecord::score), 3)};
    for (std::size_t map = 0; map < 3; ++map) row.push_back(mean_text(group->map_sparsity(map), 3));
    for (std::size_t map = 0; map < 3; ++map) row.push_back(mean_text(group->map_above(map), 2));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table clean_comparison_table(const CleanStudy& study) {
  Table table;
  table.title =
      "Test accuracy against AdamW and against the best: Welch's 95 % intervals of the difference, in points";
  table.columns = with_comparison({{"optimizer", Align::left}, {"against", Align::left}});
  std::vector<const TrainingGroup*> references;
  for (const TrainingGroup* reference : {study.adamw(), study.best()})
    if (reference && std::ranges::find(references, reference) == references.end())
      references.push_back(reference);
  for (const TrainingGroup* reference : references)
    for (const TrainingGroup* group : by_accuracy(study.groups)) {
      if (group == reference || !has_test(*group)) continue;
      std::vector<std::string> row{group->name,
                                   reference->name + (reference == study.best() ? ", the best" : "")};
      append_cells(row, comparison_cells(compare_tests(*group, *reference)));
      table.rows.push_back(std::move(row));
    }
  return table;
}

Table clean_exponent_table(const CleanStudy& study) {
  Table table;
  table.title = "p and variants of mirror descent: best accuracy on held-out reviews after the last epoch, %";
  table.columns = {{"p"}};
  std::set<OptimizerFamily> variants;
  std::map<double, std::map<OptimizerFamily, double>> cells;
  for (const ImdbSearch& search : study.searches) {
    const auto place = search.optimizer.variant_and_p();
    if (!place || !search.winner) continue;
    variants.insert(place->first);
    cells[place->second][place->first] = search.accuracy();
  }
  for (const OptimizerFamily variant : variants)
    table.columns.push_back({std::string(variant_name(variant))});
  for (const auto& [p, accuracies] : cells) {
    std::vector<std::string> row{fmt::format("{:g}", p)};
    for (const OptimizerFamily variant : variants) {
      const auto found = accuracies.find(variant);
      row.push_back(found == accuracies.end() ? "–" : percent_cell(found->second));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table clean_search_table(const CleanStudy& study) {
  Table table;
  table.title =
      "Searches: what each found with one seed, by the accuracy on held-out reviews after the last epoch";
  table.columns = {{"optimizer", Align::left},
                   {"trials"},
                   {"accuracy, %"},
                   {"learning rate among those tried", Align::left},
                   {"best of its family", Align::left},
                   {"chosen settings", Align::left}};
  for (const ImdbSearch& search : study.searches) {
    std::vector<std::string> row{search.optimizer.name,
                                 fmt::format("{} of {}", search.counted_trials(), search_budget)};
    if (const std::size_t before = search.trials.size() - search.counted_trials(); before > 0)
      row.back() += fmt::format(", and {} before", before);
    if (search.winner)
      append_cells(row, {percent_cell(search.accuracy()), std::string(to_string(rate_place(search))),
                         best_search(study.searches, search.optimizer.family) == &search ? "yes" : "",
                         settings_text(search.winner->settings)});
    else
      append_cells(row, {"–", "no trial came to its end", "", "–"});
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table clean_trial_table(const CleanStudy& study) {
  Table table;
  table.title = "All tuning runs: accuracy on held-out reviews";
  table.columns = {{"optimizer", Align::left},
                   {"last epoch, %"},
                   {"best epoch, %"},
                   {"won", Align::left},
                   {"settings", Align::left}};
  for (const ImdbSearch& search : imdb_searches(study.records))
    for (const TrainingRecord* trial : search.trials)
      table.rows.push_back({search.optimizer.name, validation_cell(*trial),
                            percent_cell(trial->best_validation), trial == search.winner ? "yes" : "",
                            settings_text(trial->settings)});
  return table;
}

const TrainingGroup* ablated_recipe(const CleanStudy& study) {
  std::vector<const TrainingRecord*> ablations;
  for (const TrainingRecord& record : study.records)
    if (record.role == TrainingRole::ablation) ablations.push_back(&record);
  if (ablations.empty()) return nullptr;
  const auto shared = [&](const TrainingGroup& group) {
    const auto settings = parse_settings(group.any().settings);
    std::ptrdiff_t count = 0;
    for (const TrainingRecord* ablation : ablations) {
      count += ablation->p == group.any().p;
      for (const auto& setting : parse_settings(ablation->settings))
        count += std::ranges::count(settings, setting);
    }
    return count;
  };
  const auto rank = [&](const TrainingGroup& group) {
    return std::tuple(shared(group), training_optimizer(group.config).is_mirror_descent(),
                      group.percent(clean_test).mean);
  };
  const TrainingGroup* recipe = nullptr;
  for (const TrainingGroup& group : study.groups)
    if (has_test(group) && (!recipe || rank(group) > rank(*recipe))) recipe = &group;
  return recipe;
}

Table clean_ablation_table(const CleanStudy& study) {
  Table table;
  const TrainingGroup* recipe = ablated_recipe(study);
  if (!recipe) return table;
  table.title = fmt::format(
      "Ablations: one part of the settings of {} changed; differences of test accuracy to it, in points",
      recipe->name);
  table.columns = with_comparison({{"change", Align::left}, {"trainings"}, {"test accuracy, %"}});
  table.rows.push_back(
      {"none", trainings_cell(*recipe), mean_text(recipe->percent(clean_test), 2), "–", "–", "–", "–", "–"});
  for (const TrainingGroup& group : training_groups(study.records, TrainingRole::ablation)) {
    std::vector<std::string> row{change_text(group.config), trainings_cell(group),
                                 mean_text(group.percent(clean_test), 2)};
    append_cells(row, has_test(group) ? comparison_cells(compare_tests(group, *recipe))
                                      : std::vector<std::string>{"–", "–", "–", "–",
                                                                 std::string(to_string(group.any().status))});
    table.rows.push_back(std::move(row));
  }
  for (const TrainingGroup& group : study.groups) {
    const std::string part =
        replaced_part(training_optimizer(recipe->config), training_optimizer(group.config));
    if (part.empty() || !has_test(group)) continue;
    std::vector<std::string> row{part + ", with settings of its own", trainings_cell(group),
                                 mean_text(group.percent(clean_test), 2)};
    append_cells(row, comparison_cells(compare_tests(group, *recipe)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table clean_longer_table(const CleanStudy& study) {
  Table table;
  table.title =
      "Longer trainings: test accuracy after the last epoch against that of the main trainings and against AdamW trained as long, in points";
  table.columns = with_comparison({{"optimizer", Align::left},
                                   {"trainings"},
                                   {"epochs"},
                                   {"test accuracy, %"},
                                   {"against", Align::left}});
  const std::vector<TrainingGroup> groups = training_groups(study.records, TrainingRole::longer);
  const auto adamw = std::ranges::find(groups, "adamw", &TrainingGroup::config);
  for (const TrainingGroup* group : by_accuracy(groups)) {
    const auto add = [&](const std::string& against, std::vector<std::string> cells) {
      std::vector<std::string> row{group->name, trainings_cell(*group), std::to_string(group->any().epochs),
                                   mean_text(group->percent(clean_test), 2), against};
      append_cells(row, std::move(cells));
      table.rows.push_back(std::move(row));
    };
    const auto base = std::ranges::find(study.groups, group->config, &TrainingGroup::config);
    if (!has_test(*group) || base == study.groups.end() || !has_test(*base))
      add("–", std::vector<std::string>(5, "–"));
    else
      add(fmt::format("{} epochs", base->any().epochs), comparison_cells(compare_tests(*group, *base)));
    if (adamw != groups.end() && group != &*adamw && has_test(*adamw) && has_test(*group))
      add("AdamW", comparison_cells(compare_tests(*group, *adamw)));
  }
  return table;
}

Table clean_transfer_table(const CleanStudy& study) {
  Table table;
  table.title =
      "The same settings on SST-2 (872 sentences of its development set): accuracy, and its difference to AdamW's, in points";
  table.columns = with_comparison({{"optimizer", Align::left}, {"trainings"}, {"accuracy, %"}});
  const std::vector<TrainingGroup> groups = training_groups(study.records, TrainingRole::transfer);
  const auto adamw = std::ranges::find(groups, "adamw", &TrainingGroup::config);
  for (const TrainingGroup* group : by_accuracy(groups)) {
    std::vector<std::string> row{group->name, trainings_cell(*group),
                                 mean_text(group->percent(clean_test), 2)};
    const bool comparable = adamw != groups.end() && group != &*adamw && has_test(*adamw) && has_test(*group);
    append_cells(
        row, comparable ? comparison_cells(compare_tests(*group, *adamw)) : std::vector<std::string>(5, "–"));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table clean_runs_table(const CleanStudy& study) {
  Table table;
  table.title = "All trainings";
  table.columns = {{"run", Align::left},
                   {"role", Align::left},
                   {"data", Align::left},
                   {"status", Align::left},
                   {"epochs"},
                   {"test, %"},
                   {"held-out, %"},
                   {"score"},
                   {"seconds"},
                   {"settings", Align::left}};
  for (const TrainingRecord& record : study.records)
    table.rows.push_back({record.run, std::string(to_string(record.role)),
                          record.data.empty() ? "–" : record.data, std::string(to_string(record.status)),
                          std::to_string(record.epochs), percent_cell(record.last_test),
                          percent_cell(final_validation(record)), cell_of(record.score, "{:.3f}"),
                          cell_of(record.seconds, "{:.0f}"), settings_text(record.settings)});
  return table;
}

}  // namespace attmirror

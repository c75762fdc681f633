// The experiments, in the order of the papers.
#include "base/words.hpp"
#include "papers/experiments.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace attmirror {

namespace {

// Not by static objects that enlist themselves: a linker drops those of a static library that nobody names.
std::vector<ExperimentPointer>& registry() {
  static std::vector<ExperimentPointer> all = [] {
    std::vector<ExperimentPointer> list;
    list.push_back(make_p1_setting_a());
    list.push_back(make_p1_setting_b());
    list.push_back(make_p1_setting_c());
    list.push_back(make_p1_rates());
    list.push_back(make_p1_imdb());
    list.push_back(make_p1_imdb_depth());
    list.push_back(make_p2_single_input());
    list.push_back(make_p2_multi_input());
    list.push_back(make_p2_joint());
    list.push_back(make_p2_losses());
    list.push_back(make_p2_lemma());
    list.push_back(make_p2_vit());
    list.push_back(make_p3_plane());
    list.push_back(make_p3_local());
    list.push_back(make_p3_ranks());
    list.push_back(make_p3_several_tokens());
    list.push_back(make_p3_global());
    list.push_back(make_p3_feasibility());
    list.push_back(make_p3_sparsemax());
    list.push_back(make_p3_causal());
    list.push_back(make_p3_global_grid());
    list.push_back(make_p4_two_stage());
    list.push_back(make_p4_unseen());
    list.push_back(make_p4_joint());
    list.push_back(make_p4_mirror());
    list.push_back(make_p4_graph());
    list.push_back(make_paths());
    list.push_back(make_which_margin());
    list.push_back(make_landscape());
    list.push_back(make_theory_checks());
    list.push_back(make_attractors());
    list.push_back(make_imdb_clean());
    return list;
  }();
  return all;
}

}  // namespace

std::string_view to_string(Extent extent) { return extent == Extent::quick ? "quick" : "full"; }

void ExperimentContext::progress(double share) const {
  if (on_progress) on_progress(std::clamp(share, 0.0, 1.0));
  if (stop.requested()) throw Interrupted{};
}

ExperimentContext ExperimentContext::part(double from, double to) const {
  ExperimentContext inner = *this;
  if (on_progress)
    inner.on_progress = [outer = on_progress, from, to](double share) { outer(from + (to - from) * share); };
  return inner;
}

std::vector<const Experiment*> experiments() {
  std::vector<const Experiment*> all;
  for (const ExperimentPointer& experiment : registry()) all.push_back(experiment.get());
  return all;
}

const Experiment& find_experiment(std::string_view id) {
  std::vector<std::string> ids;
  for (const ExperimentPointer& experiment : registry()) {
    ids.push_back(experiment->info().id);
    if (ids.back() == id) return *experiment;
  }
  throw bad_input(fmt::format("unknown experiment {}{} (attmirror reproduce --list shows all)", one_line(id),
                              did_you_mean(id, {ids.begin(), ids.end()})));
}

void add_experiment(std::unique_ptr<const Experiment> experiment) {
  const std::string id = experiment->info().id;
  if (std::ranges::any_of(registry(), [&](const ExperimentPointer& one) { return one->info().id == id; }))
    throw bad_input(fmt::format("there is an experiment \"{}\" already", id));
  registry().push_back(std::move(experiment));
}

}  // namespace attmirror

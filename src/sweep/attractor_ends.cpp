// Where random starts end.
//
// A direction is decided slowly: a query whose deficit is 1.05 loses its influence like e^{-0.05 R}.
// Normalized steps reach large R at the price of ever longer steps: four lengths, each ten times the one
// before, are short against the weights they move. The first must be short, a twentieth of a logit: of 500
// starts (4 sequences of 4 tokens), 500 then ended where mirror_flow() to time 1e300 did, and 397 where steps
// were six times as long and four times as few.
#include "descent/data_scale.hpp"
#include "sweep/attractor_search.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/sweep/many.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace attmirror {

namespace {

constexpr double first_length = 1.0 / 6;  // of the usual step, which moves a logit by 0.3
constexpr double decided_lead = 30;       // logits: a probability of 1e-13

std::vector<DescentRun> train_in_lengths(const Attention& model, double p, const StartOptions& options) {
  const double std = options.std > 0 ? options.std : start_deviation(model);
  const Optimizer usual = attractor_optimizer(model, p);
  const Optimizer first = with_lr(usual, first_length * lr_of(usual));
  std::vector<DescentTask> tasks;
  for (std::int64_t s = 0; s < options.starts; ++s)
    tasks.push_back({.model = &model,
                     .optimizer = first,
                     .options = {.steps = options.steps,
                                 .record = RecordSchedule::none(),
                                 .init = {.kind = InitKind::normal,
                                          .std = std,
                                          .seed = options.seed + static_cast<std::uint64_t>(s)}}});
  std::vector<DescentRun> runs;
  for (int part = 0; part < 4; ++part) {
    const auto& progress = options.work.on_progress;
    ManyOptions many{.threads = options.work.threads, .stop = options.work.stop};
    if (progress) many.on_pulse = [&](double share) { progress(0.25 * (part + share)); };
    runs = descend_many(tasks, many);
    if (options.work.stop.requested()) return {};
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (runs[i].status == RunStatus::diverged) continue;
      tasks[i].options.init.given = runs[i].last();
      tasks[i].optimizer = with_lr(tasks[i].optimizer, 10 * lr_of(tasks[i].optimizer));
    }
  }
  return runs;
}

}  // namespace

Optimizer attractor_optimizer(const Attention& model, double p) {
  if (p == 2) return scaled_to(model, GradientDescent{.normalized = true});
  return scaled_to(model, MirrorDescent{.p = p, .normalized = true});
}

double least_decided_lead(const AttractorChoices& choices, const Selection& on_top, const Matrix& W) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t j = 0; j < on_top.tokens.size(); ++j) {
    const auto query = static_cast<std::ptrdiff_t>(j);
    const std::int64_t top = on_top.tokens[j];
    const Vector logits = choices.logits(query, W);
    for (std::ptrdiff_t t = 0; t < logits.size(); ++t)
      if (choices.is_allowed(query, t) && choices.level(query, t) != choices.level(query, top))
        least = std::min(least, logits[top] - logits[t]);
  }
  return least * choices.model().logit_scale();
}

void StartOptions::validate() const {
  if (starts < 0) throw bad_value("starts", starts, "0 or more");
  if (!(std >= 0) || std::isinf(std)) throw bad_value("std", std, "a finite number, 0 or more");
  if (steps < 1) throw bad_value("steps", steps, "1 or more");
}

std::int64_t StartShares::total(const Attractors& found, AttractorKind kind) const {
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < counts.size(); ++k)
    if (found.list[k].kind == kind) sum += counts[k];
  return sum;
}

StartShares train_starts(const Attention& model, Attractors& found, const StartOptions& options) {
  options.validate();
  const AttractorChoices choices(model);
  StartShares shares;
  shares.starts = options.starts;
  const std::vector<DescentRun> runs = train_in_lengths(model, found.p, options);
  if (options.work.stop.requested()) {
    shares.interrupted = true;
    return shares;
  }
  std::vector<AttractorChoice> ends;  // empty: undecided
  for (const DescentRun& run : runs) {
    const bool decided =
        run.status != RunStatus::diverged &&
        least_decided_lead(choices, run.selected, attention_weights(run.last())) >= decided_lead;
    ends.push_back(decided ? choices.of(run.selected) : AttractorChoice{});
  }
  std::map<AttractorChoice, std::int64_t> places;
  const auto list_places = [&] {
    places.clear();
    for (std::size_t k = 0; k < found.list.size(); ++k)
      places[choices.of(found.list[k].tokens)] = static_cast<std::int64_t>(k);
  };
  list_places();
  // What the list lacks is judged once for all runs that end there.
  if (!found.complete) {
    for (const AttractorChoice& choice : std::set(ends.begin(), ends.end())) {
      if (choice.empty() || places.contains(choice)) continue;
      ++found.examined;
      JudgedChoice judged = judge_choice(choices, choice, found.norm, options.work.stop);
      if (judged.state == ChoiceState::attractor) found.list.push_back(std::move(judged.attractor));
    }
    sort_attractors(found.list);
    list_places();
  }
  shares.counts.assign(found.list.size(), 0);
  for (const AttractorChoice& choice : ends) {
    const auto place = places.find(choice);
    if (choice.empty()) {
      ++shares.undecided;
      shares.ends.push_back(ended_undecided);
    } else if (place == places.end()) {
      ++shares.elsewhere;
      shares.ends.push_back(ended_elsewhere);
    } else {
      ++shares.counts[static_cast<std::size_t>(place->second)];
      shares.ends.push_back(place->second);
    }
  }
  return shares;
}

}  // namespace attmirror

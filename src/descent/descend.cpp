#include "descent/attention_objective.hpp"
#include "descent/model_fields.hpp"
#include "descent/pulse_timer.hpp"
#include "descent/run_progress.hpp"
#include "descent/update_rule.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/descent/descend.hpp>
#include <attmirror/mirror/direction.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

// The rule's plain numbers from a checkpoint.
void restore(const std::string& name, const Checkpoint& checkpoint, std::span<double> numbers) {
  const auto saved = checkpoint.numbers.find(name);
  if (saved == checkpoint.numbers.end())
    throw bad_input(fmt::format("the checkpoint lacks the optimizer's numbers \"{}\"", name));
  if (saved->second.size() != numbers.size())
    throw bad_input(fmt::format("the checkpoint's numbers \"{}\" are {}: expected {}", name,
                                saved->second.size(), numbers.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!std::isfinite(saved->second[i]))
      throw bad_input(fmt::format("the checkpoint's number {}[{}] is {}: expected a finite number", name, i,
                                  saved->second[i]));
  std::ranges::copy(saved->second, numbers.begin());
}

void check(const Objective& objective, const Optimizer& optimizer) {
  objective.validate();
  validate(optimizer);
  const auto schedule = std::visit([](const auto& options) { return options.schedule.kind; }, optimizer);
  if (schedule != ScheduleKind::polyak || objective.has_lower_bound()) return;
  const std::string kind = objective.facts().kind;
  throw bad_input(
      kind == attention_kind
          ? "schedule is polyak with the linear loss, which has no lower bound for Polyak's step to aim at"
          : fmt::format(
                "schedule is polyak, but the model {} does not say that its loss has the lower bound 0, "
                "which Polyak's step aims at",
                kind));
}

}  // namespace

void DescentOptions::validate() const {
  check_ranges(descent_fields(), *this);
  if (threads < 0) throw bad_value("threads", std::int64_t{threads}, "0 or more");
  EngineOptions{.path = path, .storage = storage}.validate();
  init.validate();
}

std::string_view to_string(RunStatus status) {
  switch (status) {
    case RunStatus::completed:
      return "completed";
    case RunStatus::saturated:
      return "saturated";
    case RunStatus::out_of_time:
      return "out_of_time";
    case RunStatus::interrupted:
      return "interrupted";
    case RunStatus::diverged:
      return "diverged";
  }
  return "unknown";
}

std::string summary(const DescentRun& run) {
  return fmt::format("{} after {} steps in {:.3g} s: loss {:.9g}, max softmax {:.6f}, norm {:.6g}",
                     to_string(run.status), run.steps, run.seconds, run.loss, run.max_softmax, run.norm);
}

double attention_norm(const Parameters& parameters, double p) {
  if (parameters.p.size() > 0) return lp_norm(parameters.p, p);
  return lp_norm(combined_weights(parameters), p);
}

double attention_norm(const Parameters& parameters, const Norm& norm) {
  // By the mirror map where there is one: the norm that normalised steps divide by, to the bit.
  if (norm.is_entrywise() && norm.p() > 1 && std::isfinite(norm.p()))
    return attention_norm(parameters, norm.p());
  if (parameters.p.size() > 0) return attmirror::norm(Matrix(parameters.p), norm);
  return attmirror::norm(combined_weights(parameters), norm);
}

struct Descent::State {
  std::unique_ptr<const Objective> owned;  // of a run that was given a model
  RunProgress progress;
  ThreadPool pool;
  std::unique_ptr<ObjectiveEngine> engine;
  ParameterBlocks weights;
  std::unique_ptr<UpdateRule> rule;
  Gradient gradient;
  double seconds_before = 0;
  Clock::time_point start = Clock::now();

  State(const Objective& objective, const Optimizer& o, const DescentOptions& d)
      : progress(objective, (check(objective, o), o), (d.validate(), d)),
        pool(d.threads),
        engine(objective.make_engine(d, jacobian_for(o), pool)),
        weights(objective.blocks()),
        gradient(objective.make_gradient()) {}
  State(std::unique_ptr<const Objective> objective, const Optimizer& o, const DescentOptions& d)
      : State(*objective, o, d) {
    owned = std::move(objective);
  }

  const Objective& objective() const { return progress.objective(); }
  double seconds() const { return seconds_before + seconds_since(start); }
  void begin();
  void resume(const Checkpoint& checkpoint);
};

void Descent::State::begin() {
  weights.assign(objective().initial_parameters(progress.options().init));
  rule = make_rule(progress.optimizer(), objective().trained_blocks(), weights);
}

void Descent::State::resume(const Checkpoint& checkpoint) {
  const auto require = [](const std::string& saved, const std::string& now, const char* what) {
    if (saved != now)
      throw bad_input(fmt::format("the checkpoint is of another {}: \"{}\", not \"{}\"", what, saved, now));
  };
  require(checkpoint.model, objective().description(), "model");
  require(checkpoint.rule, attmirror::to_string(progress.optimizer()), "optimizer");
  require(fmt::format("{:016x}", checkpoint.data_fingerprint),
          fmt::format("{:016x}", objective().data_fingerprint()), "dataset");
  const std::int64_t steps = progress.options().steps;
  if (checkpoint.step < 0 || checkpoint.step > steps)
    throw bad_input(fmt::format("the checkpoint is at step {}: expected 0 to {}, the steps of this run",
                                checkpoint.step, steps));
  if (!(checkpoint.seconds >= 0) || std::isinf(checkpoint.seconds))
    throw bad_input(fmt::format("the checkpoint's seconds are {}: expected a finite number, 0 or greater",
                                checkpoint.seconds));
  weights.assign(checkpoint.weights);
  rule = make_rule(progress.optimizer(), objective().trained_blocks(), weights);
  for (auto& [name, blocks] : rule->state()) {
    const auto saved = checkpoint.state.find(name);
    if (saved == checkpoint.state.end())
      throw bad_input(fmt::format("the checkpoint lacks the optimizer's state \"{}\"", name));
    blocks->assign(saved->second);
  }
  for (auto& [name, numbers] : rule->numbers()) restore(name, checkpoint, numbers);
  progress.step = checkpoint.step;
  seconds_before = checkpoint.seconds;
  // The last record of the earlier part is made again if it is still wanted.
  for (const Record& record : checkpoint.records)
    if (record.scheduled && record.step < checkpoint.step) progress.records.push_back(record);
}

Descent::Descent(const Objective& objective, const Optimizer& optimizer, const DescentOptions& options)
    : state_(std::make_unique<State>(objective, optimizer, options)) {
  state_->begin();
}

Descent::Descent(const Objective& objective, const Optimizer& optimizer, const DescentOptions& options,
                 const Checkpoint& checkpoint)
    : state_(std::make_unique<State>(objective, optimizer, options)) {
  state_->resume(checkpoint);
}

Descent::Descent(const Attention& model, const Optimizer& optimizer, const DescentOptions& options)
    : state_(std::make_unique<State>(std::make_unique<const AttentionObjective>(model), optimizer, options)) {
  state_->begin();
}

Descent::Descent(const Attention& model, const Optimizer& optimizer, const DescentOptions& options,
                 const Checkpoint& checkpoint)
    : state_(std::make_unique<State>(std::make_unique<const AttentionObjective>(model), optimizer, options)) {
  state_->resume(checkpoint);
}

Descent::~Descent() = default;

DescentRun Descent::run(const DescentCallbacks& callbacks) {
  State& s = *state_;
  RunProgress& progress = s.progress;
  const double limit = progress.options().max_seconds;
  s.start = Clock::now();
  PulseTimer timer;
  progress.begin();
  for (;;) {
    Request request = Request::none;
    if (timer.due()) {
      if (limit > 0 && s.seconds() >= limit) request = Request::time_over;
      if (callbacks.on_pulse && timer.pulse()) callbacks.on_pulse(*this);
      if (callbacks.stop.requested()) request = Request::stop;
    }
    progress.value = s.engine->evaluate(s.weights, s.gradient);
    const Decision decision = progress.decide(request);
    if (decision.keep != Decision::Keep::nothing) {
      const Record& record = progress.record(decision, s.weights, s.engine->metrics(s.weights));
      if (callbacks.on_record) callbacks.on_record(record);
      // What a callback asks for is noticed before the next step.
      if (callbacks.on_record && !decision.status && callbacks.stop.requested())
        return progress.finish(RunStatus::interrupted, s.weights, s.seconds());
    }
    if (decision.status) return progress.finish(*decision.status, s.weights, s.seconds());
    s.rule->step(s.gradient, {progress.step, progress.value.loss}, s.weights);
    ++progress.step;
  }
}

std::int64_t Descent::step() const { return state_->progress.step; }
double Descent::loss() const { return state_->progress.value.loss; }
double Descent::seconds() const { return state_->seconds(); }

Checkpoint Descent::checkpoint() const {
  const State& s = *state_;
  Checkpoint checkpoint;
  checkpoint.model = s.objective().description();
  checkpoint.rule = attmirror::to_string(s.progress.optimizer());
  checkpoint.data_fingerprint = s.objective().data_fingerprint();
  checkpoint.step = s.progress.step;
  checkpoint.seconds = s.seconds();
  checkpoint.weights = s.weights.parameters();
  for (const auto& [name, blocks] : s.rule->state()) checkpoint.state[name] = blocks->parameters();
  for (const auto& [name, numbers] : s.rule->numbers())
    checkpoint.numbers[name].assign(numbers.begin(), numbers.end());
  checkpoint.records = s.progress.records;
  return checkpoint;
}

DescentRun descend(const Objective& objective, const Optimizer& optimizer, const DescentOptions& options,
                   const DescentCallbacks& callbacks) {
  return Descent(objective, optimizer, options).run(callbacks);
}

DescentRun descend(const Attention& model, const Optimizer& optimizer, const DescentOptions& options,
                   const DescentCallbacks& callbacks) {
  return Descent(model, optimizer, options).run(callbacks);
}

}  // namespace attmirror

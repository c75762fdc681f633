// The training loop. Top down: train() makes what all trials share, a Training takes the trials one after another, each
// epoch is a row, each step a batch (network_steps.cpp); between steps stands everything that can interrupt it.
#include "base/stopwatch.hpp"
#include "deep/trainer/attention_measures.hpp"
#include "deep/trainer/data_order.hpp"
#include "deep/trainer/made_ahead.hpp"
#include "deep/trainer/network_steps.hpp"
#include "deep/trainer/train_folder.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/trainer.hpp>
#include <attmirror/deep/weights_file.hpp>

#include <algorithm>
#include <cmath>
#include <thread>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

namespace attmirror::deep {

namespace {

constexpr double seconds_between_looks = 5;  // at the loss on a GPU, within an epoch

enum class Pause { none, stop, time_limit };

class Training {
 public:
  Training(const TrainConfig& config, const TrainData& data, const TrainOptions& options);
  TrainResult run();

 private:
  Pause run_trial();
  Pause run_epoch();
  bool finish_epoch();  // true: the trial has ended
  PauseWishes own_wishes() const;
  Pause pause_asked() const;
  void save(TrainFolder::Save when = TrainFolder::Save::now);
  void save_epoch_weights();
  void prepare_trial(const TrainCheckpoint* from);
  double trial_seconds() const { return seconds_before_ + seconds_since(resumed_); }
  std::int64_t steps_per_epoch() const {
    return (sources_.train->rows() + config_.train.batch - 1) / config_.train.batch;
  }
  bool writes() const { return processes_->writes() && folder_; }
  TrainResult result(TrainStatus status) const;

  const TrainConfig& config_;
  const TrainData& data_;
  const TrainOptions& options_;
  Clock::time_point started_ = Clock::now();
  Machine machine_;
  BatchSources sources_;
  std::uint64_t train_print_ = 0, test_print_ = 0;
  std::optional<TrainFolder> folder_;
  std::unique_ptr<Processes> processes_;
  std::optional<NetworkSteps> steps_;
  std::optional<DeviceSums> device_sums_;

  // Of the trial under way.
  std::shared_ptr<Network> network_;
  std::unique_ptr<OptimizerSet> optimizers_;
  TrialSeeds seeds_;
  TrialResult trial_;
  std::int64_t epoch_ = 0, step_ = 0;
  EpochSums sums_;
  bool diverged_ = false;
  double seconds_before_ = 0;
  Clock::time_point resumed_ = Clock::now(), saved_ = Clock::now(), looked_ = Clock::now();
  PauseWishes agreed_;  // of several processes, as of the last step at which they looked
  std::vector<TrialResult> finished_;
};

Training::Training(const TrainConfig& config, const TrainData& data, const TrainOptions& options)
    : config_(config), data_(data), options_(options) {
  config_.validate();
  const ProcessPlace place = process_place();
  machine_ = chosen_machine(config_.train, place.local_rank);
  const auto cores = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  const std::int64_t local = machine_.device.is_cpu() ? place.size : 1;  // processes that share the cores
  at::set_num_threads(static_cast<int>(config_.train.threads > 0 ? config_.train.threads
                                                                 : std::max<std::int64_t>(1, cores / local)));
  sources_ = batch_sources(config_, data_, machine_.device);
  train_print_ = sources_.train->fingerprint();
  test_print_ = sources_.test->fingerprint();
  if (!options_.folder.empty() && place.rank == 0) {
    folder_.emplace(options_.folder);
    if (options_.existing == ExistingRun::refuse && folder_->holds_run())
      throw bad_input(fmt::format(
          "{} already holds a run: give --resume to continue it, --overwrite to replace it, or another folder",
          options_.folder.string()));
  }
  processes_ = join_processes(place, machine_.device, options_.folder);
  steps_.emplace(config_, sources_, machine_, *processes_, processes_->writes() ? options_.on_note : nullptr);
  device_sums_.emplace(machine_.device);
}

TrainResult Training::run() {
  std::optional<TrainCheckpoint> checkpoint;
  if (!options_.folder.empty() && options_.existing == ExistingRun::resume)
    checkpoint = resumable_checkpoint(options_.folder, config_, train_print_, test_print_);
  if (checkpoint) {
    finished_ = checkpoint->finished;
    if (static_cast<std::int64_t>(finished_.size()) >= config_.train.trials) {
      if (options_.on_note && processes_->writes())
        options_.on_note(fmt::format("the run in {} is already finished", options_.folder.string()));
      network_ = make_network(config_, data_, config_.train.init_seed, machine_);
      const TrainResult ended = result(TrainStatus::completed);
      if (writes())
        folder_->finish(to_json(ended, options_.folder));  // it may have been killed before it could
      return ended;
    }
  }
  trial_.trial = static_cast<std::int64_t>(finished_.size());
  prepare_trial(checkpoint ? &*checkpoint
                           : nullptr);  // all that can be wrong is told before a file is touched
  if (!processes_->alone()) {           // nobody changes files before all have read them
    at::Tensor nothing = at::zeros({1}, at::TensorOptions(at::kFloat).device(machine_.device));
    processes_->add_up(nothing);
  }
  if (folder_) folder_->begin(to_json(config_), checkpoint);
  if (checkpoint && options_.on_note && processes_->writes())
    options_.on_note(fmt::format("resuming trial {} at epoch {}, step {} of {}", trial_.trial, epoch_ + 1,
                                 step_, steps_per_epoch()));
  for (;;) {
    if (writes()) folder_->begin_trial(trial_.trial);
    if (epoch_ == 0 && step_ == 0) save_epoch_weights();
    const Pause pause = run_trial();
    if (pause != Pause::none) {
      const TrainResult stopped =
          result(pause == Pause::stop ? TrainStatus::stopped : TrainStatus::time_limit);
      if (writes()) folder_->finish(to_json(stopped, options_.folder));
      return stopped;
    }
    if (static_cast<std::int64_t>(finished_.size()) == config_.train.trials) break;
    trial_ = {};
    trial_.trial = static_cast<std::int64_t>(finished_.size());
    prepare_trial(nullptr);
  }
  const TrainResult completed = result(TrainStatus::completed);
  if (writes()) folder_->finish(to_json(completed, options_.folder));
  return completed;
}

TrainResult Training::result(TrainStatus status) const {
  TrainResult outcome;
  outcome.status = status;
  outcome.trials = finished_;
  if (status != TrainStatus::completed) {
    outcome.trials.push_back(trial_);
    outcome.trials.back().seconds = trial_seconds();
  }
  for (const TrialResult& trial : outcome.trials) outcome.seconds += trial.seconds;
  outcome.device = machine_.device.str();
  outcome.writes = processes_->writes();
  if (network_)
    for (const at::Tensor& parameter : network_->parameters()) outcome.parameters += parameter.numel();
  return outcome;
}

void Training::prepare_trial(const TrainCheckpoint* from) {
  seeds_ = trial_seeds(config_.train, trial_.trial);
  network_ = make_network(config_, data_, seeds_.init, machine_);
  optimizers_ = std::make_unique<OptimizerSet>(config_.optimizer, *network_);
  epoch_ = step_ = 0;
  sums_ = {};
  diverged_ = false;
  seconds_before_ = 0;
  if (from != nullptr) {
    trial_ = from->current;
    epoch_ = from->epoch;
    step_ = from->step;
    sums_ = from->sums;
    seconds_before_ = trial_.seconds;
    if (!from->weights.empty()) {
      const std::string name = fmt::format("{}/checkpoint.safetensors", options_.folder.string());
      load_weights(*network_, {from->weights, {}}, name);
      try {
        optimizers_->load(from->optimizer, machine_.device);
      } catch (const Error& error) {
        throw Error(error.kind(), fmt::format("{}: {}", name, error.what()));
      }
    }
  }
  steps_->begin_trial(*optimizers_);
  trial_.init_seed = seeds_.init;
  trial_.order_seed = seeds_.order;
  trial_.dropout_seed = seeds_.dropout;
  resumed_ = saved_ = looked_ = Clock::now();
}

Pause Training::run_trial() {
  while (trial_.status == TrialStatus::running) {
    const Pause pause = run_epoch();
    if (pause != Pause::none) {
      save();
      return pause;
    }
    if (finish_epoch()) break;
    if (const Pause after = pause_asked(); after != Pause::none) {
      save();
      return after;
    }
  }
  trial_.seconds = trial_seconds();
  finished_.push_back(trial_);
  if (writes()) {
    save_weights(folder_->final_path(trial_.trial, config_.train.trials), *network_);
    save();
  }
  return Pause::none;
}

// From step_ on. Leaves sums_ complete unless there is a pause.
Pause Training::run_epoch() {
  const std::int64_t rows = sources_.train->rows(), steps = steps_per_epoch(), size = config_.train.batch;
  const std::vector<std::int64_t> order = epoch_order(seeds_.order, epoch_, rows);
  const ProcessPlace place = processes_->place();
  MadeAhead<PlannedBatch> ahead(step_, steps, batches_ahead, [&](std::int64_t step) {
    const auto first = static_cast<std::size_t>(step * size);
    const auto count = std::min(static_cast<std::size_t>(size), order.size() - first);
    PlannedBatch planned =
        sources_.train->plan(std::span(order).subspan(first, count),
                             DropoutPlace{seeds_.dropout, epoch_ * steps + step}, place.rank, place.size);
    sources_.train->prepare(planned);
    return planned;
  });
  DeviceSums& sums = *device_sums_;
  sums.start(sums_);
  const double seconds_before = sums_.seconds;
  const Clock::time_point begun = Clock::now();
  const auto read_sums = [&] {
    sums_.loss = sums.loss();
    sums_.correct = sums.correct();
    sums_.seconds = seconds_before + seconds_since(begun);
  };
  while (step_ < steps && !diverged_) {
    const PlannedBatch planned = ahead.next();
    optimizers_->scale_lr(
        schedule_factor(config_.optimizer, epoch_ * steps + step_, steps, config_.train.epochs));
    const StepResult trained = steps_->train_on(planned, step_, *network_, *optimizers_,
                                                processes_->alone() ? PauseWishes{} : own_wishes(), sums);
    if (trained.wishes) agreed_ = *trained.wishes;
    sums_.samples += planned.all_samples;
    sums_.tokens += planned.all_tokens;
    ++step_;
    // A CPU's loss is at hand; a GPU is asked for it now and then only. Several processes must leave the epoch
    // together, so they look at the same steps and not at their clocks.
    if (machine_.device.is_cpu() ? !std::isfinite(trained.loss.item<double>())
        : processes_->alone()    ? seconds_since(looked_) > seconds_between_looks
                                 : step_ % steps_between_looks == 0) {
      looked_ = Clock::now();
      read_sums();
      diverged_ = !std::isfinite(sums_.loss);
    }
    if (options_.on_progress && place.rank == 0)
      options_.on_progress({trial_.trial, config_.train.trials, epoch_, config_.train.epochs, step_, steps});
    if (diverged_) break;
    const Pause pause = pause_asked();
    const bool save_now = writes() && seconds_since(saved_) >= config_.train.checkpoint_seconds;
    if (pause == Pause::none && !save_now) continue;
    read_sums();
    if (!std::isfinite(sums_.loss)) {   // not worth keeping
      diverged_ = processes_->alone();  // several find out together at their next look
      continue;
    }
    if (pause != Pause::none) return pause;
    save(TrainFolder::Save::behind);
  }
  read_sums();
  diverged_ = diverged_ || !std::isfinite(sums_.loss);
  return Pause::none;
}

PauseWishes Training::own_wishes() const {
  const double limit = config_.train.max_seconds;
  return {.stop = options_.stop.requested(), .late = limit > 0 && seconds_since(started_) >= limit};
}

// Several processes pause where all have agreed to with the last step.
Pause Training::pause_asked() const {
  const PauseWishes wishes = processes_->alone() ? own_wishes() : agreed_;
  return wishes.stop ? Pause::stop : wishes.late ? Pause::time_limit : Pause::none;
}

bool Training::finish_epoch() {
  const std::int64_t steps = steps_per_epoch();
  EpochRow row;
  row.trial = trial_.trial;
  row.epoch = epoch_ + 1;
  row.step = epoch_ * steps + step_;
  const auto samples = static_cast<double>(sums_.samples);
  row.train_loss = sums_.loss / samples;
  row.train_accuracy = static_cast<double>(sums_.correct) / samples;
  row.epoch_seconds = sums_.seconds;
  row.tokens_per_second = static_cast<double>(sums_.tokens) / sums_.seconds;
  row.lr = config_.optimizer.lr * schedule_factor(config_.optimizer, std::max<std::int64_t>(0, row.step - 1),
                                                  steps, config_.train.epochs);
  const WeightMeasures measures = measured_weights(*network_);
  row.weight_norm = measures.norm;
  row.maps = measures.maps;
  const double chance = std::log(static_cast<double>(network_->classes()));
  if (!(row.train_loss <= config_.train.divergence * chance) || !std::isfinite(row.weight_norm))
    diverged_ = true;

  trial_.epochs = row.epoch;
  trial_.steps = row.step;
  trial_.train_loss = row.train_loss;
  trial_.train_accuracy = row.train_accuracy;
  const bool reached = row.train_accuracy >= config_.train.stop_train_accuracy;
  const bool last = row.epoch == config_.train.epochs;
  if (!diverged_ && (reached || last || row.epoch % config_.train.evaluate_every == 0)) {
    const auto [loss, accuracy] = steps_->evaluate(*network_, *sources_.test);
    row.test_loss = trial_.test_loss = loss;
    row.test_accuracy = trial_.test_accuracy = accuracy;
    if (!trial_.best_test_accuracy || accuracy > *trial_.best_test_accuracy) {
      trial_.best_test_accuracy = accuracy;
      trial_.best_epoch = row.epoch;
    }
    if (sources_.validation) {
      const auto [held_loss, held_accuracy] = steps_->evaluate(*network_, *sources_.validation);
      row.validation_loss = trial_.validation_loss = held_loss;
      row.validation_accuracy = trial_.validation_accuracy = held_accuracy;
      if (!trial_.best_validation_accuracy || held_accuracy > *trial_.best_validation_accuracy) {
        trial_.best_validation_accuracy = held_accuracy;
        trial_.best_validation_epoch = row.epoch;
      }
    }
  }
  const std::int64_t attention_every = config_.train.attention_every;
  if (attention_every > 0 && processes_->writes() && !diverged_ &&
      (row.epoch == 1 || reached || last || row.epoch % attention_every == 0))
    row.attention = measured_attention(*network_, *sources_.test, machine_.device);
  row.seconds = trial_seconds();
  if (writes()) folder_->append(row);
  if (options_.on_epoch && processes_->writes()) options_.on_epoch(row);
  if (diverged_)
    trial_.status = TrialStatus::diverged;
  else if (reached)
    trial_.status = TrialStatus::reached_accuracy;
  else if (last)
    trial_.status = TrialStatus::completed;
  ++epoch_;
  step_ = 0;
  sums_ = {};
  save_epoch_weights();
  return trial_.status != TrialStatus::running;
}

// Where the configuration asks for those after epoch_ epochs.
void Training::save_epoch_weights() {
  const std::vector<std::int64_t> wanted = saved_epochs(config_.train.save_epochs);
  if (writes() && std::ranges::find(wanted, epoch_) != wanted.end())
    save_weights(folder_->epoch_path(epoch_, trial_.trial, config_.train.trials), *network_);
}

void Training::save(TrainFolder::Save when) {
  if (!writes()) return;
  TrainCheckpoint checkpoint;
  checkpoint.config = to_json(config_);
  checkpoint.train_fingerprint = train_print_;
  checkpoint.test_fingerprint = test_print_;
  checkpoint.finished = finished_;
  checkpoint.current = trial_;
  checkpoint.current.seconds = trial_seconds();
  checkpoint.epoch = epoch_;
  checkpoint.step = step_;
  checkpoint.sums = sums_;
  const bool ended = trial_.status != TrialStatus::running;
  if (ended && static_cast<std::int64_t>(finished_.size()) < config_.train.trials) {
    // The next trial begins from its own initial weights.
    checkpoint.current = {};
    checkpoint.current.trial = trial_.trial + 1;
    checkpoint.epoch = checkpoint.step = 0;
    checkpoint.sums = {};
  } else {
    checkpoint.weights = weights_of(*network_).tensors;
    checkpoint.optimizer = optimizers_->state();
  }
  folder_->save(std::move(checkpoint), when);
  saved_ = Clock::now();
}

}  // namespace

TrainResult train(const TrainConfig& config, const TrainData& data, const TrainOptions& options) {
  try {
    Training training(config, data, options);
    return training.run();
  } catch (const c10::Error& error) {
    std::string text = error.what_without_backtrace();
    text = text.substr(0, text.find('\n'));
    throw environment_error(fmt::format("LibTorch failed: {}", text));
  }
}

}  // namespace attmirror::deep

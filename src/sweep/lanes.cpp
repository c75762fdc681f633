// The loop of several runs side by side. Vectors carry the arithmetic of the step (lane_kernels.hpp); what descend()
// does in scalars once a step (the root of a norm, the step size, the decision to record or to stop) is done here
// lane by lane, by the same functions.
#include "attention/engine_memory.hpp"
#include "attention/rounding_floor.hpp"
#include "base/numbers.hpp"
#include "descent/attention_objective.hpp"
#include "descent/pulse_timer.hpp"
#include "descent/run_progress.hpp"
#include "descent/step_size.hpp"
#include "mirror/lp_norm.hpp"
#include "sweep/lane_memory.hpp"
#include "sweep/lane_rule.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/isa.hpp>
#include <attmirror/sweep/many.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <span>

#include <fmt/format.h>

namespace attmirror {

namespace {

using kernels::LaneKernels;

constexpr std::size_t most_lanes = 8;
// One number per lane; those behind the last lane are not used.
using Numbers = std::array<double, most_lanes>;

kernels::Exponent kernel_exponent(const LpMap::Exponent& exponent) { return {exponent.value, exponent.rest}; }

// The norm that normalised steps divide by.
struct LaneNorm {
  LpMap map;
  enum class Of { weights, gradients } of;
  const LpMap::Exponent& exponent() const {
    return of == Of::gradients ? map.dual_exponent() : map.norm_exponent();
  }
  double operator()(ConstMatrixView g) const { return of == Of::gradients ? map.dual_norm(g) : map.norm(g); }
};

struct MakeNorm {
  LaneNorm operator()(const MirrorDescent& o) const {
    return {LpMap(o.p, o.power_path), LaneNorm::Of::gradients};
  }
  LaneNorm operator()(const GradientDescent&) const { return {LpMap(2), LaneNorm::Of::weights}; }
};

// p = 2: the dual image of the weights is the weights.
bool is_own_dual(const LpMap& map) {
  return map.inverse_exponent().power == static_cast<int>(kernels::Power::one);
}

class LaneDescent {
 public:
  LaneDescent(std::span<const DescentTask> tasks, const LaneKernels& kernels)
      : kernels_(kernels),
        norm_(std::visit(MakeNorm{}, std::get<LaneRule>(lane_rule(tasks.front().optimizer)))),
        memory_(models_of(tasks, kernels.width), jacobian_for(tasks.front().optimizer),
                is_own_dual(norm_.map) ? LaneMemory::Rule::weights_only : LaneMemory::Rule::with_dual_image),
        weights_(tasks.front().model->blocks()),
        penalty_(tasks.front().model->penalty()) {
    for (const DescentTask& task : tasks) {
      models_.push_back(task.model);
      floors_.emplace_back(*task.model);
      objectives_.emplace_back(*task.model);
      runs_.emplace_back(objectives_.back(), task.optimizer, task.options);
      runs_.back().begin();
      sizes_.push_back(std::visit([](const auto& options) { return StepSize(options); }, task.optimizer));
    }
    results_.resize(tasks.size());
    form_terms_early();
    running_.assign(tasks.size(), true);
    for (std::ptrdiff_t lane = 0; lane < kernels.width; ++lane) {
      const DescentTask& task = tasks[std::min(static_cast<std::size_t>(lane), tasks.size() - 1)];
      weights_.assign(initial_parameters(*task.model, task.options.init));
      const std::unique_ptr<UpdateRule> rule = make_rule(task.optimizer, *task.model, weights_);
      memory_.set_weights(lane, *task.model, weights_);
      for (const auto& [name, blocks] : rule->state()) memory_.set_dual(lane, *blocks);
    }
  }

  std::vector<DescentRun> run(const LaneOptions& options) {
    PulseTimer timer;
    const auto start = Clock::now();
    std::int64_t steps = 0;
    for (;;) {
      Request request = Request::none;
      if (timer.due()) {
        if (options.on_pulse && timer.pulse()) options.on_pulse(steps);
        if (options.stop.requested()) request = Request::stop;
      }
      evaluate();
      std::int64_t running = 0;
      for (std::size_t lane = 0; lane < runs_.size(); ++lane)
        if (running_[lane]) {
          look(lane, request);
          running += running_[lane];
        }
      if (running == 0) break;
      step();
      steps += running;
    }
    share_time(seconds_since(start));
    return std::move(results_);
  }

 private:
  // Where the norm of W's gradient will be wanted once a step, and as it comes from the products, its terms are
  // formed there.
  void form_terms_early() {
    if (norm_.exponent().power != static_cast<int>(kernels::Power::three_halves)) return;
    if (!sizes_.front().normalized() || sizes_.front().wants_norms() || penalty_ != 0) return;
    for (const LaneBlock& block : memory_.blocks)
      if (block.name == Block::W && block.gradient != nullptr) memory_.sums.W_terms = block.terms;
  }

  // One model per lane; spare lanes repeat the last task.
  static std::vector<const Attention*> models_of(std::span<const DescentTask> tasks, std::ptrdiff_t width) {
    std::vector<const Attention*> models;
    for (const DescentTask& task : tasks) models.push_back(task.model);
    models.resize(static_cast<std::size_t>(width), models.back());
    return models;
  }

  void evaluate() {
    kernels_.evaluate(memory_.problem, memory_.point, memory_.scratch, memory_.sums);
    for (LaneBlock& block : memory_.blocks) {
      if (block.gradient == nullptr) continue;
      std::copy_n(block.name == Block::v ? memory_.sums.log_scale_v : memory_.sums.log_scale, kernels_.width,
                  block.log_scale);
    }
    if (penalty_ != 0)
      add_penalty();
    else if (memory_.problem.jacobian == kernels::JacobianForm::safe)
      clear_rounding();
  }

  // What is zero to rounding becomes 0, as in the engine of a single run. The scale of a lane is its largest exponent.
  void clear_rounding() {
    for (std::size_t b = 0; b < memory_.blocks.size(); ++b) {
      LaneBlock& block = memory_.blocks[b];
      if (block.gradient == nullptr) continue;
      const std::ptrdiff_t numbers = block.shape.rows * block.shape.stride * kernels_.width;
      for (std::size_t lane = 0; lane < runs_.size(); ++lane) {
        if (!running_[lane] || block.log_scale[lane] == -infinity) continue;
        const std::span own(block.gradient + lane, static_cast<std::size_t>(numbers) - lane);
        const auto width = static_cast<std::size_t>(kernels_.width);
        if (floors_[lane].is_clear(own, 1, width)) continue;
        if (!is_zero_in(lane, block)) continue;
        for (std::size_t i = 0; i < own.size(); i += width) own[i] = 0;
        if (block.terms == memory_.sums.W_terms)
          for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(lane); i < numbers; i += kernels_.width)
            block.terms[i] = 0;
      }
    }
  }

  bool is_zero_in(std::size_t lane, const LaneBlock& block) {
    const auto here = static_cast<std::ptrdiff_t>(lane);
    memory_.get_weights(here, weights_);
    Gradient gradient{.blocks = ParameterBlocks(models_[lane]->trained_blocks()), .log_scale = {}};
    gradient.log_scale.assign(static_cast<std::size_t>(gradient.blocks.count()), block.log_scale[lane]);
    const std::ptrdiff_t b = gradient.blocks.find(block.name);
    memory_.get_gradient(here, block, gradient.blocks.view(b));
    return floors_[lane].is_zero(weights_, gradient, b);
  }

  // The penalty's share 2 lambda w of the gradients, with the larger of the two scales: see the engine of a single run.
  void add_penalty() {
    largest_weight_.fill(0);
    for (LaneBlock& block : memory_.blocks) {
      if (block.gradient == nullptr || block.name == Block::v) continue;
      alignas(64) Numbers largest, keep, add;
      kernels_.max_abs(block.weights, block.shape, largest.data());
      for (std::size_t lane = 0; lane < static_cast<std::size_t>(kernels_.width); ++lane) {
        double& scale = block.log_scale[lane];
        double own = scale;
        if (memory_.problem.jacobian == kernels::JacobianForm::safe)
          own = std::max(scale, std::log(2 * penalty_) + std::log(largest[lane]));
        const bool any = own != -infinity;  // else neither has a gradient
        keep[lane] = !any || own == scale ? 1.0 : std::exp(scale - own);
        add[lane] = any ? std::exp(std::log(2 * penalty_) - own) : 0.0;
        scale = own;
        largest_weight_[lane] = std::max(largest_weight_[lane], largest[lane]);
      }
      kernels_.add_multiple(keep.data(), block.gradient, add.data(), block.weights, block.shape);
    }
  }

  // What descend() does with each value of the loss.
  void look(std::size_t lane, Request request) {
    RunProgress& run = runs_[lane];
    run.value = {memory_.sums.loss[lane], memory_.sums.max_softmax[lane]};
    // The value of the penalty is a sum over one lane. It is formed where somebody will see it, or where the loss might
    // not be finite.
    const auto here = static_cast<std::ptrdiff_t>(lane);
    if (penalty_ != 0 && (run.is_event() || request != Request::none || sizes_[lane].wants_norms() ||
                          !std::isfinite(run.value.loss) || !(largest_weight_[lane] < 1e100))) {
      memory_.get_weights(here, weights_);
      run.value.loss = run.value.loss + penalty_ * penalized_square(*models_[lane], weights_);
    }
    if (std::isfinite(run.value.loss) && request == Request::none && !run.is_event()) return;
    const Decision decision = run.decide(request);
    memory_.get_weights(here, weights_);
    if (decision.keep != Decision::Keep::nothing) run.record(decision, weights_);
    if (!decision.status) return;
    results_[lane] = run.finish(*decision.status, weights_, 0);
    running_[lane] = false;
  }

  void step() {
    for (std::size_t lane = 0; lane < runs_.size(); ++lane)
      if (running_[lane]) sizes_[lane].begin({runs_[lane].step, runs_[lane].value.loss});
    const bool polyak = sizes_.front().wants_norms(), normalized = sizes_.front().normalized();
    Numbers norms{};
    if (polyak)
      for (const LaneBlock& block : memory_.blocks) {
        if (block.gradient == nullptr) continue;
        norms = norms_of(block);
        for (std::size_t lane = 0; lane < runs_.size(); ++lane)
          if (running_[lane]) sizes_[lane].add_block(norms[lane], block.log_scale[lane]);
      }
    const LpMap::Exponent& inverse = norm_.map.inverse_exponent();
    for (const LaneBlock& block : memory_.blocks) {
      if (block.gradient == nullptr) continue;
      if (normalized) norms = norms_of(block);
      // A lane that has finished stands still.
      alignas(64) Numbers factors{};
      for (std::size_t lane = 0; lane < runs_.size(); ++lane)
        if (running_[lane]) factors[lane] = sizes_[lane].factor(norms[lane], block.log_scale[lane]);
      kernels_.powers[inverse.power].mirror_step(block.gradient, factors.data(), block.dual, block.weights,
                                                 block.shape, kernel_exponent(inverse));
    }
    for (std::size_t lane = 0; lane < runs_.size(); ++lane)
      if (running_[lane]) ++runs_[lane].step;
  }

  // The dual norms of a block's gradient, of the runs that are still running.
  Numbers norms_of(const LaneBlock& block) {
    const LpMap::Exponent& exponent = norm_.exponent();
    const kernels::LanePowerKernels& powers = kernels_.powers[exponent.power];
    alignas(64) Numbers sums;
    if (block.terms == memory_.sums.W_terms)
      kernels_.add_up(block.terms, block.shape, sums.data());
    else
      powers.sum_power(block.gradient, block.shape, nullptr, kernel_exponent(exponent), block.terms,
                       sums.data());
    alignas(64) Numbers norms{};
    kernels_.roots(sums.data(), 1 / exponent.value, norms.data());
    bool all_served = true;
    for (std::size_t lane = 0; lane < runs_.size(); ++lane)
      all_served &= !running_[lane] || plain_sum_serves(sums[lane]);
    if (!all_served) scale_norms(block, sums, norms);
    return norms;
  }

  // The same by way of the largest entry, where the plain sum does not serve.
  void scale_norms(const LaneBlock& block, const Numbers& plain_sums, Numbers& norms) {
    const LpMap::Exponent& exponent = norm_.exponent();
    alignas(64) Numbers largest, scales, sums, roots;
    kernels_.max_abs(block.gradient, block.shape, largest.data());
    const auto divides = [&](std::size_t lane) {
      return largest[lane] >= smallest_divisor && std::isfinite(largest[lane]);
    };
    for (std::size_t lane = 0; lane < static_cast<std::size_t>(kernels_.width); ++lane)
      scales[lane] = divides(lane) ? 1 / largest[lane] : 1.0;
    kernels_.powers[exponent.power].sum_power(block.gradient, block.shape, scales.data(),
                                              kernel_exponent(exponent), block.terms, sums.data());
    kernels_.roots(sums.data(), 1 / exponent.value, roots.data());
    for (std::size_t lane = 0; lane < runs_.size(); ++lane) {
      if (!running_[lane] || plain_sum_serves(plain_sums[lane])) continue;
      if (divides(lane)) {
        norms[lane] = largest[lane] * roots[lane];
      } else if (largest[lane] == 0 || !std::isfinite(largest[lane])) {
        norms[lane] = largest[lane];
      } else {  // so small that it is rare enough for the single run's own function
        const MatrixView single = weights_.view(weights_.find(block.name));
        memory_.get_gradient(static_cast<std::ptrdiff_t>(lane), block, single);
        norms[lane] = norm_(single);
      }
    }
  }

  // By steps: each evaluated its weights once more than it took steps.
  void share_time(double seconds) {
    double evaluations = 0;
    for (const DescentRun& run : results_) evaluations += static_cast<double>(run.steps + 1);
    for (DescentRun& run : results_) run.seconds = seconds * static_cast<double>(run.steps + 1) / evaluations;
  }

  const LaneKernels& kernels_;
  LaneNorm norm_;
  LaneMemory memory_;
  ParameterBlocks weights_;  // of one lane at a time, or its gradient
  double penalty_;
  std::vector<const Attention*> models_;
  std::vector<RoundingFloor> floors_;
  std::deque<AttentionObjective> objectives_;  // of these models; the runs refer to them
  std::vector<RunProgress> runs_;
  std::vector<StepSize> sizes_;
  std::vector<bool> running_;
  std::vector<DescentRun> results_;
  Numbers largest_weight_{};  // of the blocks with a penalty
};

void check(std::span<const DescentTask> tasks, const LaneOptions& options) {
  options.validate();
  const std::ptrdiff_t most = lane_width();
  if (tasks.empty() || tasks.size() > static_cast<std::size_t>(most))
    throw bad_input(fmt::format("there are {} tasks: expected 1 to {}, the lanes of {}", tasks.size(), most,
                                to_string(active_isa())));
  std::string group;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].model == nullptr) throw bad_input(fmt::format("tasks[{}].model is null", i));
    validate(tasks[i].optimizer);
    tasks[i].options.validate();
    if (const std::string reason = why_not_in_lanes(tasks[i]); !reason.empty())
      throw bad_input(fmt::format("tasks[{}] cannot run in a lane: {}", i, reason));
    const std::string own = lane_group(tasks[i]);
    if (i == 0) group = own;
    if (own != group)
      throw bad_input(
          fmt::format("tasks[{}] is of another group than tasks[0]: \"{}\", not \"{}\"", i, own, group));
  }
}

const LaneKernels& choose_width(std::size_t tasks, std::ptrdiff_t width) {
  for (const LaneKernels& kernels : lane_table().kernels)
    if (kernels.width > 0 &&
        (width == 0 ? kernels.width >= static_cast<std::ptrdiff_t>(tasks) : kernels.width == width))
      return kernels;
  throw bad_input(fmt::format("width is {}: expected at most {}, the lanes of {}", width, lane_width(),
                              to_string(active_isa())));
}

}  // namespace

std::vector<DescentRun> descend_in_lanes(std::span<const DescentTask> tasks, const LaneOptions& options) {
  check(tasks, options);
  const LaneKernels& kernels = choose_width(tasks.size(), options.width);
  if (kernels.width < static_cast<std::ptrdiff_t>(tasks.size()))
    throw bad_input(
        fmt::format("width is {}: expected at least the number of tasks, {}", options.width, tasks.size()));
  return LaneDescent(tasks, kernels).run(options);
}

}  // namespace attmirror

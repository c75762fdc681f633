// Whether descent that starts close to an attractor stays there: at R W plus noise.
//
// A deficit of 1 + e is told from 1 only where R e is large, so R is 20 / e. Plain descent and the flow add
// the logarithm of their time to R and are tried up to R = 400; normalized steps are made longer for a longer
// start, so that they go twenty times as far as it in any case.
#include "base/random.hpp"
#include "descent/data_scale.hpp"
#include "sweep/attractor_search.hpp"
#include <attmirror/attention/gradient.hpp>
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/descent/mirror_flow.hpp>
#include <attmirror/mirror/direction.hpp>
#include <attmirror/sweep/many.hpp>

#include <algorithm>
#include <cmath>

#include <Eigen/SVD>

namespace attmirror {

namespace {

constexpr std::int64_t confirming_steps = 20'000;
constexpr double nearest_start = 10, farthest_start = 1e6;  // R
constexpr double farthest_plain_start = 400;                // gradients are of order e^-R
constexpr double flow_end = 1e300;
constexpr std::int64_t flow_evaluations = 250'000;  // well-conditioned data take a few thousand
constexpr double stiffest_flow = 4;                 // p above which mirror_flow() is too slow
constexpr double most_noise = 0.1;                  // relative to the weights
constexpr double cone_correlation = 0.95;           // that plain descent must keep
constexpr double close_correlation = 0.999;         // that counts as close, wherever the start was

// K and Q of equal size whose product is W.
Parameters start_weights(const Attention& model, const Matrix& W) {
  Parameters start;
  if (std::holds_alternative<Prompt>(model.parameterization())) {
    start.p = W.col(0);
  } else if (const auto* kq = std::get_if<KQ>(&model.parameterization())) {
    const Eigen::JacobiSVD<Eigen::MatrixXd> svd(W, Eigen::ComputeFullU | Eigen::ComputeFullV);
    const std::ptrdiff_t m = kq->rank > 0 ? kq->rank : W.rows();
    const std::ptrdiff_t kept = std::min<std::ptrdiff_t>(m, W.rows());
    const Vector roots = svd.singularValues().head(kept).cwiseSqrt();
    start.K = start.Q = Matrix::Zero(W.rows(), m);
    start.K.leftCols(kept) = svd.matrixU().leftCols(kept) * roots.asDiagonal();
    start.Q.leftCols(kept) = svd.matrixV().leftCols(kept) * roots.asDiagonal();
  } else {
    start.W = W;
  }
  return start;
}

// R W + noise, which is a quarter of what the deficits allow.
struct NearStart {
  double R = 0;
  Matrix W;
};

NearStart near_start(const AttractorChoices& choices, const Attractor& attractor, std::uint64_t index) {
  const Matrix& W = attractor.solution.W;
  const double excess = attractor.certificate.least_deficit - 1;
  NearStart start;
  start.R = std::clamp(20 / excess, nearest_start, farthest_start);
  Matrix noise(W.rows(), W.cols());
  const CounterRandom random(index, RandomStream::attractor_noise);
  for (std::ptrdiff_t k = 0; k < noise.size(); ++k)
    noise.data()[k] = random.normal(static_cast<std::uint64_t>(k));
  double reach = 0;
  for (std::ptrdiff_t j = 0; j < choices.model().data().total_queries(); ++j) {
    const Vector moved = choices.logits(j, noise);
    reach = std::max(reach, moved.maxCoeff() - moved.minCoeff());
  }
  const double size = std::min(0.25 * std::min(1.0, excess) / reach, most_noise * W.norm() / noise.norm());
  start.W = start.R * (W + size * noise);
  return start;
}

// Normalized steps of a thousandth of the start, or the usual ones if they are longer; and plain ones whose
// first is no longer than the usual normalized one and adds at most 0.1 to R. Mirror descent measures both by
// the mirror image grad psi(w).
struct NearOptimizers {
  Optimizer plain, normalized;
};

NearOptimizers near_optimizers(const Attention& model, double p, const Initialization& start, double R) {
  const Optimizer usual = attractor_optimizer(model, p);
  Optimizer plain = usual;
  std::visit(
      [](auto& rule) {
        if constexpr (requires { rule.normalized; }) rule.normalized = false;
      },
      plain);
  const Parameters weights = initial_parameters(model, start);
  const Parameters gradient = loss_and_gradient(model, weights).gradient;
  double plain_lr = std::numeric_limits<double>::infinity(), image = plain_lr;
  for (const Block& block : model.trained()) {
    const auto size = [&](const Parameters& of, const Norm& kind) {
      return visit_block(of, block, [&](const auto& values) { return norm(Matrix(values), kind); });
    };
    const double own_image = std::pow(size(weights, Norm::l(p)), p - 1);
    const double longest = std::min(0.1 / R * own_image, lr_of(usual));
    plain_lr = std::min(plain_lr, longest / size(gradient, Norm::l(p).dual()));
    image = std::min(image, own_image);
  }
  return {with_lr(plain, plain_lr), with_lr(usual, std::max(lr_of(usual), 0.001 * image))};
}

Confirmation judge_end(const AttractorChoices& choices, const Attractor& attractor, const Parameters& end,
                       const Selection& selected) {
  Confirmation result;
  const Matrix W = attention_weights(end);
  if (selected.tokens.empty() || !W.allFinite() || W.isZero(0)) return result;
  result.finished = true;
  result.stayed = choices.of(selected) == choices.of(attractor.tokens);
  result.correlation = correlation(attractor.solution.W, W);
  result.lead = least_decided_lead(choices, selected, W);
  return result;
}

}  // namespace

bool AttractorCheck::holds() const {
  const auto holds_for = [](const Confirmation& one, double needed) {
    return !one.finished || (one.stayed && one.correlation > needed);
  };
  return (plain.finished || normalized.finished || flow.finished) && holds_for(plain, cone_correlation) &&
         holds_for(normalized, std::min(start_correlation, close_correlation)) &&
         holds_for(flow, std::min(start_correlation, close_correlation));
}

std::vector<AttractorCheck> confirm_attractors(const Attention& model, const Attractors& found,
                                               const MarginWork& work) {
  const AttractorChoices choices(model);
  std::vector<AttractorCheck> checks(found.list.size());
  std::vector<Initialization> starts(found.list.size());
  std::vector<DescentTask> tasks;
  std::vector<std::pair<std::size_t, Confirmation AttractorCheck::*>>
      results;  // where the end of a task goes
  for (std::size_t k = 0; k < found.list.size(); ++k) {
    const NearStart start = near_start(choices, found.list[k], k);
    checks[k].R = start.R;
    checks[k].start_correlation = correlation(found.list[k].solution.W, start.W);
    starts[k].given = start_weights(model, start.W);
    const bool plain_too = start.R <= farthest_plain_start;
    const NearOptimizers optimizers = near_optimizers(model, found.p, starts[k], start.R);
    const auto add = [&](const Optimizer& optimizer, Confirmation AttractorCheck::*result) {
      DescentTask& task = tasks.emplace_back(DescentTask{.model = &model, .optimizer = optimizer});
      task.options = {.steps = confirming_steps, .record = RecordSchedule::none(), .init = starts[k]};
      results.emplace_back(k, result);
    };
    if (plain_too) add(optimizers.plain, &AttractorCheck::plain);
    add(optimizers.normalized, &AttractorCheck::normalized);
  }
  const auto& progress = work.on_progress;
  ManyOptions many{.threads = work.threads, .stop = work.stop};
  if (progress) many.on_pulse = [&](double share) { progress(0.5 * share); };
  const std::vector<DescentRun> runs = descend_many(tasks, many);
  if (work.stop.requested()) return {};
  for (std::size_t t = 0; t < runs.size(); ++t) {
    const auto& [k, result] = results[t];
    checks[k].*result = judge_end(choices, found.list[k], runs[t].last(), runs[t].selected);
  }
  ThreadPool pool(work.threads);
  pool.run(std::ssize(checks), [&](std::ptrdiff_t index) {
    const auto k = static_cast<std::size_t>(index);
    if (found.p > stiffest_flow || checks[k].R > farthest_plain_start) return;
    const FlowRun run = mirror_flow(model, {.p = found.p,
                                            .times = {flow_end},
                                            .init = starts[k],
                                            .keep = Keep::metrics,
                                            .max_evaluations = flow_evaluations,
                                            .stop = work.stop});
    if (run.status == FlowStatus::completed)
      checks[k].flow = judge_end(choices, found.list[k], run.last(), run.selected);
  });
  if (work.stop.requested()) return {};
  return checks;
}

}  // namespace attmirror

// Attractors and descent: where random starts end, and whether starts close to an attractor stay there.
//
// A direction is decided slowly: a sequence whose deficit is 1.05 loses its influence like e^{-0.05 R}. Normalized steps
// reach large R at the price of ever longer steps: four lengths, each ten times the one before, are short against the
// weights they move. The first must be short, a twentieth of a logit: of 500 starts (4 sequences of 4 tokens), 500 then
// ended where the flow did, and 397 where steps were six times as long and four times as few. The flow gets to R = log(10^300) = 690 along the exact path of small steps.
#include "base/random.hpp"
#include "descent/data_scale.hpp"
#include "sweep/attractor_search.hpp"
#include <attmirror/attention/gradient.hpp>
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/descent/mirror_flow.hpp>
#include <attmirror/mirror/direction.hpp>
#include <attmirror/sweep/many.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <Eigen/SVD>

namespace attmirror {

namespace {

constexpr double first_length = 1.0 / 6;  // of the usual step, which moves a logit by 0.3
constexpr double decided_lead = 30;       // logits: a probability of 1e-13
constexpr std::int64_t confirming_steps = 20'000;
constexpr double flow_end = 1e300;
constexpr double stiffest_flow = 4;        // p above which mirror_flow() is too slow
constexpr double most_noise = 0.1;         // relative to the weights
constexpr double cone_correlation = 0.99;  // that plain descent must keep

Optimizer attractor_optimizer(const Attention& model, double p) {
  if (p == 2) return scaled_to(model, GradientDescent{.normalized = true});
  return scaled_to(model, MirrorDescent{.p = p, .normalized = true});
}

// The first step is no longer than a normalized one, and changes the mirror image grad psi(w) of each block by at most
// `share` of its size.
Optimizer plain_optimizer(const Attention& model, double p, const Initialization& start, double share) {
  Optimizer plain = attractor_optimizer(model, p);
  std::visit(
      [](auto& rule) {
        if constexpr (requires { rule.normalized; }) rule.normalized = false;
      },
      plain);
  const Parameters weights = initial_parameters(model, start);
  const Parameters gradient = loss_and_gradient(model, weights).gradient;
  double lr = std::numeric_limits<double>::infinity();
  for (const Block& block : model.trained()) {
    const auto size = [&](const Parameters& of, const Norm& kind) {
      return visit_block(of, block, [&](const auto& values) { return norm(Matrix(values), kind); });
    };
    const double longest = std::min(share * std::pow(size(weights, Norm::l(p)), p - 1), lr_of(plain));
    lr = std::min(lr, longest / size(gradient, Norm::l(p).dual()));
  }
  return with_lr(plain, lr);
}

// How far tokens of other levels are behind the token on top, in the query where they are closest.
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

// ---- random starts

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

// ---- starts near an attractor

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

// R W + noise. A deficit of 1 + e is told from 1 at R of some 1/e; noise is a quarter of what the tokens allow.
struct NearStart {
  double R = 0;
  Matrix W;
};

NearStart near_start(const AttractorChoices& choices, const Attractor& attractor, std::uint64_t index) {
  const Matrix& W = attractor.solution.W;
  const double excess = attractor.certificate.least_deficit - 1;
  NearStart start;
  start.R = std::clamp(20 / excess, 10.0, 200.0);
  Matrix noise(W.rows(), W.cols());
  const CounterRandom random(index, RandomStream::init_own);
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
  std::map<AttractorChoice, std::int64_t> ends;
  for (const DescentRun& run : runs) {
    const bool lost = run.status == RunStatus::diverged;
    if (lost || !(least_decided_lead(choices, run.selected, attention_weights(run.last())) >= decided_lead))
      ++shares.undecided;
    else
      ++ends[choices.of(run.selected)];
  }
  // What the list lacks is judged once for all runs that end there.
  if (!found.complete) {
    std::set<AttractorChoice> known;
    for (const Attractor& one : found.list) known.insert(choices.of(one.tokens));
    for (const auto& [choice, count] : ends) {
      if (known.contains(choice)) continue;
      ++found.examined;
      JudgedChoice judged = judge_choice(choices, choice, found.norm, options.work.stop);
      if (judged.state == ChoiceState::attractor) found.list.push_back(std::move(judged.attractor));
    }
    sort_attractors(found.list);
  }
  for (const Attractor& one : found.list) {
    const auto end = ends.find(choices.of(one.tokens));
    shares.counts.push_back(end == ends.end() ? 0 : end->second);
    if (end != ends.end()) ends.erase(end);
  }
  for (const auto& [choice, count] : ends) shares.elsewhere += count;
  return shares;
}

bool AttractorCheck::holds() const {
  const auto holds_for = [](const Confirmation& one, double needed) {
    return !one.finished || (one.stayed && one.correlation > needed);
  };
  return (plain.finished || normalized.finished || flow.finished) && holds_for(plain, cone_correlation) &&
         holds_for(normalized, start_correlation) && holds_for(flow, start_correlation);
}

std::vector<AttractorCheck> confirm_attractors(const Attention& model, const Attractors& found,
                                               const MarginWork& work) {
  const AttractorChoices choices(model);
  std::vector<AttractorCheck> checks(found.list.size());
  std::vector<NearStart> starts;
  std::vector<DescentTask> tasks;  // plain and normalized, in turn
  for (std::size_t k = 0; k < found.list.size(); ++k) {
    starts.push_back(near_start(choices, found.list[k], k));
    checks[k].R = starts[k].R;
    checks[k].start_correlation = correlation(found.list[k].solution.W, starts[k].W);
    DescentTask task{.model = &model, .optimizer = attractor_optimizer(model, found.p)};
    task.options = {.steps = confirming_steps, .record = RecordSchedule::none()};
    task.options.init.given = start_weights(model, starts[k].W);
    DescentTask plain = task;
    plain.optimizer = plain_optimizer(model, found.p, task.options.init, 0.1 / starts[k].R);
    tasks.push_back(std::move(plain));
    tasks.push_back(std::move(task));
  }
  const auto& progress = work.on_progress;
  ManyOptions many{.threads = work.threads, .stop = work.stop};
  if (progress) many.on_pulse = [&](double share) { progress(0.5 * share); };
  const std::vector<DescentRun> runs = descend_many(tasks, many);
  if (work.stop.requested()) return {};
  for (std::size_t k = 0; k < checks.size(); ++k) {
    checks[k].plain = judge_end(choices, found.list[k], runs[2 * k].last(), runs[2 * k].selected);
    checks[k].normalized =
        judge_end(choices, found.list[k], runs[2 * k + 1].last(), runs[2 * k + 1].selected);
  }
  ThreadPool pool(work.threads);
  pool.run(std::ssize(checks), [&](std::ptrdiff_t index) {
    const auto k = static_cast<std::size_t>(index);
    if (found.p > stiffest_flow) return;
    MirrorFlow flow{.p = found.p, .times = {flow_end}, .keep = Keep::metrics, .stop = work.stop};
    flow.init.given = start_weights(model, starts[k].W);
    const FlowRun run = mirror_flow(model, flow);
    if (run.status == FlowStatus::completed)
      checks[k].flow = judge_end(choices, found.list[k], run.last(), run.selected);
  });
  if (work.stop.requested()) return {};
  return checks;
}

}  // namespace attmirror

#include "base/random.hpp"
#include "descent/ball_solver.hpp"
#include "descent/pulse_timer.hpp"
#include "mirror/spectral.hpp"
#include <attmirror/attention/gradient.hpp>
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/descent/initialization.hpp>
#include <attmirror/descent/regularization_path.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>

#include <fmt/format.h>

namespace attmirror {

namespace {

// A solution at one radius lies within some ten units of the scaled one of the next, whatever the radius: logits that
// compete differ by that much.
constexpr double local_reach = 3;

bool is_factored(const Attention& model) { return std::holds_alternative<KQ>(model.parameterization()); }

// A start with all blocks of the model: fixed blocks as the model has them, trained ones as given, the rest zero.
Parameters complete(const Attention& model, const Parameters& given) {
  Parameters start = model.zero_parameters();
  for (const Block& block : model.trained())
    if (block == Block::v) start.v.setZero();
  Parameters own = given;
  if (is_factored(model) && own.W.size() > 0) {
    const Parameters factors = balanced_factors(own.W, model.rank());
    own.K = factors.K;
    own.Q = factors.Q;
    own.W.resize(0, 0);
  }
  visit_blocks(start, own, [&](const Block& block, auto& into, const auto& from) {
    if (from.size() == 0) return;
    if (!model.has_block(block))
      throw bad_input(fmt::format("a start gives {}, but parameterization {} has no such block",
                                  to_string(block), to_string(model.parameterization())));
    into = from;
  });
  ParameterBlocks(model.blocks()).assign(start);  // shapes and finiteness
  return start;
}

// A loss that no weights change has no path: v = 0, or sequences whose tokens are all equal.
void check_dependence(const Attention& model) {
  if (model.is_trained(Block::v)) return;
  const Parameters any = initial_parameters(model, {.kind = InitKind::normal, .std = 1, .seed = 0});
  const Parameters gradient = loss_and_gradient(model, any).gradient;
  for (const Block& block : model.trained())
    if (!visit_block(gradient, block, [](const auto& m) { return m.isZero(0); })) return;
  throw bad_input("the gradient of the loss is 0: v is 0, or all tokens of each sequence are equal");
}

Parameters random_start(const Attention& model, std::uint64_t seed) {
  Parameters start = initial_parameters(model, {.kind = InitKind::normal, .std = 1, .seed = seed});
  if (model.is_trained(Block::v)) {
    const CounterRandom random(seed, RandomStream::init_decoder);
    for (std::ptrdiff_t j = 0; j < start.v.size(); ++j)
      start.v(j) = random.normal(static_cast<std::uint64_t>(j));
  }
  return start;
}

// log L, where L itself may be far below the smallest double: joint paths drive it to e^-r. NaN where L is
// not positive.
double log_of_loss(const Attention& model, const Parameters& parameters) {
  const std::vector<Vector> probabilities = attention_probabilities(model, parameters);
  const Dataset& data = model.data();
  std::vector<double> terms;
  for (std::size_t j = 0; j < probabilities.size(); ++j) {
    const auto query = static_cast<std::ptrdiff_t>(j);
    const Vector u = data.tokens(data.sequence_of(query)).eigen().transpose() * probabilities[j];
    const double margin = data.labels()[j] * head_value(model.head(), parameters.v, u);
    const double value = loss_value(model.loss(), margin);
    // A loss that vanishes does so like its derivative.
    terms.push_back(value > 1e-290 ? std::log(value)
                    : value >= 0   ? log_abs_loss_derivative(model.loss(), margin)
                                   : std::numeric_limits<double>::quiet_NaN());
  }
  const double largest = *std::ranges::max_element(terms);
  double sum = 0;
  for (const double term : terms) sum += std::exp(term - largest);
  return largest + std::log(sum / static_cast<double>(terms.size()));
}

// Whether `one` has the lower loss, by more than rounding; 0 where neither does.
int compare_losses(const Attention& model, const BallSolution& one, const BallSolution& other) {
  if (std::min(one.loss, other.loss) > 1e-250 || std::min(one.loss, other.loss) < 0) {
    const double slack = 1e-12 * std::abs(other.loss);
    return one.loss < other.loss - slack ? -1 : one.loss > other.loss + slack ? 1 : 0;
  }
  const double a = log_of_loss(model, one.parameters), b = log_of_loss(model, other.parameters);
  return a < b - 1e-9 ? -1 : a > b + 1e-9 ? 1 : 0;
}

double parse_radius(std::string_view word, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size())
    throw bad_input(
        fmt::format("the radii \"{}\" hold \"{}\": expected FROM:TO:COUNT or a list of numbers", text, word));
  return value;
}

std::vector<std::string_view> split(std::string_view text, char mark) {
  std::vector<std::string_view> words;
  for (;;) {
    const std::size_t at = text.find(mark);
    words.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return words;
    text.remove_prefix(at + 1);
  }
}

// What one radius asks of all its starts.
class PathSolver {
 public:
  PathSolver(const Attention& model, const PathOptions& options, const PathCallbacks& callbacks)
      : model_(model), options_(options), callbacks_(callbacks), pool_(options.threads) {
    for (const Parameters& given : options.given) given_.push_back(complete(model, given));
    // The first radius of a global path has none before it.
    starts_total_ = options.radii.size() * starts_each() - (options.kind == PathKind::local ? 0 : 1);
  }

  bool stopped() const { return callbacks_.stop.requested(); }

  // The starts of so many radii are behind us.
  void skip(std::size_t radii) {
    if (radii > 0) starts_done_ = starts_total_ - (options_.radii.size() - radii) * starts_each();
  }

  PathPoint solve(double radius, const std::optional<PathPoint>& neighbour) {
    struct Start {
      int origin;
      Parameters parameters;
    };
    std::vector<Start> starts;
    if (neighbour) starts.push_back({-1, neighbour->parameters});
    if (options_.kind == PathKind::local) {
      if (!neighbour) starts.push_back({1, given_.front()});
    } else {
      // (K,Q) = 0 is stationary: there the first random factors, scaled down, take its place.
      starts.push_back({0, is_factored(model_) ? random_start(model_, options_.seed) : complete(model_, {})});
      int origin = 1;
      for (const Parameters& given : given_) starts.push_back({origin++, given});
      for (int s = 1; s <= options_.starts; ++s)
        starts.push_back({origin++, random_start(model_, options_.seed + static_cast<std::uint64_t>(s))});
    }
    const double r = options_.decoder_scale * std::pow(radius, options_.decoder_power);
    std::vector<BallSolution> solutions(starts.size());
    pool_.run(static_cast<std::ptrdiff_t>(starts.size()), [&](std::ptrdiff_t s) {
      const auto at = static_cast<std::size_t>(s);
      if (stopped()) return;
      BallSolver solver(model_, options_.norm);
      solutions[at] = solver.solve(
          starts[at].parameters,
          {.radius = radius,
           .decoder_radius = r,
           .tol = options_.tol,
           .reach = options_.kind == PathKind::local ? local_reach : std::numeric_limits<double>::infinity(),
           .max_evaluations = options_.max_evaluations,
           .on_step = [this] { report(); },
           .stop = callbacks_.stop});
      ++starts_done_;
    });
    // Losses of the same tokens agree to the last digits of a double; then the first start counts.
    std::size_t best = 0;
    PathPoint point;
    for (std::size_t s = 0; s < solutions.size(); ++s) {
      point.evaluations += solutions[s].evaluations;
      const BallSolution &one = solutions[s], &other = solutions[best];
      if (one.evaluations == 0) continue;
      if (other.evaluations == 0) {
        best = s;
        continue;
      }
      const int order = compare_losses(model_, one, other);
      if (order < 0 || (order == 0 && one.converged && !other.converged)) best = s;
    }
    BallSolution& solution = solutions[best];
    point.radius = radius;
    if (model_.is_trained(Block::v)) point.decoder_radius = r;
    point.loss = solution.loss;
    if (solution.evaluations > 0) point.log_loss = log_of_loss(model_, solution.parameters);
    point.max_softmax = solution.max_softmax;
    point.gap = solution.gap;
    point.start = starts[best].origin;
    point.parameters = std::move(solution.parameters);
    point.status = solution.converged ? PointStatus::converged
                   : stopped()        ? PointStatus::interrupted
                   : solution.gap > 1 ? PointStatus::inside
                                      : PointStatus::stopped;
    if (std::isfinite(solution.gap) && solution.evaluations > 0)
      point.selected = selected_tokens(model_, point.parameters);
    return point;
  }

 private:
  std::size_t starts_each() const {
    return options_.kind == PathKind::local ? 1
                                            : 2 + given_.size() + static_cast<std::size_t>(options_.starts);
  }

  // From any thread, at every step.
  void report() {
    if (!callbacks_.on_progress) return;
    const std::scoped_lock lock(one_at_a_time_);
    if (!stopped() && timer_.due() && timer_.pulse())
      callbacks_.on_progress(static_cast<double>(starts_done_) / static_cast<double>(starts_total_));
  }

  const Attention& model_;
  const PathOptions& options_;
  const PathCallbacks& callbacks_;
  ThreadPool pool_;
  std::vector<Parameters> given_;
  std::mutex one_at_a_time_;
  PulseTimer timer_;
  std::atomic<std::size_t> starts_done_ = 0;
  std::size_t starts_total_ = 1;
};

void check_finished(const std::vector<PathPoint>& finished, const std::vector<double>& order) {
  for (std::size_t k = 0; k < finished.size(); ++k)
    if (k >= order.size() || finished[k].radius != order[k])
      throw bad_input(fmt::format("radius {} is finished: expected {}", finished[k].radius,
                                  k < order.size() ? fmt::format("{}, the next of the radii", order[k])
                                                   : fmt::format("at most {} radii", order.size())));
}

}  // namespace

std::string_view to_string(PathKind kind) { return kind == PathKind::global ? "global" : "local"; }

std::string_view to_string(PointStatus status) {
  switch (status) {
    case PointStatus::converged:
      return "converged";
    case PointStatus::inside:
      return "inside";
    case PointStatus::stopped:
      return "stopped";
    case PointStatus::interrupted:
      return "interrupted";
  }
  return "unknown";
}

std::vector<double> geometric_radii(double from, double to, int count) {
  if (!(from > 0) || !std::isfinite(from) || !(to >= from) || !std::isfinite(to) || count < 1 ||
      (count == 1 && from != to))
    throw bad_input(fmt::format(
        "radii from {} to {} in {} steps: expected 0 < from <= to and 2 or more steps", from, to, count));
  std::vector<double> radii;
  for (int k = 0; k < count; ++k)
    radii.push_back(k + 1 == count ? to : from * std::pow(to / from, static_cast<double>(k) / (count - 1)));
  return radii;
}

std::vector<double> parse_radii(std::string_view text) {
  if (const std::vector<std::string_view> words = split(text, ':'); words.size() == 3) {
    const double count = parse_radius(words[2], text);
    if (!(count >= 1 && count <= 100'000 && count == std::floor(count)))
      throw bad_input(fmt::format("the radii \"{}\" are {} in number: expected 1 to 100000", text, words[2]));
    return geometric_radii(parse_radius(words[0], text), parse_radius(words[1], text),
                           static_cast<int>(count));
  }
  std::vector<double> radii;
  for (const std::string_view word : split(text, ',')) radii.push_back(parse_radius(word, text));
  return radii;
}

void PathOptions::validate(const Attention& model) const {
  if (is_factored(model)) {
    if (norm != Norm::nuclear())
      throw bad_input(fmt::format("the norm is {}: paths of (K,Q) are those of the nuclear norm of K Q^T",
                                  to_string(norm)));
  } else if (!(norm.p() > 1 && std::isfinite(norm.p()))) {
    throw bad_input(
        fmt::format("the norm is {}: expected l_p or Schatten-p with 1 < p < infinity{}", to_string(norm),
                    norm == Norm::nuclear() ? "; paths of the nuclear norm are those of (K,Q)" : ""));
  }
  if (radii.empty()) throw bad_input("there are no radii");
  for (std::size_t k = 0; k < radii.size(); ++k) {
    if (!(radii[k] > 0) || !(radii[k] <= 1e12))
      throw bad_input(fmt::format("radii[{}] is {}: expected a number in (0, 1e12]", k, radii[k]));
    if (k > 0 && radii[k] <= radii[k - 1])
      throw bad_input(
          fmt::format("radii[{}] is {} after {}: expected ascending radii", k, radii[k], radii[k - 1]));
  }
  if (!(decoder_scale > 0) || !std::isfinite(decoder_scale))
    throw bad_input(fmt::format("decoder_scale is {}: expected a positive number", decoder_scale));
  if (!(decoder_power >= 0 && decoder_power <= 10))
    throw bad_input(fmt::format("decoder_power is {}: expected 0 to 10", decoder_power));
  if (starts < 0 || starts > 1'000'000)
    throw bad_input(fmt::format("starts is {}: expected 0 to 1000000", starts));
  if (kind == PathKind::local && given.size() != 1)
    throw bad_input(fmt::format("a local path has {} directions to start from: expected 1", given.size()));
  if (!(tol >= 1e-14 && tol < 1)) throw bad_input(fmt::format("tol is {}: expected 1e-14 to 1", tol));
  if (max_evaluations < 1)
    throw bad_input(fmt::format("max_evaluations is {}: expected 1 or more", max_evaluations));
  if (threads < 0) throw bad_input(fmt::format("threads is {}: expected 0 or more", threads));
  for (const Parameters& one : given) {
    const Parameters start = complete(model, one);
    for (const Block& block : model.trained())
      if (block != Block::v && visit_block(start, block, [](const auto& m) { return m.isZero(0); }))
        throw bad_input(fmt::format("a start has {} = 0: expected a direction", to_string(block)));
  }
  check_dependence(model);
  if (model.is_trained(Block::K) != model.is_trained(Block::Q))
    throw bad_input("one of K and Q is trained: a path of (K,Q) needs both");
  if (model.penalty() != 0)
    throw bad_input(fmt::format("the penalty is {}: a path has its ball instead", model.penalty()));
}

bool RegularizationPath::converged() const {
  return points.size() == options.radii.size() &&
         std::ranges::all_of(points, [](const PathPoint& p) { return p.status == PointStatus::converged; });
}

RegularizationPath regularization_path(const Attention& model, const PathOptions& options,
                                       const PathCallbacks& callbacks, std::vector<PathPoint> finished) {
  options.validate(model);
  RegularizationPath path;
  path.options = options;
  std::vector<double> order = options.radii;
  std::ranges::sort(finished, {}, &PathPoint::radius);
  if (options.kind == PathKind::local) {
    std::ranges::reverse(order);
    std::ranges::reverse(finished);
  }
  check_finished(finished, order);
  PathSolver solver(model, path.options, callbacks);
  solver.skip(finished.size());
  std::optional<PathPoint> neighbour;
  if (!finished.empty()) neighbour = finished.back();
  path.points = std::move(finished);
  for (std::size_t k = path.points.size(); k < order.size(); ++k) {
    PathPoint point = solver.solve(order[k], neighbour);
    if (solver.stopped()) {
      path.interrupted = true;
      break;
    }
    if (callbacks.on_point) callbacks.on_point(point);
    neighbour = point;
    path.points.push_back(std::move(point));
  }
  std::ranges::sort(path.points, {}, &PathPoint::radius);
  return path;
}

Parameters balanced_factors(const Matrix& W, std::ptrdiff_t m) {
  if (W.size() == 0 || m < 1) throw bad_input("there is nothing to factor");
  Svd svd(W.rows(), W.cols());
  svd.compute(PaddedMatrix(W).view());
  Parameters factors;
  factors.K = Matrix::Zero(W.rows(), m);
  factors.Q = Matrix::Zero(W.cols(), m);
  for (std::ptrdiff_t k = 0; k < std::min({m, W.rows(), W.cols()}); ++k) {
    const double root = std::sqrt(svd.value(k));
    factors.K.col(k) = root * svd.left().eigen().row(k).transpose();
    factors.Q.col(k) = root * svd.right().eigen().row(k).transpose();
  }
  return factors;
}

}  // namespace attmirror

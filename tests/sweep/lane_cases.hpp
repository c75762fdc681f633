// Random trainings of all kinds that can run in lanes, drawn from a seed, and the comparison of two runs to the bit.
#pragma once

#include <attmirror/sweep/many.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace attmirror {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  std::int64_t whole(std::int64_t low, std::int64_t high) {  // both included
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool once_in(std::int64_t times) { return whole(1, times) == 1; }
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  double normal() {
    return std::sqrt(-2 * std::log(uniform() + 0x1p-60)) * std::cos(6.283185307179586 * uniform());
  }
  double power_of_ten(double low, double high) { return std::pow(10.0, low + (high - low) * uniform()); }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[whole(0, static_cast<std::int64_t>(values.size()) - 1)];
  }
  Matrix matrix(std::ptrdiff_t rows, std::ptrdiff_t cols, double scale) {
    return Matrix::NullaryExpr(rows, cols, [&] { return scale * normal(); });
  }

 private:
  std::mt19937_64 engine_;
};

// Data and models stay where they are while tasks point at them.
struct LaneCase {
  std::deque<Dataset> data{};
  std::deque<Attention> models{};
  std::vector<DescentTask> tasks{};
};

// What all tasks of a group have in common.
struct LaneGroup {
  std::ptrdiff_t n = 1, T = 1, d = 1, head_rows = 1;
  bool key_weights = false;
  std::int64_t steps = 60;
  Parameterization parameterization{};
  Loss loss{};
  AttentionOptions options{};
  Optimizer optimizer{};
};

inline Optimizer draw_optimizer(Draw& draw, bool allow_polyak) {
  Schedule schedule;
  if (draw.once_in(3)) schedule = {.kind = ScheduleKind::power, .exponent = draw.one_of({0.5, 0.3, 1.0})};
  const bool normalized = !draw.once_in(3);
  const EpsPolicy eps = draw.once_in(3) ? EpsPolicy::paper : EpsPolicy::exact;
  std::optional<Jacobian> jacobian;
  if (draw.once_in(3)) jacobian = draw.one_of({Jacobian::safe, Jacobian::textbook});
  if (draw.once_in(4)) {
    if (allow_polyak && !normalized && draw.once_in(2)) schedule = {.kind = ScheduleKind::polyak};
    return GradientDescent{.normalized = normalized, .eps = eps, .jacobian = jacobian, .schedule = schedule};
  }
  MirrorDescent md{.normalized = normalized, .eps = eps, .jacobian = jacobian, .schedule = schedule};
  md.p = draw.one_of({1.05, 1.1, 1.25, 4.0 / 3.0, 1.5, 1.75, 1.9, 2.0, 2.0, 2.5, 3.0, 3.0, 4.0, 7.0});
  if (draw.once_in(8)) md.p = 1.02 + 4 * draw.uniform();
  md.power_path = draw.once_in(4) ? PowerPath::general : PowerPath::fast;
  if (md.p == 2 && allow_polyak && !normalized && draw.once_in(2))
    md.schedule = {.kind = ScheduleKind::polyak};
  return md;
}

inline LaneGroup draw_group(Draw& draw) {
  LaneGroup group;
  const bool small = !draw.once_in(3);
  group.n = draw.whole(1, small ? 6 : 15);
  group.T = draw.whole(1, small ? 8 : 15);
  group.d = draw.whole(1, small ? 10 : 20);
  group.head_rows = draw.whole(1, 6);
  group.loss =
      draw.one_of<Loss>({Logistic{}, Logistic{}, Logistic{}, Exponential{}, LinearLoss{}, Sigmoid{}});
  switch (draw.whole(0, 3)) {
    case 0:
      group.parameterization = KQ{.rank = draw.whole(0, group.d)};
      break;
    case 1:
      group.parameterization = Prompt{};
      group.key_weights = draw.once_in(2);
      break;
    default:
      break;
  }
  if (draw.once_in(4)) group.options.head = ReluHead{};
  if (draw.once_in(4)) group.options.head = QuadraticHead{.lambda = draw.uniform()};
  group.options.scaled = draw.once_in(3);
  std::vector<Block> own{Block::W};
  if (std::holds_alternative<KQ>(group.parameterization)) own = {Block::K, Block::Q};
  if (std::holds_alternative<Prompt>(group.parameterization)) own = {Block::p};
  if (draw.once_in(3)) {  // any of the blocks
    if (uses_decoder(group.options.head)) own.push_back(Block::v);
    while (group.options.train.empty())
      for (const Block block : own)
        if (draw.once_in(2)) group.options.train.push_back(block);
  }
  if (draw.once_in(4) && group.options.train != std::vector{Block::v})
    group.options.penalty = draw.one_of({2.2e-16, 1e-3, 0.1});
  group.optimizer = draw_optimizer(draw, !std::holds_alternative<LinearLoss>(group.loss));
  return group;
}

// A task of the group with data, start, lr and stopping of its own.
inline void add_task(LaneCase& into, const LaneGroup& group, Draw& draw) {
  const double scale = draw.once_in(6) ? draw.power_of_ten(-12, 3) : 1.0;
  DatasetArrays arrays;
  arrays.tokens = draw.matrix(group.n * group.T, group.d, scale);
  if (draw.once_in(6) && group.T > 1) arrays.tokens.row(1) = arrays.tokens.row(0);  // equal logits and scores
  arrays.lengths.assign(static_cast<std::size_t>(group.n), group.T);
  if (draw.once_in(3))
    for (std::ptrdiff_t i = 0; i < group.n; ++i) arrays.query_index.push_back(draw.whole(0, group.T - 1));
  else
    arrays.queries = draw.matrix(group.n, group.d, 1);
  for (std::ptrdiff_t i = 0; i < group.n; ++i) arrays.labels.push_back(draw.once_in(2) ? 1 : -1);
  arrays.decoder = draw.matrix(group.d, 1, draw.once_in(20) ? 0.0 : 1.0);
  arrays.head = draw.matrix(group.d, group.head_rows, 1);
  into.data.emplace_back(arrays);
  Parameterization parameterization = group.parameterization;
  if (group.key_weights) parameterization = Prompt{.key_weights = draw.matrix(group.d, group.d, 1)};
  into.models.emplace_back(into.data.back(), parameterization, group.loss, group.options);

  DescentTask task;
  task.model = &into.models.back();
  task.optimizer = group.optimizer;
  const double lr = draw.power_of_ten(-2, 0.5);
  std::visit([&](auto& options) { options.lr = lr; }, task.optimizer);
  task.options.steps = group.steps;
  if (draw.once_in(3)) task.options.steps = draw.whole(0, group.steps);
  if (draw.once_in(4)) task.options.saturation = 0.5 + 0.5 * draw.uniform();
  task.options.record =
      draw.one_of({RecordSchedule::log_spaced(), RecordSchedule::every(7), RecordSchedule::none()});
  task.options.keep = draw.one_of({Keep::metrics, Keep::parameters});
  task.options.path = draw.one_of({DataPath::automatic, DataPath::block});
  task.options.init.kind = draw.one_of({InitKind::zero, InitKind::normal, InitKind::uniform});
  if (std::holds_alternative<KQ>(parameterization) && task.options.init.kind == InitKind::zero)
    task.options.init.kind = InitKind::normal;
  task.options.init.std = draw.once_in(4) ? draw.power_of_ten(-6, 3) : 1.0;
  task.options.init.seed = static_cast<std::uint64_t>(draw.whole(0, 1 << 20));
  into.tasks.push_back(task);
}

// ---- comparison
// ----------------------------------------------------------------------------------------------------

// NaNs are equal whatever bits the processor gave them.
inline bool same_bits_or_nan(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (a != a && b != b);
}

template <class M>
std::string difference(const char* name, const M& a, const M& b) {
  if (a.rows() != b.rows() || a.cols() != b.cols()) return fmt::format("{} has another shape", name);
  for (std::ptrdiff_t i = 0; i < a.rows(); ++i)
    for (std::ptrdiff_t j = 0; j < a.cols(); ++j)
      if (!same_bits_or_nan(a(i, j), b(i, j)))
        return fmt::format("{}({}, {}) is {} and {}", name, i, j, a(i, j), b(i, j));
  return "";
}

inline std::string difference(const char* name, double a, double b) {
  return same_bits_or_nan(a, b) ? "" : fmt::format("{} is {} and {}", name, a, b);
}

inline std::string difference(const Parameters& a, const Parameters& b) {
  for (const std::string& text :
       {difference("W", a.W, b.W), difference("K", a.K, b.K), difference("Q", a.Q, b.Q),
        difference("p", Matrix(a.p), Matrix(b.p)), difference("v", Matrix(a.v), Matrix(b.v))})
    if (!text.empty()) return text;
  return "";
}

// The first difference between two runs, or nothing. Only `seconds` may differ.
inline std::string difference(const DescentRun& a, const DescentRun& b) {
  if (a.status != b.status)
    return fmt::format("status is {} and {}", to_string(a.status), to_string(b.status));
  if (a.steps != b.steps) return fmt::format("steps are {} and {}", a.steps, b.steps);
  if (a.records.size() != b.records.size())
    return fmt::format("there are {} and {} records", a.records.size(), b.records.size());
  for (std::size_t r = 0; r < a.records.size(); ++r) {
    const Record &x = a.records[r], &y = b.records[r];
    if (x.step != y.step || x.scheduled != y.scheduled) return fmt::format("record {} is another one", r);
    for (const std::string& text :
         {difference("loss", x.loss, y.loss), difference("max_softmax", x.max_softmax, y.max_softmax),
          difference("norm", x.norm, y.norm), difference(x.parameters, y.parameters)})
      if (!text.empty()) return fmt::format("at step {}: {}", x.step, text);
  }
  for (const std::string& text :
       {difference("loss", a.loss, b.loss), difference("max_softmax", a.max_softmax, b.max_softmax),
        difference(a.final_parameters, b.final_parameters), difference("norm", a.norm, b.norm)})
    if (!text.empty()) return fmt::format("after {} steps: {}", a.steps, text);
  return a.selected.tokens == b.selected.tokens ? "" : "other tokens are selected";
}

}  // namespace attmirror

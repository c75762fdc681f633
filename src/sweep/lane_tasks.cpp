// Which trainings can run in lanes, and which of them side by side.
//
// A lane repeats what descend() does on a single block of data: every operation must be the same in all lanes. So
// sequences have one query and equal lengths, and what decides which operations are done is part of the group's text.
#include "attention/query_layout.hpp"
#include "sweep/lane_memory.hpp"
#include "sweep/lane_rule.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/sweep/many.hpp>

#include <fmt/format.h>

namespace attmirror {

namespace {

// An optimizer that is not listed here does not compile.
struct FindLaneRule {
  using Answer = std::variant<LaneRule, std::string>;
  template <class Options>
  static Answer unless_momentum(const Options& o) {
    if (o.momentum.kind != MomentumKind::none) return "momentum";
    return LaneRule(o);
  }
  Answer operator()(const MirrorDescent& o) const {
    if (o.geometry != Geometry::lp) return fmt::format("the geometry {}", to_string(o.geometry));
    return unless_momentum(o);
  }
  Answer operator()(const GradientDescent& o) const { return unless_momentum(o); }
  Answer operator()(const SteepestDescent&) const { return "steepest descent"; }
  Answer operator()(const Adam&) const { return "Adam"; }
  Answer operator()(const Lion&) const { return "Lion"; }
  Answer operator()(const AdaGrad&) const { return "AdaGrad"; }
};

// What of the rule is the same for all lanes of a group: all but lr.
struct DescribeRule {
  template <class Options>
  static std::string policies(const Options& o) {
    return fmt::format("{}, eps {} {}, schedule {}", o.normalized ? "normalized" : "plain", to_string(o.eps),
                       o.eps_value, to_string(o.schedule));
  }
  std::string operator()(const MirrorDescent& o) const {
    return fmt::format("md, p {}, powers {}, {}", o.p, to_string(o.power_path), policies(o));
  }
  std::string operator()(const GradientDescent& o) const { return fmt::format("gd, {}", policies(o)); }
};

// What a head's name does not say, and is the same for all lanes of a group.
struct DescribeHeadSize {
  std::string operator()(const LinearHead&) const { return ""; }
  std::string operator()(const ReluHead& head) const { return fmt::format(" of {}", head.V.cols()); }
  std::string operator()(const QuadraticHead&) const { return ""; }
  std::string operator()(const std::shared_ptr<const CustomHead>&) const { return ""; }
};

const Attention& model_of(const DescentTask& task) {
  if (task.model == nullptr) throw bad_input("the model of a lane's task is null");
  return *task.model;
}

}  // namespace

std::variant<LaneRule, std::string> lane_rule(const Optimizer& optimizer) {
  return std::visit(FindLaneRule{}, optimizer);
}

std::string why_not_in_lanes(const DescentTask& task) {
  if (task.objective != nullptr) return "an objective of its own";
  const Attention& model = model_of(task);
  const Dataset& data = model.data();
  if (const auto rule = lane_rule(task.optimizer); const auto* reason = std::get_if<std::string>(&rule))
    return *reason;
  if (std::holds_alternative<std::shared_ptr<const CustomLoss>>(model.loss())) return "a custom loss";
  if (std::holds_alternative<std::shared_ptr<const CustomHead>>(model.head())) return "a custom head";
  if (task.options.max_seconds > 0) return "a limit of time";
  if (task.options.storage != TokenStorage::float64) return "tokens stored as float32";
  if (data.mask() != Mask::none) return "a mask";
  if (!data.one_query_each()) return "several queries per sequence";
  if (!data.equal_lengths()) return "sequences of different lengths";
  const QueryLayout layout(model, task.options.path);
  if (layout.path != DataPath::block) return "the data path stream";
  if (layout.block_starts.size() > 2) return "data of more than one block";
  return "";
}

std::string lane_group(const DescentTask& task) {
  if (const std::string reason = why_not_in_lanes(task); !reason.empty())
    throw bad_input(fmt::format("a task with {} cannot run in a lane", reason));
  const Attention& model = *task.model;
  const Dataset& data = model.data();
  std::string text = fmt::format("{}x{}x{}, {} of rank {}", data.samples(), data.max_length(), data.dim(),
                                 to_string(model.parameterization()), model.rank());
  if (const auto* prompt = std::get_if<Prompt>(&model.parameterization());
      prompt != nullptr && prompt->key_weights.size() > 0)
    text += " with key weights";
  text += ", trains";
  for (const Block& block : model.trained()) text += fmt::format(" {}", to_string(block));
  text += fmt::format(", loss {}, head {}", to_string(model.loss()), to_string(model.head()));
  text += std::visit(DescribeHeadSize{}, model.head());
  text += fmt::format(", logits times {}, penalty {}, jacobian {}; ", model.logit_scale(), model.penalty(),
                      to_string(jacobian_for(task.optimizer)));
  return text + std::visit(DescribeRule{}, std::get<LaneRule>(lane_rule(task.optimizer)));
}

void LaneOptions::validate() const {
  if (width != 0 && width != 1 && width != 2 && width != 4 && width != 8)
    throw bad_input(fmt::format("width is {}: expected 1, 2, 4 or 8, or 0 for what fits", width));
}

std::ptrdiff_t lane_width() {
  std::ptrdiff_t widest = 1;
  for (const kernels::LaneKernels& kernels : lane_table().kernels) widest = std::max(widest, kernels.width);
  return widest;
}

}  // namespace attmirror

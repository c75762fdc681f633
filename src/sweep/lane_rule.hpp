// The update rules that run in lanes. lane_tasks.cpp says of every optimizer whether it is one of them, or why
// not. Internal.
#pragma once

#include <attmirror/descent/optimizer.hpp>

#include <string>
#include <variant>

namespace attmirror {

using LaneRule = std::variant<MirrorDescent, GradientDescent>;

// The rule, or what keeps the optimizer out of lanes.
std::variant<LaneRule, std::string> lane_rule(const Optimizer& optimizer);

}  // namespace attmirror

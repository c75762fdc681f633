// An optimizer as the object "optimizer" of config.json, and back.
#pragma once

#include "base/json.hpp"
#include <attmirror/descent/optimizer.hpp>

#include <string_view>

namespace attmirror {

// "md", "gd", "steepest" or "adam": the kind of object in config.json.
std::string_view kind_of(const Optimizer& optimizer);

// Everything that decides the rule, defaults included; what the optimizer does not use is left out.
Json optimizer_json(const Optimizer& optimizer);

// Fields that the first version did not write (geometry, momentum, schedule) have their defaults where they
// are missing. Throws Error (bad input) or a nlohmann exception when the object is none of ours.
Optimizer parse_optimizer(const Json& json);

}  // namespace attmirror

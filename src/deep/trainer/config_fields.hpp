// The keys of a training's configuration: "optimizer.p" is p of TrainConfig::optimizer. Internal.
#pragma once

#include "base/fields.hpp"
#include <attmirror/deep/train_config.hpp>

#include <string_view>

namespace attmirror {

const Fields<TrainConfig>& config_fields();

// What a model of a kind and an optimizer of a name start from.
ModelConfig model_preset(std::string_view kind);
OptimizerConfig optimizer_preset(std::string_view name);

// The name of an optimizer as method_names has it: version 0.1.0 called muon-adamw muon.
std::string_view current_method(std::string_view name);

}  // namespace attmirror

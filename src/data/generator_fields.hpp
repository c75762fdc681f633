// The settings of generators as users name them: the options of `attmirror generate`, the data of a sweep. Internal.
#pragma once

#include "base/fields.hpp"
#include "data/generator_kinds.hpp"

namespace attmirror {

const Fields<GeneratorSettings>& generator_fields();

// The default of a setting, with the kinds that have another: "6; 3 for relu, orthonormal".
std::string generator_default(const FieldInfo& field);

}  // namespace attmirror

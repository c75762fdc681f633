// A model and its start, and where a run ends, as users name them: the options of `attmirror train` and the settings
// of a sweep besides those of the optimizer. Internal.
#pragma once

#include "base/fields.hpp"
#include "descent/model_plan.hpp"
#include <attmirror/descent/descend.hpp>

#include <initializer_list>
#include <string_view>
#include <vector>

namespace attmirror {

const Fields<ModelPlan>& model_fields();
const Fields<DescentOptions>& descent_fields();

// Throws Error (bad input) for words that do not parse or exclude each other. Reads no file.
ModelPlan plan_model(const Given& given);

// Every field that has an effect, defaults included; plan_model() gives an equal plan.
Given given_of(const ModelPlan& plan);

// Those of the table with these names, or all, as front ends take them.
template <class Options>
std::vector<const FieldInfo*> infos(const Fields<Options>& fields,
                                    std::initializer_list<std::string_view> names = {}) {
  std::vector<const FieldInfo*> list;
  for (const FieldInfo& field : fields)
    if (names.size() == 0 || std::find(names.begin(), names.end(), field.name) != names.end())
      list.push_back(&field);
  return list;
}

// What the table says of a field, for commands that have an option like it. The name must be one.
const FieldInfo& training_field(std::string_view name);

// All fields of a training: of its optimizer, its model and its length.
const std::vector<const FieldInfo*>& training_fields();

}  // namespace attmirror

// Options of the command from the tables of fields (base/fields.hpp): names, help, choices and defaults are theirs.
#pragma once

#include "base/fields.hpp"
#include "cli/options.hpp"
#include "descent/model_fields.hpp"
#include "descent/optimizer_fields.hpp"

#include <functional>
#include <string>
#include <vector>

namespace attmirror::cli {

// What --help shows as the default of a field; nothing where it has none.
using DefaultText = std::function<std::string(const FieldInfo&)>;

// An option for each field; what is given arrives in `given`, which must outlive the parsing. A flag with an opposite
// has two options.
void add_field_options(CLI::App& app, const std::vector<const FieldInfo*>& fields, Given& given,
                       const std::string& group, const DefaultText& default_text);

// The same with the defaults of the options as they are made.
template <class Options>
void add_field_options(CLI::App& app, const Fields<Options>& fields, Given& given, const std::string& group,
                       std::initializer_list<std::string_view> names = {}) {
  add_field_options(app, infos(fields, names), given, group, [&fields](const FieldInfo& info) {
    for (const Field<Options>& field : fields)
      if (field.name == info.name) return default_text(field);
    return std::string();
  });
}

void add_optimizer_options(CLI::App& app, Given& given);

// Throws Error (bad input) besides for --unnormalized where steps are not normalized anyway.
Optimizer optimizer_given(const Given& given);

}  // namespace attmirror::cli

// Fields of options as members of a JSON object, and back. Internal.
#pragma once

#include "base/fields.hpp"
#include "base/json.hpp"

namespace attmirror {

Json to_json(const FieldValue& value);

// Throws a nlohmann exception for a value of another type.
FieldValue parse_field(const FieldInfo& info, const Json& json);

// Every field that has an effect, or is recorded nevertheless, in the order of the table.
template <class Options>
void put_fields(const Fields<Options>& fields, const Options& options, Json& json) {
  for (const Field<Options>& field : fields) {
    const FieldValue value = field.kept_idle ? field.read(options) : field.get(options);
    if (value.index() != 0) json[field.in_json()] = to_json(value);
  }
}

// Throws Error (bad input) for a value that is none, a nlohmann exception for one that is missing or of another type.
template <class Options>
void get_fields(const Fields<Options>& fields, const Json& json, Options& options) {
  for (const Field<Options>& field : fields) {
    const auto found = json.find(field.in_json());
    if (found == json.end() && (field.may_lack || !field.has_effect(options))) continue;
    const FieldValue value = parse_field(field, json.at(field.in_json()));
    field.set(options, value);
  }
}

}  // namespace attmirror

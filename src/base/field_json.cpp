#include "base/field_json.hpp"

#include "base/json_numbers.hpp"

namespace attmirror {

Json to_json(const FieldValue& value) {
  return std::visit(
      [](const auto& v) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::monostate>)
          return nullptr;
        else
          return v;
      },
      value);
}

FieldValue parse_field(const FieldInfo& info, const Json& json) {
  switch (info.kind) {
    case FieldKind::flag:
      return json.get<bool>();
    case FieldKind::count:
      return whole_number<std::int64_t>(json);
    case FieldKind::seed:
      return whole_number<std::uint64_t>(json);
    case FieldKind::number:
      return json.get<double>();
    case FieldKind::pair:
      return json.get<std::array<double, 2>>();
    case FieldKind::word:
    case FieldKind::norm:
    case FieldKind::path:
      return json.get<std::string>();
  }
  return {};
}

}  // namespace attmirror

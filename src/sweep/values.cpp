// One value of a setting, checked where it stands: the message can name the axis then.
#include "base/toml_fields.hpp"
#include "sweep/axes.hpp"
#include <attmirror/base/error.hpp>

#include <fmt/format.h>

namespace attmirror {

Cell read_value(const Setting& setting, const TomlValue& value, const std::string& place) {
  try {
    const FieldValue read = read_toml(setting.field, value);
    if (const auto* text = std::get_if<std::string>(&read); text != nullptr && setting.check)
      setting.check(*text);
    return to_cell(read);
  } catch (const Error& error) {
    // "p is 0.9: expected ..." after `axis "p"` would say the name twice.
    std::string message = error.message(setting_spelling);
    const std::string begin = setting.info.name + " is ";
    if (message.starts_with(begin)) message.erase(0, begin.size());
    if (value.as<TomlArray>() != nullptr) message += "; values that vary belong under [grid]";
    throw Error(error.kind(), fmt::format("{}: {}", place, message),
                {.field = error.field(), .index = error.index(), .value = error.value()});
  }
}

}  // namespace attmirror

// The keys of a training's configuration, each with its type, range and place in TrainConfig. Internal.
#pragma once

#include "base/json.hpp"
#include "sweep/toml_document.hpp"
#include <attmirror/deep/train_config.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// Whether runs that differ in it are the same training.
enum class FieldRole { result, place };

// Paths are relative to the file in which they stand.
enum class FieldValue { plain, path };

struct ConfigField {
  std::string table, key;
  std::string expected;  // "a number greater than 0"
  FieldRole role = FieldRole::result;
  FieldValue value = FieldValue::plain;
  std::vector<std::string_view> kinds;  // what it is for ("md", "vit"); empty: everything
  // False where the value is not what is expected.
  std::function<bool(TrainConfig&, const TomlValue&)> read;
  std::function<Json(const TrainConfig&)> write;

  std::string name() const { return table + "." + key; }
};

const std::vector<ConfigField>& config_fields();

}  // namespace attmirror

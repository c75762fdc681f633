// From TOML to TrainConfig. Which keys there are is said in config_fields.cpp; here is how they are found, in which order
// they are read (kinds first: they choose the defaults of the rest), and what is said when one is wrong.
#include "base/words.hpp"
#include "deep/trainer/config_fields.hpp"
#include <attmirror/base/atomic_file.hpp>
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr std::string_view config_format = "attmirror deep training";
constexpr std::int64_t config_version = 1;
constexpr std::array<std::string_view, 4> table_names{"data", "model", "optimizer", "train"};

// A key as somebody gave it.
struct GivenKey {
  const ConfigField* field = nullptr;
  TomlValue value;
  std::string where;             // "sst2.toml: line 7", "--set optimizer.p=x"
  std::filesystem::path folder;  // that relative paths are relative to
  bool is_override = false;
};

std::string tables_text() { return "[data], [model], [optimizer] or [train]"; }

const ConfigField& field_named(std::string_view table, std::string_view key, const std::string& value,
                               const std::string& where) {
  std::vector<std::string_view> keys;
  for (const ConfigField& field : config_fields()) {
    if (field.table != table) continue;
    if (field.key == key) return field;
    keys.push_back(field.key);
  }
  std::string hint = did_you_mean(key, keys);
  // A key of another table: "batch" in [data].
  for (const ConfigField& field : config_fields())
    if (field.key == key) hint = fmt::format(", did you mean \"{}\" of [{}]?", key, field.table);
  throw bad_input(
      fmt::format("{}: {}.{} is {}: there is no such key in [{}]{}", where, table, key, value, table, hint));
}

void add_file_keys(std::string_view text, const std::string& name, const std::filesystem::path& folder,
                   std::vector<GivenKey>& given) {
  for (const TomlEntry& table : parse_toml(text, name)) {
    const std::string where = fmt::format("{}: line {}", name, table.value.line);
    if (std::ranges::find(table_names, table.key) == table_names.end())
      throw bad_input(fmt::format("{}: there is no table {}: expected {}{}", where,
                                  in_double_quotes(table.key), tables_text(),
                                  did_you_mean(table.key, {table_names.begin(), table_names.end()})));
    const auto* entries = table.value.as<TomlTable>();
    if (entries == nullptr)
      throw bad_input(fmt::format("{}: {} is {}: expected a table", where, table.key, to_text(table.value)));
    for (const TomlEntry& entry : *entries) {
      const std::string line = fmt::format("{}: line {}", name, entry.value.line);
      given.push_back(
          {&field_named(table.key, entry.key, to_text(entry.value), line), entry.value, line, folder, false});
    }
  }
}

// "optimizer.p=1.1". What TOML cannot read is a bare word: optimizer.name=md, data.train=dev.tsv.
GivenKey override_key(const std::string& text) {
  const std::string where = fmt::format("--set {}", one_line(text));
  const std::size_t equals = text.find('='), dot = text.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot > equals)
    throw bad_input(fmt::format("{}: expected TABLE.KEY=VALUE, as in optimizer.p=1.1", where));
  const std::string table = text.substr(0, dot), key = text.substr(dot + 1, equals - dot - 1),
                    words = text.substr(equals + 1);
  if (std::ranges::find(table_names, table) == table_names.end())
    throw bad_input(fmt::format("{}: there is no table \"{}\": expected {}{}", where, one_line(table),
                                tables_text(),
                                did_you_mean(table, {table_names.begin(), table_names.end()})));
  TomlValue value{words, 0};
  try {
    const TomlTable parsed = parse_toml("value = " + words + "\n", "--set");
    if (parsed.size() == 1 && parsed.front().value.as<TomlDate>() == nullptr) value = parsed.front().value;
  } catch (const Error&) {
    // A bare word.
  }
  return {&field_named(table, key, to_text(value), where), value, where, std::filesystem::current_path(),
          true};
}

// Options of P1, and of those who use the others: what a kind or an optimizer starts from.
void apply_model_kind(TrainConfig& config) {
  if (config.model.kind != "vit") return;
  config.model.width = 512;
  config.model.blocks = 6;
  config.model.heads = 8;
  config.model.hidden = 512;
  config.model.dropout = 0.1;
}

void apply_optimizer_name(OptimizerConfig& optimizer) {
  if (optimizer.name == "gd") {
    optimizer.lr = 4e-4;
    optimizer.p = 2;
  } else if (optimizer.name == "adam" || optimizer.name == "adamw") {
    optimizer.lr = 1e-4;
    if (optimizer.name == "adamw") optimizer.weight_decay = 0.01;
  } else if (optimizer.name == "muon") {
    optimizer.lr = 0.02;
    optimizer.momentum = 0.95;
    optimizer.nesterov = true;
  } else if (optimizer.name == "sign") {
    optimizer.lr = 1e-4;
  }
}

void read_key(TrainConfig& config, const GivenKey& given) {
  const ConfigField& field = *given.field;
  TomlValue value = given.value;
  if (auto* text = std::get_if<std::string>(&value.value);
      text != nullptr && field.value == FieldValue::path && !text->empty())
    *text = (given.folder / *text).lexically_normal().string();
  if (!field.read(config, value))
    throw bad_input(fmt::format("{}: {} is {}: expected {}", given.where, field.name(), to_text(given.value),
                                field.expected));
}

// What a field is for: the name of the optimizer, the kind of its table.
std::string chosen_kind(const TrainConfig& config, std::string_view table) {
  if (table == "data") return config.data.kind;
  if (table == "model") return config.model.kind;
  return config.optimizer.name;
}

bool applies(const TrainConfig& config, const GivenKey& given) {
  const std::vector<std::string_view>& kinds = given.field->kinds;
  return kinds.empty() || std::ranges::find(kinds, chosen_kind(config, given.field->table)) != kinds.end();
}

void check_applies(const TrainConfig& config, const GivenKey& given) {
  if (applies(config, given)) return;
  const ConfigField& field = *given.field;
  throw bad_input(fmt::format("{}: {} is {}: it is for {}, and {} is \"{}\"", given.where, field.name(),
                              to_text(given.value), fmt::join(field.kinds, ", "),
                              field.table == "optimizer" ? "optimizer.name" : field.table + ".kind",
                              chosen_kind(config, field.table)));
}

bool is_kind(const ConfigField& field) { return field.key == "kind" || field.key == "name"; }

bool kind_is_overridden(const std::vector<GivenKey>& given, std::string_view table) {
  return std::ranges::any_of(given, [&](const GivenKey& key) {
    return key.is_override && is_kind(*key.field) && key.field->table == table;
  });
}

}  // namespace

TrainConfig parse_train_config(std::string_view text, const std::string& name,
                               const std::filesystem::path& folder,
                               const std::vector<std::string>& overrides) {
  std::vector<GivenKey> given;
  add_file_keys(text, name, folder, given);
  for (const std::string& word : overrides) {
    GivenKey key = override_key(word);
    std::erase_if(given, [&](const GivenKey& other) { return other.field == key.field; });
    given.push_back(std::move(key));
  }
  TrainConfig config;
  for (const GivenKey& key : given)
    if (is_kind(*key.field)) read_key(config, key);
  apply_model_kind(config);
  apply_optimizer_name(config.optimizer);
  for (const GivenKey& key : given)
    if (key.field->key == "seed") {
      read_key(config, key);
      config.train.init_seed = config.train.order_seed = config.train.dropout_seed = config.train.seed;
    }
  for (const GivenKey& key : given) {
    if (is_kind(*key.field) || key.field->key == "seed") continue;
    // --set optimizer.name=adam leaves the file's p without a use: that is no mistake.
    if (!applies(config, key) && !key.is_override && kind_is_overridden(given, key.field->table)) continue;
    check_applies(config, key);
    read_key(config, key);
  }
  try {
    config.validate();
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", name, error.what()));
  }
  return config;
}

TrainConfig load_train_config(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  return parse_train_config(read_text_file(path), path.string(), path.parent_path(), overrides);
}

void TrainConfig::validate() const {
  // Each value alone, for those who fill in the struct: as if a file had given it.
  for (const ConfigField& field : config_fields()) {
    const Json json = field.write(*this);
    TomlValue value;
    if (json.is_boolean())
      value.value = json.get<bool>();
    else if (json.is_number_unsigned() && json.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
      throw bad_input(fmt::format("{} is {}: expected {}", field.name(), json.dump(), field.expected));
    else if (json.is_number_integer())
      value.value = json.get<std::int64_t>();
    else if (json.is_number())
      value.value = json.get<double>();
    else if (json.is_array())
      value.value = TomlArray{{json[0].get<double>(), 0}, {json[1].get<double>(), 0}};
    else
      value.value = json.get<std::string>();
    TrainConfig copy = *this;
    const bool absent = json.is_string() && json.get<std::string>().empty() && field.role == FieldRole::place;
    if (!absent && !field.read(copy, value))
      throw bad_input(fmt::format("{} is {}: expected {}", field.name(), to_text(value), field.expected));
  }
  if (model.kind == "encoder" && model.width % model.heads != 0)
    throw bad_input(
        fmt::format("model.heads is {}: expected a divisor of model.width, {}", model.heads, model.width));
  if (model.kind == "vit" && model.image % model.patch != 0)
    throw bad_input(
        fmt::format("model.patch is {}: expected a divisor of model.image, {}", model.patch, model.image));
  if ((data.kind == "text") != (model.kind == "encoder"))
    throw bad_input(
        fmt::format("model.kind is \"{}\" and data.kind is \"{}\": encoders read text, vits images",
                    model.kind, data.kind));
  if (optimizer.nesterov && optimizer.momentum == 0)
    throw bad_input(
        "optimizer.nesterov is true and optimizer.momentum is 0: there is nothing to look ahead by");
  if (train.precision == "bf16" && train.device == "cpu")
    throw bad_input("train.precision is \"bf16\" and train.device is \"cpu\": expected \"fp32\"");
}

std::string to_json(const TrainConfig& config) {
  Json json = {{"format", config_format}, {"format_version", config_version}};
  for (const ConfigField& field : config_fields()) json[field.table][field.key] = field.write(config);
  return dump(json, 2) + "\n";
}

std::optional<std::string> first_difference(std::string_view json, const TrainConfig& config,
                                            const std::string& name) {
  const Json saved = Json::parse(json, nullptr, false);
  if (!saved.is_object() || saved.value("format", Json()) != config_format)
    throw bad_input(fmt::format("{} is no configuration of attmirror deep train", name));
  if (saved.value("format_version", Json()) != config_version)
    throw bad_input(fmt::format("{}: format_version is {}: this version of attmirror reads {}", name,
                                dump(saved.value("format_version", Json())), config_version));
  for (const ConfigField& field : config_fields()) {
    if (field.role == FieldRole::place) continue;
    const Json now = field.write(config);
    if (!saved.contains(field.table) || !saved[field.table].is_object() ||
        !saved[field.table].contains(field.key))
      throw bad_input(fmt::format("{} lacks the key {}", name, field.name()));
    const Json& before = saved[field.table][field.key];
    if (before != now) return fmt::format("{} was {} and is {}", field.name(), dump(before), dump(now));
  }
  return std::nullopt;
}

std::vector<ConfigKey> train_config_keys() {
  std::vector<ConfigKey> keys;
  for (const ConfigField& field : config_fields()) keys.push_back({field.name(), field.expected});
  return keys;
}

}  // namespace attmirror

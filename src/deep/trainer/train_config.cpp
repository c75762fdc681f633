// From TOML to TrainConfig. Which keys there are is said in config_fields.cpp; here is how they are found, and in which
// order they are read (kinds first: they choose the defaults of the rest).
#include "base/atomic_file.hpp"
#include "base/field_json.hpp"
#include "base/toml_fields.hpp"
#include "base/words.hpp"
#include "deep/trainer/config_fields.hpp"
#include "descent/optimizer_fields.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr std::string_view config_format = "attmirror deep training";
constexpr std::int64_t config_version = 1;
constexpr std::array<std::string_view, 4> table_names{"data", "model", "optimizer", "train"};
// What version 0.1.0 did not have: config.json names it where it is not as by default, so that each version reads what
// the other wrote.
constexpr std::array<std::string_view, 7> later_keys{
    "data.validation",   "data.validation_block", "optimizer.attention_p", "optimizer.attention_lr",
    "train.save_epochs", "train.attention_every", "train.graphs"};

// A key as somebody gave it.
struct GivenKey {
  const Field<TrainConfig>* field = nullptr;
  TomlValue value;
  std::string where;             // "sst2.toml: line 7", "--set optimizer.p=x"
  std::filesystem::path folder;  // that relative paths are relative to
  bool is_override = false;
};

std::string tables_text() { return "[data], [model], [optimizer] or [train]"; }

// "optimizer.p" is the key p of [optimizer].
std::string_view table_of(const FieldInfo& field) {
  return std::string_view(field.name).substr(0, field.name.find('.'));
}
std::string_view after_table(std::string_view name) { return name.substr(name.find('.') + 1); }
std::string_view key_of(const FieldInfo& field) { return after_table(field.name); }
// In config.json, and in files of version 0.1.0.
std::string_view json_key_of(const FieldInfo& field) { return after_table(field.in_json()); }

const Field<TrainConfig>& field_named(std::string_view table, std::string_view key,
                                      const std::string& value) {
  std::vector<std::string_view> keys;
  std::string elsewhere;  // "batch" in [data]
  for (const Field<TrainConfig>& field : config_fields()) {
    if (table_of(field) == table && (key_of(field) == key || json_key_of(field) == key)) return field;
    if (table_of(field) == table) keys.push_back(key_of(field));
    if (key_of(field) == key) elsewhere = fmt::format("; did you mean \"{}\" of [{}]?", key, table_of(field));
  }
  const std::string name = fmt::format("{}.{}", table, key);
  throw Error(ErrorKind::bad_input,
              fmt::format("{} is {}: there is no such key in [{}]{}", field_name(name), value, table,
                          elsewhere.empty() ? did_you_mean(key, keys) : elsewhere),
              {.field = name, .index = std::nullopt, .value = value});
}

// What `work` returns; its errors say where the mistake is.
template <class Work>
auto located(const std::string& where, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw error.in(where);
  }
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
      const auto* field =
          located(line, [&] { return &field_named(table.key, entry.key, to_text(entry.value)); });
      if (std::ranges::find(given, field, &GivenKey::field) != given.end())
        throw bad_input(fmt::format("{}: {} is given twice, as {} and as {}", line, field_name(field->name),
                                    key_of(*field), json_key_of(*field)));
      given.push_back({field, entry.value, line, folder, false});
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
  return {located(where, [&] { return &field_named(table, key, to_text(value)); }), value, where,
          std::filesystem::current_path(), true};
}

// save_epochs = [1, 10] and save_epochs = 1 are the words "1,10" and "1".
TomlValue numbers_as_word(const TomlValue& value) {
  if (value.as<std::int64_t>() != nullptr) return {to_text(value), value.line};
  const auto* list = value.as<TomlArray>();
  if (list == nullptr) return value;
  std::string words;
  for (const TomlValue& entry : *list) words += (words.empty() ? "" : ",") + to_text(entry);
  return {words, value.line};
}

void read_key(TrainConfig& config, const GivenKey& given) {
  located(given.where, [&] {
    const bool is_list = given.field->name == "train.save_epochs";
    FieldValue value = read_toml(*given.field, is_list ? numbers_as_word(given.value) : given.value);
    if (given.field->kind == FieldKind::path)
      value = (given.folder / std::get<std::string>(value)).lexically_normal().string();
    apply(*given.field, value, config);
  });
}

bool is_later(const FieldInfo& field) {
  return std::ranges::find(later_keys, field.name) != later_keys.end();
}

bool is_kind(const FieldInfo& field) { return key_of(field) == "kind" || key_of(field) == "name"; }

bool kind_is_overridden(const std::vector<GivenKey>& given, std::string_view table) {
  return std::ranges::any_of(given, [&](const GivenKey& key) {
    return key.is_override && is_kind(*key.field) && table_of(*key.field) == table;
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
  config.model = model_preset(config.model.kind);
  config.optimizer = optimizer_preset(config.optimizer.name);
  for (const GivenKey& key : given)
    if (key.field->name == "train.seed") {
      read_key(config, key);
      config.train.init_seed = config.train.order_seed = config.train.dropout_seed = config.train.seed;
    }
  for (const GivenKey& key : given) {
    if (is_kind(*key.field) || key.field->name == "train.seed") continue;
    // --set optimizer.name=adam leaves the file's p without a use: that is not a mistake.
    if (!key.is_override && !key.field->has_effect(config) && kind_is_overridden(given, table_of(*key.field)))
      continue;
    read_key(config, key);
  }
  located(name, [&] { config.validate(); });
  return config;
}

TrainConfig load_train_config(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  return parse_train_config(read_text_file(path), path.string(), path.parent_path(), overrides);
}

std::vector<std::int64_t> saved_epochs(std::string_view text) {
  std::vector<std::int64_t> epochs;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    std::int64_t epoch = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), epoch);
    if (error != std::errc() || end != word.data() + word.size() || epoch < 0 || epoch > 1'000'000 ||
        rest.ends_with(','))
      throw bad_value("train.save_epochs", std::string(text), "epochs from 0 to 1000000 as in 1,10,100");
    epochs.push_back(epoch);
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  }
  std::ranges::sort(epochs);
  return epochs;
}

void TrainConfig::validate() const {
  // Each value alone, for those who fill in the struct: the table checks it as if a file had given it.
  TrainConfig copy = *this;
  for (const Field<TrainConfig>& field : config_fields()) field.set(copy, field.read(*this));
  const auto divides = [](std::string_view name, std::int64_t part, std::string_view of, std::int64_t whole) {
    if (whole % part != 0)
      throw bad_value(name, part, fmt::format("a divisor of {}, {}", field_name(of), whole));
  };
  if (model.kind == "encoder") divides("model.heads", model.heads, "model.width", model.width);
  if (model.kind == "vit") divides("model.patch", model.patch, "model.image", model.image);
  const auto refuse = [](const std::string& name, const std::string& value, const std::string& why) {
    throw Error(ErrorKind::bad_input, fmt::format("{} is {}", field_name(name), why),
                {.field = name, .index = std::nullopt, .value = value});
  };
  if ((data.kind == "text") != (model.kind == "encoder"))
    refuse("model.kind", model.kind,
           fmt::format("\"{}\" and {} is \"{}\": encoders read text, vits images", model.kind,
                       field_name("data.kind"), data.kind));
  if (optimizer.nesterov && optimizer.momentum == 0)
    refuse(
        "optimizer.nesterov", "true",
        fmt::format("true and {} is 0: there is nothing to look ahead by", field_name("optimizer.momentum")));
  if (optimizer.attention_p != 0 && !(optimizer.attention_p > 1))
    throw bad_value("optimizer.attention_p", optimizer.attention_p, "a finite number greater than 1, or 0");
  if (train.precision == "bf16" && train.device == "cpu")
    refuse("train.precision", "bf16",
           fmt::format("\"bf16\" and {} is \"cpu\": expected \"fp32\"", field_name("train.device")));
}

std::string to_json(const TrainConfig& config) {
  Json json = {{"format", config_format}, {"format_version", config_version}};
  const TrainConfig defaults;
  for (const Field<TrainConfig>& field : config_fields())
    if (!is_later(field) || field.read(config) != field.read(defaults))
      json[std::string(table_of(field))][std::string(json_key_of(field))] = to_json(field.read(config));
  return dump(json, 2) + "\n";
}

std::optional<std::string> first_difference(std::string_view json, const TrainConfig& config,
                                            const std::string& name) {
  const Json saved = Json::parse(json, nullptr, false);
  if (!saved.is_object() || saved.value("format", Json()) != config_format)
    throw bad_input(fmt::format("{} is not a configuration of attmirror deep train", name));
  if (saved.value("format_version", Json()) != config_version)
    throw bad_input(fmt::format("{}: format_version is {}: this version of attmirror reads {}", name,
                                dump(saved.value("format_version", Json())), config_version));
  for (const Field<TrainConfig>& field : config_fields()) {
    if (field.place) continue;
    TrainConfig before;
    try {
      const Json& table = saved.at(std::string(table_of(field)));
      if (!is_later(field) || table.contains(std::string(json_key_of(field))))
        field.set(before, parse_field(field, table.at(std::string(json_key_of(field)))));
    } catch (const Json::exception&) {
      throw bad_input(fmt::format("{} lacks the key {}, {}", name, field_name(field.name), expected(field)));
    } catch (const Error& error) {
      throw error.in(name);
    }
    const FieldValue was = field.read(before), is = field.read(config);
    if (was != is)
      return fmt::format("{} was {} and is {}", field.name, dump(to_json(was)), dump(to_json(is)));
  }
  return std::nullopt;
}

std::vector<ConfigKey> train_config_keys() {
  std::vector<std::pair<std::string_view, TrainConfig>> starts{{"encoder", {}}, {"vit", {}}};
  starts.back().second.data.kind = "images";
  starts.back().second.model = model_preset("vit");
  for (const MethodName& method : method_names) {
    if (!method.in_trainer) continue;
    starts.emplace_back(method.name, TrainConfig{});
    starts.back().second.optimizer = optimizer_preset(method.name);
  }
  std::vector<ConfigKey> keys;
  for (const Field<TrainConfig>& field : config_fields()) {
    std::vector<std::pair<std::string_view, FieldValue>> defaults;
    for (const auto& [name, config] : starts)
      if (const FieldValue value = field.get(config);
          value.index() != 0 && (defaults.empty() || !is_kind(field)))
        defaults.emplace_back(name, value);
    const bool is_word = field.kind == FieldKind::word;
    keys.push_back({field.name, expected(field), grouped_defaults(defaults),
                    is_word ? fmt::format("{}; {}", expected(field), field.help) : field.help});
  }
  return keys;
}

}  // namespace attmirror

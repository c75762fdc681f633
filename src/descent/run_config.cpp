#include "base/json_numbers.hpp"
#include "base/result_folder.hpp"
#include "base/words.hpp"
#include "descent/attention_objective.hpp"
#include "descent/block_arrays.hpp"
#include "descent/optimizer_fields.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/base/fingerprint.hpp>
#include <attmirror/base/isa.hpp>
#include <attmirror/descent/run_config.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr std::string_view run_format = format_of(ResultKind::run);
constexpr std::int64_t run_format_version = 1;

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

std::uint64_t parse_hex(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size())
    throw bad_input(fmt::format("a fingerprint is \"{}\": expected 16 hexadecimal digits", text));
  return value;
}

// One member of config.json: where it stands and what it is of RunConfig.
struct ConfigMember {
  const char* place;  // a JSON pointer
  Json (*put)(const RunConfig&) = nullptr;
  void (*get)(RunConfig&, const Json&) = nullptr;
  bool may_differ = false;  // between the parts of one run: where it ends, where its files lie, who wrote it
  bool may_lack = false;    // in runs of older versions
  bool of_every_model = true;  // false: of attention and next-token prediction alone
};

ConfigMember may_differ(ConfigMember member) {
  member.may_differ = true;
  return member;
}
ConfigMember may_lack(ConfigMember member) {
  member.may_lack = true;
  return member;
}

ConfigMember of_attention(ConfigMember member) {
  member.of_every_model = false;
  return member;
}

template <auto at>
ConfigMember plain_member(const char* place) {
  return {place, [](const RunConfig& config) { return Json(config.*at); },
          [](RunConfig& config, const Json& json) {
            using Value = std::decay_t<decltype(config.*at)>;
            if constexpr (std::is_integral_v<Value> && !std::is_same_v<Value, bool>)
              config.*at = whole_number<Value>(json);
            else
              json.get_to(config.*at);
          }};
}

template <auto at, auto parse>
ConfigMember word_member(const char* place) {
  return {place, [](const RunConfig& config) { return Json(to_string(config.*at)); },
          [](RunConfig& config, const Json& json) { config.*at = parse(json.get<std::string>()); }};
}

// Sixteen digits; nothing for 0 where there may be none.
template <auto at>
ConfigMember fingerprint_member(const char* place) {
  return {place, [](const RunConfig& config) { return Json(hex(config.*at)); },
          [](RunConfig& config, const Json& json) {
            if (!json.is_null()) config.*at = parse_hex(json.get<std::string>());
          }};
}

// A file and the fingerprint of what it held, or nothing.
template <auto path, auto values>
ConfigMember source_member(const char* place) {
  return {place,
          [](const RunConfig& config) {
            if (config.*values == 0) return Json();
            return Json{{"path", (config.*path).string()}, {"fingerprint", hex(config.*values)}};
          },
          [](RunConfig& config, const Json& json) {
            if (json.is_null()) return;
            if (json.is_string()) {  // of a model that does not know its files
              config.*values = parse_hex(json.get<std::string>());
              return;
            }
            config.*path = json.at("path").get<std::string>();
            config.*values = parse_hex(json.at("fingerprint").get<std::string>());
          }};
}

InitKind parse_init_kind(std::string_view name) {
  for (const InitKind kind : {InitKind::zero, InitKind::normal, InitKind::uniform})
    if (name == to_string(kind)) return kind;
  throw bad_value("init", name, expected_choice(name, {"zero", "normal", "uniform"}));
}

// Every member, in the order in which config.json lists them and differences are named.
const std::vector<ConfigMember>& config_members() {
  using C = RunConfig;
  static const std::vector<ConfigMember> members{
      may_differ({"/data/path", [](const C& config) { return Json(config.data_path.string()); },
                  [](C& config, const Json& json) { config.data_path = json.get<std::string>(); }}),
      of_attention(
          may_lack(plain_member<&C::mask>("/data/mask"))),  // before the fingerprint, which it changes
      fingerprint_member<&C::data_fingerprint>("/data/fingerprint"),
      of_attention(plain_member<&C::samples>("/data/samples")),
      of_attention(plain_member<&C::max_tokens>("/data/max_tokens")),
      of_attention(plain_member<&C::total_tokens>("/data/total_tokens")),
      of_attention(plain_member<&C::dim>("/data/dim")),
      of_attention(may_lack(plain_member<&C::queries_each>("/data/queries_each"))),
      of_attention(plain_member<&C::params>("/model/params")),
      of_attention(plain_member<&C::rank>("/model/rank")),
      of_attention(source_member<&C::key_weights_path, &C::key_weights_fingerprint>("/model/key_weights")),
      of_attention(may_lack(plain_member<&C::head>("/model/head"))),
      of_attention(may_lack({"/model/head_fingerprint",
                             [](const C& config) {
                               return config.head_fingerprint == 0 ? Json()
                                                                   : Json(hex(config.head_fingerprint));
                             },
                             fingerprint_member<&C::head_fingerprint>("").get})),
      of_attention(plain_member<&C::loss>("/model/loss")),
      of_attention(may_lack(plain_member<&C::scaled>("/model/scaled"))),
      of_attention(may_lack(plain_member<&C::penalty>("/model/penalty"))),
      {"/model/train",
       [](const C& config) {
         Json train = Json::array();
         for (const Block& block : config.train) train.push_back(to_string(block));
         return train;
       },
       [](C& config, const Json& json) {
         for (const Json& block : json) config.train.emplace_back(block.get<std::string>());
       }},
      {"/optimizer", [](const C& config) { return optimizer_json(config.optimizer); },
       [](C& config, const Json& json) { config.optimizer = parse_optimizer(json); }},
      word_member<&C::init_kind, parse_init_kind>("/init/kind"),
      plain_member<&C::init_std>("/init/std"),
      plain_member<&C::init_seed>("/init/seed"),
      source_member<&C::init_path, &C::init_fingerprint>("/init/file"),
      may_differ(plain_member<&C::steps>("/steps")),
      may_differ(plain_member<&C::saturation>("/saturation")),
      may_differ(plain_member<&C::max_seconds>("/max_seconds")),
      plain_member<&C::record>("/record"),
      word_member<&C::keep, parse_keep>("/keep"),
      may_lack(word_member<&C::path, parse_data_path>("/gradient/path")),
      may_lack(word_member<&C::storage, parse_token_storage>("/gradient/storage")),
      plain_member<&C::isa>("/isa"),
      may_differ(plain_member<&C::version>("/version")),
      may_differ(plain_member<&C::commit>("/commit")),
  };
  return members;
}

bool has_member(const RunConfig& config, const ConfigMember& member) {
  return member.of_every_model || !is_own_run(config);
}

Json fact_json(const ModelFact& fact) {
  return std::visit([](const auto& value) { return Json(value); }, fact.value);
}

ModelFact fact_of(const std::string& name, const Json& json) {
  if (json.is_boolean()) return {name, json.get<bool>()};
  if (json.is_number_integer()) return {name, whole_number<std::int64_t>(json)};
  if (json.is_number()) return {name, json.get<double>()};
  if (json.is_string()) return {name, json.get<std::string>()};
  throw bad_input(fmt::format("{} is {}: expected a number, a text, true or false", name, dump(json)));
}

// What a model of the user's own says of itself, in place of the members of attention.
void put_facts(const RunConfig& config, Json& json) {
  json["model"]["kind"] = config.kind;
  for (const ModelFact& fact : config.data_facts) json["data"][fact.name] = fact_json(fact);
  for (const ModelFact& fact : config.model_facts) json["model"][fact.name] = fact_json(fact);
}

void get_facts(RunConfig& config, const Json& json) {
  config.kind = json.at("model").at("kind").get<std::string>();
  for (const auto& [name, value] : json.at("data").items())
    if (name != "path" && name != "fingerprint") config.data_facts.push_back(fact_of(name, value));
  for (const auto& [name, value] : json.at("model").items())
    if (name != "kind" && name != "train") config.model_facts.push_back(fact_of(name, value));
}

Json config_json(const RunConfig& config) {
  Json json{{"format", run_format}, {"format_version", run_format_version}};
  for (const ConfigMember& member : config_members()) {
    if (!has_member(config, member)) continue;
    // What a model is comes before which blocks of it are trained.
    if (is_own_run(config) && std::string_view(member.place) == "/model/train") put_facts(config, json);
    json[Json::json_pointer(member.place)] = member.put(config);
  }
  return json;
}

RunConfig config_of(const Json& json) {
  if (!json.is_object() || json.value("format", "") != run_format)
    throw bad_input("not the configuration of an attmirror run");
  if (const auto version = whole_number<std::int64_t>(json.at("format_version"));
      version != run_format_version)
    throw bad_input(
        fmt::format("format_version is {}: this version of attmirror reads {}", version, run_format_version));
  RunConfig config;
  if (json.contains(Json::json_pointer("/model/kind"))) get_facts(config, json);
  for (const ConfigMember& member : config_members()) {
    const Json::json_pointer place(member.place);
    if (!has_member(config, member) || (member.may_lack && !json.contains(place))) continue;
    try {
      member.get(config, json.at(place));
    } catch (const Error& error) {
      if (!error.field().empty()) throw;
      throw error.in(member.place + 1);
    }
  }
  // Runs of next-token prediction are known by their head.
  if (!is_own_run(config) && config.head.starts_with(next_token_kind)) config.kind = next_token_kind;
  return config;
}

// Takes over what a model says of itself: as the members of attention, or as the facts of a model of the user's own.
void take_facts(RunConfig& config, const ModelFacts& facts) {
  if (facts.kind.empty()) throw bad_input("the kind of the model is empty: expected a name");
  config.kind = facts.kind;
  const auto take = [&](const std::vector<ModelFact>& from, const std::string& part,
                        std::initializer_list<std::string_view> taken, std::vector<ModelFact>& into) {
    for (const ModelFact& fact : from) {
      const std::string place = fmt::format("/{}/{}", part, fact.name);
      if (!is_own_run(config)) {
        const auto member = std::ranges::find(config_members(), place, &ConfigMember::place);
        if (member == config_members().end())
          throw bad_input(fmt::format("the fact {} is none of the kind {}", place, config.kind));
        member->get(config, fact_json(fact));
        continue;
      }
      const bool twice = std::ranges::count(from, fact.name, &ModelFact::name) > 1;
      if (twice || fact.name.empty() || fact.name.find('/') != std::string::npos ||
          std::ranges::find(taken, fact.name) != taken.end())
        throw bad_input(
            fmt::format("a fact of the model {} is called \"{}\", which {}", config.kind, fact.name,
                        twice ? "another one is, too" : "stands for something else in config.json"));
      if (const auto* number = std::get_if<double>(&fact.value); number != nullptr && !std::isfinite(*number))
        throw bad_input(fmt::format("{} of the model {} is {}: expected a finite number", fact.name,
                                    config.kind, *number));
      into.push_back(fact);
    }
  };
  take(facts.data, "data", {"path", "fingerprint"}, config.data_facts);
  take(facts.model, "model", {"path", "kind", "train"}, config.model_facts);
}

// Walks both objects in the order in which config.json lists the fields. Where a file lies may differ.
std::optional<std::string> difference(const Json& there, const Json& here, const std::string& at) {
  if (at.ends_with("/path") && at != "/gradient/path") return std::nullopt;
  if (there.is_object() && here.is_object()) {
    for (const auto& [key, value] : there.items()) {
      const auto other = here.find(key);
      if (auto found = difference(value, other == here.end() ? Json() : *other, at + "/" + key)) return found;
    }
    return std::nullopt;
  }
  if (there == here) return std::nullopt;
  std::string name = at.substr(1);
  std::ranges::replace(name, '/', '.');
  return fmt::format("{} is {} there and {} here", name, dump(there), dump(here));
}

// The first fact that differs or that one of them lacks.
std::optional<std::string> difference(const std::vector<ModelFact>& there, const std::vector<ModelFact>& here,
                                      const std::string& part) {
  const auto value = [](const std::vector<ModelFact>& facts, const std::string& name) {
    const auto found = std::ranges::find(facts, name, &ModelFact::name);
    return found == facts.end() ? Json() : fact_json(*found);
  };
  for (const auto* facts : {&there, &here})
    for (const ModelFact& fact : *facts)
      if (auto found = difference(value(there, fact.name), value(here, fact.name),
                                  fmt::format("/{}/{}", part, fact.name)))
        return found;
  return std::nullopt;
}

std::filesystem::path resolved(const std::filesystem::path& path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal();
}

}  // namespace

std::string_view to_string(InitKind kind) {
  switch (kind) {
    case InitKind::zero:
      return "zero";
    case InitKind::normal:
      return "normal";
    case InitKind::uniform:
      return "uniform";
  }
  return "unknown";
}

std::string_view to_string(Keep keep) { return keep == Keep::parameters ? "parameters" : "metrics"; }

Keep parse_keep(std::string_view name) {
  if (name == "parameters") return Keep::parameters;
  if (name == "metrics") return Keep::metrics;
  throw bad_value("keep", name, expected_choice(name, {"parameters", "metrics"}));
}

std::uint64_t fingerprint(const Parameters& parameters) {
  Fingerprint print;
  bool empty = true;
  // After attention's own blocks the names descend: so 0.1.0 had W_ov before W_kq.
  std::vector<Block> names = block_names(parameters);
  const auto others = std::ranges::find_if(names, [](const Block& block) {
    return std::ranges::find(attention_blocks, block) == attention_blocks.end();
  });
  std::reverse(others, names.end());
  for (const Block& block : names) {
    const auto values = block_values(parameters, block);
    empty = false;
    print.add(to_string(block));
    for (const std::int64_t axis : block_shape(parameters, block)) print.add(std::ptrdiff_t{axis});
    for (const double value : values) print.add(value);
  }
  return empty ? 0 : print.value();
}

RunConfig describe_run(const Attention& model, const Optimizer& optimizer, const DescentOptions& options,
                       const RunSources& sources) {
  return describe_run(AttentionObjective(model), optimizer, options, sources);
}

RunConfig describe_run(const Objective& objective, const Optimizer& optimizer, const DescentOptions& options,
                       const RunSources& sources) {
  RunConfig config;
  take_facts(config, objective.facts());
  config.data_path = resolved(sources.data);
  config.data_fingerprint = objective.data_fingerprint();
  if (config.key_weights_fingerprint != 0) config.key_weights_path = resolved(sources.key_weights);
  config.train = objective.trained();
  config.optimizer = optimizer;
  config.init_kind = options.init.kind;
  config.init_std = options.init.std;
  config.init_seed = options.init.seed;
  config.init_fingerprint = fingerprint(options.init.given);
  if (config.init_fingerprint != 0) config.init_path = resolved(sources.init);
  config.steps = options.steps;
  config.saturation = options.saturation;
  config.max_seconds = options.max_seconds;
  config.record = options.record.to_string();
  config.keep = options.keep;
  config.path = options.path;
  config.storage = options.storage;
  config.isa = to_string(active_isa());
  config.version = version();
  config.commit = commit();
  return config;
}

bool is_attention_run(const RunConfig& config) { return config.kind == attention_kind; }

bool is_own_run(const RunConfig& config) {
  return config.kind != attention_kind && config.kind != next_token_kind;
}

AttentionOptions attention_options(const RunConfig& config) {
  AttentionOptions options;
  options.train = config.train;
  options.head = parse_head(config.head);
  options.scaled = config.scaled;
  options.penalty = config.penalty;
  return options;
}

Dataset load_run_data(const RunConfig& config, const std::filesystem::path& path) {
  Dataset data = load_dataset(path);
  if (config.mask == to_string(Mask::causal)) data = with_causal_mask(std::move(data));
  if (data.fingerprint() != config.data_fingerprint)
    throw bad_input(
        fmt::format("{} is not the dataset of the run: its fingerprint is {:016x}, that of the run {:016x}",
                    path.string(), data.fingerprint(), config.data_fingerprint));
  return data;
}

std::string to_json(const RunConfig& config) { return dump(config_json(config), 2) + "\n"; }

RunConfig parse_run_config(std::string_view text, std::string_view name) {
  try {
    return config_of(Json::parse(text));
  } catch (const Json::exception& error) {
    throw bad_input(fmt::format("cannot use {} as the configuration of a run: {}", name, error.what()));
  } catch (const Error& error) {
    throw error.in(fmt::format("cannot use {} as the configuration of a run", name));
  }
}

std::optional<std::string> first_difference(const RunConfig& there, const RunConfig& here) {
  if (is_own_run(there) || is_own_run(here)) {
    if (there.kind != here.kind)
      return fmt::format("the model is {} there and {} here", there.kind, here.kind);
    if (auto found = difference(there.model_facts, here.model_facts, "model")) return found;
    if (auto found = difference(there.data_facts, here.data_facts, "data")) return found;
  }
  for (const ConfigMember& member : config_members()) {
    if (member.may_differ || !has_member(here, member)) continue;
    if (auto found = difference(member.put(there), member.put(here), member.place)) return found;
  }
  return std::nullopt;
}

}  // namespace attmirror

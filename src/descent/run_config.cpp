#include "base/json.hpp"
#include "descent/block_arrays.hpp"
#include "descent/optimizer_config.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/base/fingerprint.hpp>
#include <attmirror/base/isa.hpp>
#include <attmirror/descent/attention_objective.hpp>
#include <attmirror/descent/run_config.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr std::string_view format = "attmirror run";
constexpr std::int64_t format_version = 1;

// What may differ between the parts of one run: where it ends, where its files lie, who wrote it.
constexpr std::array free_fields{"/data/path",      "/model/key_weights/path",
                                 "/init/file/path", "/steps",
                                 "/saturation",     "/max_seconds",
                                 "/version",        "/commit"};

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

std::uint64_t parse_hex(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size())
    throw bad_input(fmt::format("a fingerprint is \"{}\": expected 16 hexadecimal digits", text));
  return value;
}

// A number that comes from a file, or nothing where there is no file.
Json source(const std::filesystem::path& path, std::uint64_t values) {
  if (values == 0) return nullptr;
  return {{"path", path.string()}, {"fingerprint", hex(values)}};
}

std::pair<std::filesystem::path, std::uint64_t> parse_source(const Json& json) {
  if (json.is_null()) return {};
  return {json.at("path").get<std::string>(), parse_hex(json.at("fingerprint").get<std::string>())};
}

Json config_json(const RunConfig& config) {
  Json train = Json::array();
  for (const Block block : config.train) train.push_back(to_string(block));
  return {
      {"format", format},
      {"format_version", format_version},
      {"data",
       {{"path", config.data_path.string()},
        {"mask",
         config.mask},  // before the fingerprint, which it changes: differences are named in this order
        {"fingerprint", hex(config.data_fingerprint)},
        {"samples", config.samples},
        {"max_tokens", config.max_tokens},
        {"total_tokens", config.total_tokens},
        {"dim", config.dim},
        {"queries_each", config.queries_each}}},
      {"model",
       {{"params", config.params},
        {"rank", config.rank},
        {"key_weights", source(config.key_weights_path, config.key_weights_fingerprint)},
        {"head", config.head},
        {"head_fingerprint", config.head_fingerprint == 0 ? Json() : Json(hex(config.head_fingerprint))},
        {"loss", config.loss},
        {"scaled", config.scaled},
        {"penalty", config.penalty},
        {"train", train}}},
      {"optimizer", optimizer_json(config.optimizer)},
      {"init",
       {{"kind", to_string(config.init_kind)},
        {"std", config.init_std},
        {"seed", config.init_seed},
        {"file", source(config.init_path, config.init_fingerprint)}}},
      {"steps", config.steps},
      {"saturation", config.saturation},
      {"max_seconds", config.max_seconds},
      {"record", config.record},
      {"keep", to_string(config.keep)},
      {"gradient", {{"path", to_string(config.path)}, {"storage", to_string(config.storage)}}},
      {"isa", config.isa},
      {"version", config.version},
      {"commit", config.commit},
  };
}

InitKind parse_init_kind(const std::string& name) {
  for (const InitKind kind : {InitKind::zero, InitKind::normal, InitKind::uniform})
    if (name == to_string(kind)) return kind;
  throw bad_input(fmt::format("init is \"{}\": expected zero, normal or uniform", name));
}

RunConfig config_of(const Json& json) {
  if (!json.is_object() || json.value("format", "") != format) throw bad_input("it is no run of attmirror");
  if (const std::int64_t version = json.at("format_version"); version != format_version)
    throw bad_input(
        fmt::format("format_version is {}: this version of attmirror reads {}", version, format_version));
  RunConfig config;
  const Json &data = json.at("data"), &model = json.at("model"), &init = json.at("init");
  config.data_path = data.at("path").get<std::string>();
  config.data_fingerprint = parse_hex(data.at("fingerprint"));
  config.samples = data.at("samples");
  config.max_tokens = data.at("max_tokens");
  config.total_tokens = data.at("total_tokens");
  config.dim = data.at("dim");
  // Runs of version 0.1 know neither of these.
  config.queries_each = data.value("queries_each", config.queries_each);
  config.mask = data.value("mask", config.mask);
  config.head = model.value("head", config.head);
  if (const auto found = model.find("head_fingerprint"); found != model.end() && !found->is_null())
    config.head_fingerprint = parse_hex(found->get<std::string>());
  config.scaled = model.value("scaled", config.scaled);
  config.penalty = model.value("penalty", config.penalty);
  config.params = model.at("params");
  config.rank = model.at("rank");
  std::tie(config.key_weights_path, config.key_weights_fingerprint) = parse_source(model.at("key_weights"));
  config.loss = model.at("loss");
  for (const Json& block : model.at("train")) config.train.push_back(parse_block(block.get<std::string>()));
  config.optimizer = parse_optimizer(json.at("optimizer"));
  config.init_kind = parse_init_kind(init.at("kind"));
  config.init_std = init.at("std");
  config.init_seed = init.at("seed");
  std::tie(config.init_path, config.init_fingerprint) = parse_source(init.at("file"));
  config.steps = json.at("steps");
  config.saturation = json.at("saturation");
  config.max_seconds = json.at("max_seconds");
  config.record = json.at("record");
  config.keep = parse_keep(json.at("keep").get<std::string>());
  if (const auto gradient = json.find("gradient"); gradient != json.end()) {  // not in runs of version 0.1
    config.path = parse_data_path(gradient->at("path").get<std::string>());
    config.storage = parse_token_storage(gradient->at("storage").get<std::string>());
  }
  config.isa = json.at("isa");
  config.version = json.at("version");
  config.commit = json.at("commit");
  return config;
}

// Walks both objects in the order in which config.json lists the fields.
std::optional<std::string> difference(const Json& there, const Json& here, const std::string& at) {
  if (std::ranges::find(free_fields, at) != free_fields.end()) return std::nullopt;
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
  throw bad_input(fmt::format("keep is \"{}\": expected parameters or metrics", name));
}

std::uint64_t fingerprint(const Parameters& parameters) {
  Fingerprint print;
  bool empty = true;
  for (const Block block : all_blocks) {
    const auto values = block_values(parameters, block);
    if (values.empty()) continue;
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
  objective.describe(config);
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
  config.max_seconds = options.seconds;
  config.record = options.record.to_string();
  config.keep = options.keep;
  config.path = options.path;
  config.storage = options.storage;
  config.isa = to_string(active_isa());
  config.version = version();
  config.commit = commit();
  return config;
}

bool is_attention_run(const RunConfig& config) { return !config.head.starts_with("next-token"); }

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
    throw bad_input(fmt::format("cannot use {} as the configuration of a run: {}", name, error.what()));
  }
}

std::optional<std::string> first_difference(const RunConfig& there, const RunConfig& here) {
  return difference(config_json(there), config_json(here), "");
}

}  // namespace attmirror

#include "deep/trainer/config_fields.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

namespace attmirror {

namespace {

// A TOML number: 1 is 1.0 where a number is asked for.
std::optional<double> toml_number(const TomlValue& value) {
  if (const auto* number = value.as<double>()) return *number;
  if (const auto* whole = value.as<std::int64_t>()) return static_cast<double>(*whole);
  return std::nullopt;
}

struct Range {
  double low, high;
  bool open_low = false, open_high = false;
  bool contains(double x) const {  // false for NaN
    return (open_low ? x > low : x >= low) && (open_high ? x < high : x <= high);
  }
};

constexpr double no_limit = std::numeric_limits<double>::infinity();
constexpr Range positive{0, no_limit, true, true}, not_negative{0, no_limit, false, true},
    fraction{0, 1, false, true};

// Makes fields of one table of TrainConfig.
template <class Part>
class FieldMaker {
 public:
  FieldMaker(std::vector<ConfigField>& fields, std::string table, Part TrainConfig::*part)
      : fields_(fields), table_(std::move(table)), part_(part) {}

  void number(std::string key, double Part::*at, Range range, std::string expected) {
    add(std::move(key), std::move(expected), at, [range](double& into, const TomlValue& value) {
      const std::optional<double> given = toml_number(value);
      if (!given || !range.contains(*given)) return false;
      into = *given;
      return true;
    });
  }
  void count(std::string key, std::int64_t Part::*at, std::int64_t least, std::int64_t most) {
    add(std::move(key),
        most == INT64_MAX ? fmt::format("a whole number, {} or more", least)
                          : fmt::format("a whole number from {} to {}", least, most),
        at, [least, most](std::int64_t& into, const TomlValue& value) {
          const auto* given = value.as<std::int64_t>();
          if (given == nullptr || *given < least || *given > most) return false;
          into = *given;
          return true;
        });
  }
  void seed(std::string key, std::uint64_t Part::*at) {
    add(std::move(key), "a whole number from 0 to 2^63 - 1", at,
        [](std::uint64_t& into, const TomlValue& value) {
          const auto* given = value.as<std::int64_t>();
          if (given == nullptr || *given < 0) return false;
          into = static_cast<std::uint64_t>(*given);
          return true;
        });
  }
  void flag(std::string key, bool Part::*at) {
    add(std::move(key), "true or false", at, [](bool& into, const TomlValue& value) {
      const auto* given = value.as<bool>();
      if (given != nullptr) into = *given;
      return given != nullptr;
    });
  }
  void word(std::string key, std::string Part::*at, std::vector<std::string> words) {
    std::string expected = fmt::format("\"{}\"", fmt::join(words, "\", \""));
    if (const std::size_t comma = expected.rfind(", "); comma != std::string::npos)
      expected.replace(comma, 2, " or ");
    add(std::move(key), std::move(expected), at,
        [words = std::move(words)](std::string& into, const TomlValue& value) {
          const auto* given = value.as<std::string>();
          if (given == nullptr || std::ranges::find(words, *given) == words.end()) return false;
          into = *given;
          return true;
        });
  }
  void path(std::string key, std::filesystem::path Part::*at) {
    add(std::move(key), "a path in quotes", at, [](std::filesystem::path& into, const TomlValue& value) {
      const auto* given = value.as<std::string>();
      if (given == nullptr || given->empty() || given->find('\0') != std::string::npos) return false;
      into = *given;
      return true;
    });
    fields_.back().role = FieldRole::place;
    fields_.back().value = FieldValue::path;
  }
  template <class Value, class Read>
  void add(std::string key, std::string expected, Value Part::*at, Read read) {
    Part TrainConfig::*const part = part_;
    ConfigField field;
    field.table = table_;
    field.key = std::move(key);
    field.expected = std::move(expected);
    field.read = [part, at, read](TrainConfig& config, const TomlValue& value) {
      return read(config.*part.*at, value);
    };
    field.write = [part, at](const TrainConfig& config) {
      if constexpr (std::is_same_v<Value, std::filesystem::path>)
        return Json((config.*part.*at).string());
      else
        return Json(config.*part.*at);
    };
    fields_.push_back(std::move(field));
  }

  void only_for(std::vector<std::string_view> kinds) { fields_.back().kinds = std::move(kinds); }
  void place() { fields_.back().role = FieldRole::place; }

 private:
  std::vector<ConfigField>& fields_;
  std::string table_;
  Part TrainConfig::*part_;
};

void add_data_fields(std::vector<ConfigField>& fields) {
  FieldMaker make(fields, "data", &TrainConfig::data);
  using D = DataConfig;
  make.word("kind", &D::kind, {"text", "images"});
  make.path("train", &D::train);
  make.path("test", &D::test);
  make.path("vocabulary", &D::vocabulary), make.only_for({"text"});
  make.word("columns", &D::columns, {"auto", "label,text", "text,label"}), make.only_for({"text"});
  make.place();
  make.count("length", &D::length, 2, 1 << 20), make.only_for({"text"});
  make.count("limit", &D::limit, 0, INT64_MAX);
  make.count("test_limit", &D::test_limit, 0, INT64_MAX);
  make.path("cache", &D::cache), make.only_for({"text"});
  make.count("padding", &D::padding, 0, 1024), make.only_for({"images"});
  make.number("mirror", &D::mirror, {0, 1}, "a probability"), make.only_for({"images"});
}

void add_model_fields(std::vector<ConfigField>& fields) {
  FieldMaker make(fields, "model", &TrainConfig::model);
  using M = ModelConfig;
  constexpr std::int64_t most = 1 << 20;
  make.word("kind", &M::kind, {"encoder", "vit"});
  make.count("width", &M::width, 1, most);
  make.count("blocks", &M::blocks, 1, 10000);
  make.count("heads", &M::heads, 1, most);
  make.count("hidden", &M::hidden, 0, most);
  make.number("dropout", &M::dropout, fraction, "a number at least 0 and below 1");
  make.word("attention", &M::attention, {"automatic", "plain", "packed", "fused"});
  make.word("last_block", &M::last_block, {"first_token", "all_tokens"});
  make.number("embedding_deviation", &M::embedding_deviation, positive, "a finite number greater than 0"),
      make.only_for({"encoder"});
  make.count("image", &M::image, 1, 4096), make.only_for({"vit"});
  make.count("patch", &M::patch, 1, 4096), make.only_for({"vit"});
  make.count("head_width", &M::head_width, 1, most), make.only_for({"vit"});
}

void add_optimizer_fields(std::vector<ConfigField>& fields) {
  FieldMaker make(fields, "optimizer", &TrainConfig::optimizer);
  using O = OptimizerConfig;
  const std::vector<std::string_view> with_momentum{"md", "gd", "muon", "sign"},
      adaptive{"adam", "adamw", "muon"};
  make.word("name", &O::name, {"md", "gd", "adam", "adamw", "muon", "sign"});
  make.number("lr", &O::lr, positive, "a finite number greater than 0");
  make.number("p", &O::p, {1, no_limit, true, true}, "a number greater than 1"), make.only_for({"md"});
  make.number("momentum", &O::momentum, fraction, "a number at least 0 and below 1");
  make.only_for(with_momentum);
  make.flag("nesterov", &O::nesterov), make.only_for(with_momentum);
  make.flag("normalized", &O::normalized), make.only_for({"md", "gd"});
  make.number("weight_decay", &O::weight_decay, not_negative, "a number, 0 or more");
  make.add("betas", "two numbers at least 0 and below 1, [0.9, 0.999]", &O::betas,
           [](std::array<double, 2>& into, const TomlValue& value) {
             const auto* list = value.as<TomlArray>();
             if (list == nullptr || list->size() != 2) return false;
             const auto first = toml_number((*list)[0]), second = toml_number((*list)[1]);
             if (!first || !second || !fraction.contains(*first) || !fraction.contains(*second)) return false;
             into = {*first, *second};
             return true;
           });
  make.only_for(adaptive);
  make.number("eps", &O::eps, positive, "a finite number greater than 0"), make.only_for(adaptive);
  make.number("other_lr", &O::other_lr, positive, "a finite number greater than 0"), make.only_for({"muon"});
  make.word("schedule", &O::schedule, {"constant", "linear", "cosine"});
  make.number("warmup", &O::warmup, not_negative, "a number of epochs, 0 or more");
}

void add_loop_fields(std::vector<ConfigField>& fields) {
  FieldMaker make(fields, "train", &TrainConfig::train);
  using L = LoopConfig;
  make.count("epochs", &L::epochs, 1, 1'000'000);
  make.count("batch", &L::batch, 1, 1 << 24);
  make.word("loss", &L::loss, {"sum", "mean"});
  make.seed("seed", &L::seed);
  make.seed("init_seed", &L::init_seed);
  make.seed("order_seed", &L::order_seed);
  make.seed("dropout_seed", &L::dropout_seed);
  make.count("trials", &L::trials, 1, 100'000);
  make.number("stop_train_accuracy", &L::stop_train_accuracy, positive, "a finite number greater than 0");
  make.count("evaluate_every", &L::evaluate_every, 1, 1'000'000);
  make.number("divergence", &L::divergence, {1, no_limit, true, true}, "a number greater than 1");
  make.number("checkpoint_seconds", &L::checkpoint_seconds, not_negative, "a number, 0 or more"),
      make.place();
  make.number("time_limit", &L::time_limit, not_negative, "a number of seconds, 0 for none"), make.place();
  make.add("device", "\"auto\", \"cpu\", \"cuda\" or \"cuda:NUMBER\"", &L::device,
           [](std::string& into, const TomlValue& value) {
             const auto* given = value.as<std::string>();
             if (given == nullptr) return false;
             const bool numbered =
                 given->starts_with("cuda:") && given->size() > 5 && given->size() < 9 &&
                 std::all_of(given->begin() + 5, given->end(), [](char c) { return c >= '0' && c <= '9'; });
             if (*given != "auto" && *given != "cpu" && *given != "cuda" && !numbered) return false;
             into = *given;
             return true;
           });
  make.place();
  make.word("precision", &L::precision, {"auto", "fp32", "bf16"});
  make.count("threads", &L::threads, 0, 1024), make.place();
}

}  // namespace

const std::vector<ConfigField>& config_fields() {
  static const std::vector<ConfigField> fields = [] {
    std::vector<ConfigField> list;
    add_data_fields(list);
    add_model_fields(list);
    add_optimizer_fields(list);
    add_loop_fields(list);
    return list;
  }();
  return fields;
}

}  // namespace attmirror

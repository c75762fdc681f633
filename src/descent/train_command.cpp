// A configuration spelled as the command that gives it: whoever reads a report can make its run again.
//
// Only what differs from the command's defaults is said, so that the command reads like one that a person typed.
#include "descent/run_text.hpp"
#include <attmirror/descent/model_words.hpp>
#include <attmirror/descent/optimizer_words.hpp>

#include <string_view>

#include <fmt/format.h>

namespace attmirror {

namespace {

class CommandLine {
 public:
  explicit CommandLine(std::string begin) : text_(std::move(begin)) {}

  void option(std::string_view name, const std::string& value) {
    text_ += fmt::format(" {} {}", name, shell_word(value));
  }
  void flag(std::string_view name) { text_ += fmt::format(" {}", name); }

  // A word that is there and is not what the method takes by itself.
  void word(std::string_view name, const std::optional<std::string>& value,
            const std::optional<std::string>& usual) {
    if (value && value != usual) option(name, *value);
  }
  void word(std::string_view name, const std::optional<double>& value, const std::optional<double>& usual) {
    if (value && value != usual) option(name, fmt::format("{}", *value));
  }

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void add_optimizer(CommandLine& line, const Optimizer& optimizer) {
  const std::string method(method_name(optimizer));
  const OptimizerWords words = words_of(optimizer, method);
  // What the command makes of the method alone; steepest descent has no norm by itself, and eps decides the Jacobian.
  OptimizerWords alone{.optimizer = method,
                       .geometry = words.geometry,
                       .norm = method == "steepest" ? words.norm : std::nullopt};
  alone.eps = words.eps;
  const OptimizerWords usual = words_of(make_optimizer(alone), method);
  if (method != "md") line.option("--optimizer", method);
  if (words.geometry && words.geometry != "lp") line.option("--geometry", *words.geometry);
  if (method == "steepest" && words.norm) line.option("--norm", *words.norm);
  line.word("--p", words.p, std::nullopt);  // the reader of a report looks for these two
  line.word("--lr", words.lr, std::nullopt);
  line.word("--entropy-beta", words.entropy_beta, usual.entropy_beta);
  if (words.normalized && words.normalized != usual.normalized)
    line.flag(*words.normalized ? "--normalized" : "--unnormalized");
  line.word("--momentum", words.momentum, usual.momentum);
  line.word("--schedule", words.schedule, usual.schedule);
  line.word("--beta1", words.beta1, usual.beta1);
  line.word("--beta2", words.beta2, usual.beta2);
  line.word("--orthogonalization", words.orthogonalization, usual.orthogonalization);
  if (words.eps && words.eps != "exact") line.option("--eps", *words.eps);
  alone.normalized = words.normalized;  // only then eps has a value
  line.word("--eps-value", words.eps_value, words_of(make_optimizer(alone), method).eps_value);
  line.word("--jacobian", words.jacobian, usual.jacobian);
  line.word("--powers", words.powers, usual.powers);
}

void add_model(CommandLine& line, const RunConfig& config) {
  if (config.params != "W") line.option("--params", config.params);
  if (config.params == "KQ" && config.rank != config.dim)
    line.option("--rank", fmt::format("{}", config.rank));
  if (!config.key_weights_path.empty()) line.option("--key-weights", config.key_weights_path.string());
  if (config.loss != "logistic") line.option("--loss", config.loss);
  if (config.head != "linear") line.option("--head", config.head);
  if (config.mask == "causal") line.option("--mask", config.mask);  // one of the data's own comes with them
  if (config.scaled) line.flag("--scaled");
  if (config.penalty != 0) line.option("--penalty", fmt::format("{}", config.penalty));
  const std::string usual = config.params == "KQ" ? "K,Q" : config.params == "prompt" ? "p" : "W";
  if (to_string(config.train) != usual) line.option("--train", to_string(config.train));
}

void add_start(CommandLine& line, const RunConfig& config) {
  if (!config.init_path.empty()) return line.option("--init", "file:" + config.init_path.string());
  switch (config.init_kind) {
    case InitKind::zero:
      if (config.params == "KQ") line.option("--init", "zero");
      return;
    case InitKind::normal:
      line.option("--init", fmt::format("normal:{}", config.init_std));
      break;
    case InitKind::uniform:
      if (config.params != "KQ") line.option("--init", "uniform");
      break;
  }
  line.option("--init-seed", fmt::format("{}", config.init_seed));
}

}  // namespace

std::string shell_word(const std::string& text) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+=:,/@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text)
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  return quoted + "'";
}

std::string train_command(const RunConfig& config) {
  CommandLine line("attmirror train " + shell_word(config.data_path.string()));
  add_optimizer(line, config.optimizer);
  line.option("--steps", fmt::format("{}", config.steps));
  if (config.saturation > 0) line.option("--saturation", fmt::format("{}", config.saturation));
  add_model(line, config);
  add_start(line, config);
  if (config.storage != TokenStorage::float64) line.option("--storage", "float32");
  if (config.record != "log:10") line.option("--record", config.record);
  if (config.keep != Keep::parameters) line.option("--keep", std::string(to_string(config.keep)));
  line.option("-o", "run/");
  return line.text();
}

}  // namespace attmirror

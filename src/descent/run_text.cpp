#include "descent/run_text.hpp"

#include <fmt/format.h>

namespace attmirror {

namespace {

// ", samples 30, margin 0.5"
std::string facts_text(const std::vector<ModelFact>& facts) {
  std::string text;
  for (const ModelFact& fact : facts) text += ", " + to_string(fact);
  return text;
}

}  // namespace

std::string trained_text(const RunConfig& config) {
  std::string text;
  for (const Block& block : config.train)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", to_string(block));
  return text;
}

std::string data_text(const RunConfig& config) {
  if (!is_own_run(config))
    return fmt::format("{} sequences, up to {} tokens, dimension {}", config.samples, config.max_tokens,
                       config.dim);
  return fmt::format("fingerprint {:016x}{}", config.data_fingerprint, facts_text(config.data_facts));
}

std::string model_text(const RunConfig& config) {
  if (is_own_run(config))
    return fmt::format("{}{}, trains {}", config.kind, facts_text(config.model_facts), trained_text(config));
  return fmt::format("{}{}, {} loss{}, trains {}", config.params,
                     config.params == "KQ" ? fmt::format(" of rank {}", config.rank) : "", config.loss,
                     extras_text(config), trained_text(config));
}

std::string extras_text(const RunConfig& config) {
  std::string text;
  if (config.head != "linear") text += fmt::format(", head {}", config.head);
  if (config.mask != "none") text += fmt::format(", {} mask", config.mask);
  if (config.scaled) text += ", scaled logits";
  if (config.penalty != 0) text += fmt::format(", penalty {}", config.penalty);
  return text;
}

std::string start_text(const RunConfig& config) {
  if (config.init_fingerprint != 0) return config.init_path.filename().string();
  switch (config.init_kind) {
    case InitKind::zero:
      return "zero";
    case InitKind::normal:
      return fmt::format("normal:{} (seed {})", config.init_std, config.init_seed);
    case InitKind::uniform:
      return fmt::format("uniform (seed {})", config.init_seed);
  }
  return "unknown";
}

std::string weights_text(const RunConfig& config) {
  if (is_own_run(config)) return config.train.empty() ? "w" : std::string(to_string(config.train.front()));
  if (config.params == "W" || config.params == "W_ov" || config.params == "W_kq") return config.params;
  if (config.params == "joint") return "W_kq";
  return config.params == "KQ" ? "K Q^T" : "p";
}

std::string norm_text(const RunConfig& config) {
  const Norm norm = measuring_norm(config.optimizer);
  const std::string kind = norm.is_entrywise() ? fmt::format("{:g}", norm.p()) : to_string(norm);
  return fmt::format("‖{}‖_{}", weights_text(config), kind);
}

}  // namespace attmirror

#include "descent/saved_model.hpp"

#include <attmirror/base/error.hpp>

#include <fmt/format.h>

namespace attmirror {

SavedRun load_trained_run(const std::filesystem::path& path) {
  SavedRun run = load_run(path);
  if (!is_attention_run(run.config))
    throw bad_input(fmt::format("{} is a run of {}: expected one of attmirror train", path.string(),
                                is_own_run(run.config) ? run.config.kind : "next-token prediction"));
  if (run.parameters.W.size() + run.parameters.K.size() + run.parameters.p.size() == 0)
    throw bad_input(
        fmt::format("{} has no weights yet: the run was stopped before its first checkpoint", path.string()));
  if (run.result && run.result->status == RunStatus::diverged)
    throw bad_input(fmt::format("the run in {} diverged at step {}: its weights have no direction",
                                path.string(), run.step));
  return run;
}

Parameterization parameterization_of(const SavedRun& run) {
  if (run.config.params == "KQ") return KQ{run.config.rank};
  if (run.config.params == "prompt") return Prompt{run.key_weights};
  return W{};
}

Attention model_of(const SavedRun& run, const Dataset& data) {
  return Attention(data, parameterization_of(run), parse_loss(run.config.loss),
                   attention_options(run.config));
}

std::optional<Norm> limit_norm(const RunConfig& config) {
  return limit_norm(config.optimizer, config.params == "KQ" ? Parameterization(KQ{config.rank}) : W{});
}

std::optional<Norm> limit_norm(const Optimizer& optimizer, const Parameterization& parameterization) {
  const std::optional<Norm> geometry = geometry_norm(optimizer);
  if (!std::holds_alternative<KQ>(parameterization)) return geometry;
  if (geometry == Norm::frobenius()) return Norm::nuclear();
  return std::nullopt;
}

}  // namespace attmirror

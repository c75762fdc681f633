// Everything that decides the bits of a run, resolved: the content of `config.json` in a run folder.
//
// "Resolved" means that no default is left to a later version: the rank is a number, the seed is present even if it
// was not given, and the data are identified by a fingerprint of their values as well as by the path. Two runs with
// equal configurations (except for steps and stop rules, which only decide where a run ends) follow the same path.
#pragma once

#include <attmirror/descent/descend.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// Everything that decides a run, as its config.json has it.
struct RunConfig {
  // What was trained: attention, next-token prediction, or a user's own model, under the kind that its
  // facts() name.
  std::string kind{attention_kind};

  std::filesystem::path data_path;  // absolute; may have moved since
  std::uint64_t data_fingerprint = 0;
  std::int64_t samples = 0, max_tokens = 0, total_tokens = 0, dim = 0;
  std::int64_t queries_each = 1;  // 0 if sequences have different numbers of queries

  // A user's own model has these instead of everything but the path, the fingerprint and `train`.
  std::vector<ModelFact> data_facts, model_facts;

  std::string params = "W";  // W, KQ or prompt
  std::int64_t rank = 0;
  std::filesystem::path key_weights_path;     // empty: the identity
  std::uint64_t key_weights_fingerprint = 0;  // 0: the identity
  std::string loss = "logistic";
  std::string head = "linear";         // what parse_head() reads, or custom:NAME
  std::uint64_t head_fingerprint = 0;  // of the ReLU head's V; 0: it has none
  std::string mask = "none";           // none, causal, or custom: the dataset's own
  bool scaled = false;
  double penalty = 0;
  std::vector<Block> train;

  Optimizer optimizer;

  InitKind init_kind = InitKind::zero;
  double init_std = 1;
  std::uint64_t init_seed = 0;
  std::filesystem::path init_path;     // empty: no blocks were given
  std::uint64_t init_fingerprint = 0;  // of the given blocks; 0: none

  std::int64_t steps = 0;
  double saturation = 0, max_seconds = 0;
  std::string record;  // what RecordSchedule::parse() reads
  Keep keep = Keep::parameters;
  DataPath path = DataPath::automatic;
  TokenStorage storage = TokenStorage::float64;

  std::string isa, version, commit;
};

// Whether the run is of attention on a Dataset; load_run_data() does not know the data of other models.
bool is_attention_run(const RunConfig& config);

// Whether the run is of a model that is not part of attmirror.
bool is_own_run(const RunConfig& config);

// Where the numbers of a run came from, as far as its objects themselves do not know it.
struct RunSources {
  std::filesystem::path data, key_weights, init;
};

// The model options of a run, as recorded. Throws Error (bad input) for a custom head, which no file contains.
AttentionOptions attention_options(const RunConfig& config);

// The dataset of a run with the mask that the run put on it. `path` is that of the run or of a copy. Throws
// Error (bad input) when it is not the run's data.
Dataset load_run_data(const RunConfig& config, const std::filesystem::path& path);

// The configuration of a run with these objects, with the current instruction set and version. Throws Error
// (bad input) if the facts of your own model cannot be written to config.json.
RunConfig describe_run(const Objective& objective, const Optimizer& optimizer, const DescentOptions& options,
                       const RunSources& sources);
RunConfig describe_run(const Attention& model, const Optimizer& optimizer, const DescentOptions& options,
                       const RunSources& sources);

// To config.json, and back. `name` is the name of the text in messages; throws Error (bad input) when it is
// not such a configuration.
std::string to_json(const RunConfig& config);
RunConfig parse_run_config(std::string_view text, std::string_view name);

// The first field in which two configurations differ so that one run cannot continue the other, as in
// "optimizer.lr is 0.1 there and 0.2 here". Steps, stop rules, paths and versions may differ.
std::optional<std::string> first_difference(const RunConfig& there, const RunConfig& here);

std::string_view to_string(InitKind kind);
std::string_view to_string(Keep keep);
Keep parse_keep(std::string_view name);

// 64 bits from names, shapes and values; 0 when all blocks are empty.
std::uint64_t fingerprint(const Parameters& parameters);

}  // namespace attmirror

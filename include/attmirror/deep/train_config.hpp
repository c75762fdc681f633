// The configuration of a transformer training, as read from a TOML file and recorded in config.json of a run folder.
//
//   [data]       kind = "text", train = "train.tsv", test = "dev.tsv", vocabulary = "vocab.txt", length = 64
//   [model]      kind = "encoder", width = 128, blocks = 2, heads = 2
//   [optimizer]  name = "md", p = 1.1, lr = 8e-4
//   [train]      epochs = 10, batch = 100, seed = 0
//
// Every key except the locations of the data has a default. A key that does not exist, a value of the wrong
// type or out of range, and a key that the chosen kind or optimizer does not use are refused, with the file,
// the line and what is expected: a misspelled option that is silently ignored costs hours.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// Table [data] of a training's configuration: which files.
struct DataConfig {
  std::string kind = "text";  // or "images"
  // A token file (.safetensors), a .tsv or .tsv.xz file, or half of aclImdb; for images a .bin file or a folder
  // of them.
  std::filesystem::path train, test;
  std::filesystem::path vocabulary;  // one piece per line; not needed for token files
  std::string columns = "auto";      // of .tsv files: "label,text", "text,label"
  std::int64_t length = 512;         // ids of a text, [CLS] and [SEP] included; the rest is cut off
  std::int64_t limit = 0;            // rows of training, evenly spaced over the file; 0: all
  std::int64_t test_limit = 0;       // the same of the test set
  double validation = 0;             // share of the rows of training that is held out, evenly spaced; 0: none
  std::int64_t validation_block = 1;  // rows of the file that are held out, or not, together
  std::filesystem::path cache;        // folder in which token files are kept; empty: none
  std::int64_t padding = 4;           // images: zeros added around them before a random cut
  double mirror = 0.5;                // images: probability of being mirrored
};

// Table [model] of a training's configuration: which network, of which size.
struct ModelConfig {
  std::string kind = "encoder";  // or "vit"
  std::int64_t width = 384;
  std::int64_t blocks = 3;
  std::int64_t heads = 3;
  std::int64_t hidden = 0;  // of the MLP; 0: four times the width
  double dropout = 0.2;
  std::string attention = "automatic";     // automatic, plain, packed, fused: deep/transformer.hpp
  std::string last_block = "first_token";  // only what the answer reads, or "all_tokens"
  double embedding_deviation = 1;          // encoder: of the initial embeddings; P1 has 1
  std::int64_t image = 48, patch = 4;      // vit: images are resized to this, and cut into patches of that
  std::int64_t head_width = 64;            // vit
};

// Table [optimizer] of a training's configuration.
struct OptimizerConfig {
  std::string name = "md";                     // md, gd, sign, signum, adam, adamw, muon-adamw
  double lr = 8e-4;                            // of the sum over a batch, unless train.loss is "mean"
  double p = 1.1;                              // md
  double attention_p = 0;                      // md: of the maps Q, K and V; 0: p
  double attention_lr = 0;                     // md: of the same; 0: lr
  double momentum = 0;                         // md, gd, sign, signum, muon-adamw
  bool nesterov = false;                       // the same
  bool normalized = false;                     // md, gd: gradients of each tensor divided by their dual norm
  double weight_decay = 0;                     // decoupled, except for adam, where it joins the gradient
  std::array<double, 2> betas = {0.9, 0.999};  // adam, adamw, and the AdamW within muon-adamw
  double eps = 1e-8;                           // the same
  double other_lr = 3e-4;             // muon-adamw: of the AdamW that moves embeddings, head and vectors
  std::string schedule = "constant";  // or "linear", "cosine": from lr down to 0 at the last epoch
  double warmup = 0;                  // epochs in which lr rises from 0
};

// Table [train] of a training's configuration: how long, with which seeds, how exactly.
struct LoopConfig {
  std::int64_t epochs = 10;
  std::int64_t batch = 100;  // samples, of all processes together
  std::string loss = "sum";  // over a batch (P1), so that lr goes with its size, or "mean"
  std::uint64_t seed = 0;
  std::uint64_t init_seed = 0, order_seed = 0, dropout_seed = 0;  // follow `seed` unless set
  std::int64_t trials = 1;  // trainings with seeds of their own, one after another
  // Over an epoch, as measured while training (P1's rule); above 1: never.
  double stop_train_accuracy = 0.995;
  std::int64_t evaluate_every = 1;  // epochs
  std::string save_epochs;          // "1,10,100": epochs after which weights are kept; 0: the initial ones
  // Epochs between measurements of attention, which is measured after the first and the last, too; 0: never.
  std::int64_t attention_every = 0;
  // Mean loss of an epoch, in multiples of log(classes), at which a trial is abandoned.
  double divergence = 10;
  double checkpoint_seconds = 120;
  double max_seconds = 0;          // then a checkpoint is written and the command ends; 0: no limit
  std::string device = "auto";     // cpu, cuda, cuda:1
  std::string precision = "auto";  // fp32, bf16; auto: bf16 on a GPU
  std::int64_t threads = 0;        // of the CPU; 0: as many as the machine has
  std::string graphs = "auto";     // on, off: CUDA graphs of steps and evaluations; auto: where they can be
};

// The configuration of a training, as its TOML file has it.
struct TrainConfig {
  DataConfig data;
  ModelConfig model;
  OptimizerConfig optimizer;
  LoopConfig train;

  // Checks that involve several keys. Throws Error (bad input), naming the keys.
  void validate() const;
};

// `overrides` look like "optimizer.p=1.1": the value as in TOML, or a bare word. Relative paths in the file are
// relative to its folder, those in overrides to the working directory. `name` is the name of the file in messages.
TrainConfig parse_train_config(std::string_view text, const std::string& name,
                               const std::filesystem::path& folder,
                               const std::vector<std::string>& overrides = {});
TrainConfig load_train_config(const std::filesystem::path& path,
                              const std::vector<std::string>& overrides = {});

// The epochs that LoopConfig::save_epochs names, in increasing order. Throws Error (bad input).
std::vector<std::int64_t> saved_epochs(std::string_view text);

// config.json: all keys, resolved, in the order of the structs; those that version 0.1.0 did not have where they are
// not as by default.
std::string to_json(const TrainConfig& config);

// Whether a run with the configuration `json` (from to_json) can continue as `config`: the first key that prevents
// it, with both values ("optimizer.p was 1.1 and is 1.2"). Locations of data, devices, threads, time limits and
// cached files may change. Throws Error (bad input), naming `name`, for text that is not such a configuration.
std::optional<std::string> first_difference(std::string_view json, const TrainConfig& config,
                                            const std::string& name);

// All keys as "table.key" with their type, their default ("0; 0.95 for muon-adamw") and their meaning, for
// help and documentation.
struct ConfigKey {
  std::string key, expected, default_text, meaning;
};
std::vector<ConfigKey> train_config_keys();

}  // namespace attmirror

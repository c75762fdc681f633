// Trains a transformer as a TrainConfig describes: several trials from independent initial weights, each
// until its stop rule, with checkpoints from which training continues as if it had never been stopped.
//
// What a step computes is a function of the configuration, the trial, the epoch and the step: the order of
// the rows, the initial weights and every dropout decision have addresses (base/random.hpp), and no generator
// has a state. So a checkpoint consists of weights, the optimizer's state and a few sums, and after kill -9
// and a resume a CPU computes the same bits.
//
// Within an epoch nothing waits for a GPU: losses and hits are summed on it and read at the end of the epoch,
// and a separate thread packs batches ahead of time.
//
// Files of a run folder:
//   config.json              the configuration, resolved
//   metrics.jsonl            a line per trial and epoch
//   events/trial-0/...       the same for TensorBoard
//   checkpoint.safetensors   src/deep/trainer/train_checkpoint.hpp; stays after the end
//   epoch-1.safetensors      weights after epoch 1, where train.save_epochs names it (epoch-1-trial-0, ...)
//   final.safetensors        weights of the last epoch (final-0, final-1, ... where there are several trials)
//   results.json             how it ended; what `attmirror-deep train --json` prints. The last file to be written
#pragma once

#include <attmirror/base/stop.hpp>
#include <attmirror/deep/image_set.hpp>
#include <attmirror/deep/token_set.hpp>
#include <attmirror/deep/train_config.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror::deep {

// Either texts or images.
struct TrainData {
  std::optional<TokenSet> train_texts, test_texts;
  std::optional<ImageSet> train_images, test_images;
};

// Reads what config.data names: token files directly, texts through the vocabulary (and the cache, if there
// is one). Throws Error (bad input), naming the key and the file.
TrainData load_train_data(const TrainConfig& config);

// How a trial ended.
enum class TrialStatus { running, completed, reached_accuracy, diverged };
std::string_view to_string(TrialStatus status);  // "running", "completed", "reached accuracy", "diverged"

// Where the queries of some samples look, on average: over all queries, and over those of the first token, which the
// answer is read from.
struct AttentionSpread {
  double entropy = 0;    // of the probabilities, in nats: 0 one token, log(length) all alike
  double top_share = 0;  // of the token that has the largest
  double tokens_90 = 0;  // how many tokens hold 90 % together
};

// What attention does in one block, and the size of the weights that make it.
struct AttentionMeasures {
  AttentionSpread all = {}, first = {};
  // Frobenius norms of the block's weights; of K Q^T, over all heads, by which tokens are compared.
  double key_norm = 0, query_norm = 0, product_norm = 0;
};

// One line of metrics.jsonl.
struct EpochRow {
  std::int64_t trial = 0, epoch = 0;  // epochs count from 1: how many have been trained
  std::int64_t step = 0;              // steps of the trial so far
  double train_loss = 0;              // mean per sample, with dropout, while the weights moved
  double train_accuracy = 0;
  std::optional<double> test_loss, test_accuracy;  // none between evaluations
  // Of the rows that data.validation holds out, with the same weights.
  std::optional<double> validation_loss = {}, validation_accuracy = {};
  double seconds = 0;        // of the trial so far
  double epoch_seconds = 0;  // of its training part
  double tokens_per_second = 0;
  double lr = 0;           // at the epoch's last step
  double weight_norm = 0;  // l2, of all parameters
  // The size of one of the maps K, Q and V after an epoch.
  struct MapMeasures {
    char map = 'K';
    double norm = 0;      // l2, of all blocks
    double largest = 0;   // |w|
    double above = 0;     // share of weights with |w| > 0.06: P1's measure
    double sparsity = 0;  // Hoyer's: (sqrt n - l1 / l2) / (sqrt n - 1); 0 all equal, 1 a single one
  };
  std::vector<MapMeasures> maps = {};  // K, Q, V
  // Of each block, after the first epoch, the last, and those that train.attention_every names.
  std::vector<AttentionMeasures> attention = {};
};

// What a trial reached.
struct TrialResult {
  std::int64_t trial = 0;
  TrialStatus status = TrialStatus::running;
  std::int64_t epochs = 0, steps = 0;
  // Of the last epoch; NaN before the first has ended.
  double train_loss = std::numeric_limits<double>::quiet_NaN();
  double train_accuracy = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> test_loss, test_accuracy, best_test_accuracy;
  std::int64_t best_epoch = 0;
  std::optional<double> validation_loss = {}, validation_accuracy = {}, best_validation_accuracy = {};
  std::int64_t best_validation_epoch = 0;
  double seconds = 0;
  std::uint64_t init_seed = 0, order_seed = 0, dropout_seed = 0;
};

// How a training ended.
enum class TrainStatus { completed, stopped, time_limit };
std::string_view to_string(TrainStatus status);  // "completed", "stopped", "time limit"

// What a training reached, trial by trial.
struct TrainResult {
  TrainStatus status = TrainStatus::completed;
  std::vector<TrialResult> trials;  // the last may still be running
  double seconds = 0;               // of all trials, including time before a resume
  std::string device;               // "cpu", "cuda:0"
  std::int64_t parameters = 0;      // numbers that are trained

  bool writes = true;  // false in all processes but the first

  bool all_diverged() const;
};

// How far a training is.
struct TrainProgress {
  std::int64_t trial = 0, trials = 1, epoch = 0, epochs = 1;  // both from 0
  std::int64_t step = 0, steps = 1;                           // within the epoch
};

// What to do where the folder already has a training.
enum class ExistingRun { refuse, resume, replace };

// How train() runs, apart from what the configuration says.
struct TrainOptions {
  std::filesystem::path folder = {};  // empty: nothing is kept
  ExistingRun existing = ExistingRun::refuse;
  // Called by the process that writes (of several, the first).
  std::function<void(const TrainProgress&)> on_progress = {};  // after every step
  std::function<void(const EpochRow&)> on_epoch = {};
  std::function<void(const std::string&)> on_note = {};  // "resuming at epoch 3"
  StopRequest stop{};  // checked between steps: a checkpoint is written, and train() returns
};

// Throws Error (bad input) for a configuration that does not fit data or machine, for a folder that holds a run
// (unless `existing` says what to do), and for a checkpoint that is damaged or another run's; nothing is changed.
TrainResult train(const TrainConfig& config, const TrainData& data, const TrainOptions& options = {});

// The result.json of a training, and a line of its metrics.jsonl.
std::string to_json(const TrainResult& result, const std::filesystem::path& folder);
std::string to_json(const EpochRow& row);  // one line

}  // namespace attmirror::deep

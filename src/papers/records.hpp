// Records of trainings that take a GPU: what a study in docs/results keeps of each, as files of comma-separated
// values.
//
// runs.csv has a row for each training, whatever became of it; curves.csv one for each of its epochs. The columns
// are those of docs/results/imdb/README.md, and scripts/study_records.py writes them; sentences.csv has a row for each
// training and each of P1's sentences. docs/results/imdb_clean has three columns more, and speed.csv beside them;
// docs/results/cifar has attention.csv and histograms.csv. An empty cell is a number that does not exist: the score of
// a training that failed, the learning rate of an optimizer that has none. Internal.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// What a training is for.
enum class TrainingRole {
  main,      // to be compared
  tuning,    // to choose a learning rate and other settings
  repeat,    // to see how far two with the same seed differ
  ablation,  // to see what one part of the settings does
  longer,    // to see what more epochs do
  transfer,  // to see what the settings do on other data
};
std::string_view to_string(TrainingRole role);

// How it ended. Unfinished is one that was stopped, failed one that the trainer gave up with a message.
enum class RecordStatus { completed, reached_accuracy, diverged, unfinished, failed };
std::string_view to_string(RecordStatus status);  // "completed", "reached accuracy", ...

// After one epoch; accuracies are shares.
struct EpochRecord {
  std::int64_t epoch = 0;
  std::optional<double> train_loss, train_accuracy, test_loss, test_accuracy, validation_accuracy;
  // Of K, Q and V, as in MapRecord. Shares and largest weights are missing in files of earlier trainings.
  std::array<std::optional<double>, 3> share, largest, sparsity;
};

// The maps of attention, in the order of all that has three numbers.
inline constexpr std::array map_names{"K", "Q", "V"};

// One of the maps K, Q and V after the last epoch.
struct MapRecord {
  std::optional<std::int64_t> above;  // weights with |w| > 0.06: P1's count
  std::optional<double> share;        // the same as a share of all weights
  std::optional<double> largest;      // |w|
  std::optional<double> sparsity;     // Hoyer's: 0 all equal, 1 a single one
};

// How attention is spread over tokens: means over heads, samples and queries.
struct AttentionSpreadRecord {
  double entropy = 0;    // in nats
  double top_share = 0;  // of the token with the largest probability
  double tokens_90 = 0;  // that hold 90 %
};

// One block after one epoch.
struct AttentionRecord {
  std::int64_t epoch = 0, block = 0;       // both from 1
  AttentionSpreadRecord all, class_token;  // over all queries, and for that of the class token
  double key_norm = 0, query_norm = 0,
         product_norm = 0;  // Frobenius norms of K, Q and, over all heads, K Q^T
};

// One of P1's sentences, judged by a network after its last epoch.
struct SentenceRecord {
  std::int64_t sentence = 0;         // its place in P1's list, from 1
  std::string pivotal;               // the word that decides it
  std::optional<double> score;       // as published; nothing where WordPiece splits the word
  std::optional<double> word_score;  // the corrected one; nothing where the word does not occur
};

// A bin of the histogram of one map after the last epoch.
inline constexpr double histogram_bin_width = 0.01;
struct HistogramBin {
  char map = 'K';     // or Q or V
  double weight = 0;  // the middle of the bin
  std::int64_t count = 0;
};

// One training.
struct TrainingRecord {
  std::string run;     // "md-1.1-s1", unique
  std::string config;  // "md-1.1": configs/md-1.1.toml
  TrainingRole role = TrainingRole::main;
  std::int64_t seed = 0;
  std::optional<double> lr, p;
  std::string data;                         // "imdb", "sst2"; empty where a study has one data set
  std::string settings;                     // "optimizer.lr=0.002 optimizer.weight_decay=0.5"
  std::optional<std::int64_t> state_bytes;  // of the optimizer
  RecordStatus status = RecordStatus::completed;
  std::int64_t epochs = 0;
  std::optional<double> best_test, last_test, last_ten_test;
  std::optional<std::int64_t> best_epoch;
  std::optional<std::int64_t>
      epochs_to_stop;  // to the training accuracy at which it stops; none: not reached
  std::optional<double> best_validation, train_loss, train_accuracy;
  std::optional<double> score;                  // P1's token-selection score
  std::optional<std::int64_t> score_sentences;  // over so many sentences
  std::optional<double> word_score;             // the corrected one
  // 1 / sum s^2 of the attention s over the number of tokens, on average over sentences: 1 where all have the same.
  std::optional<double> attended_share;
  // On test reviews: the score, the lift of sentiment words, how often one of them has the most attention.
  std::optional<double> review_score, review_lift, review_top;
  std::array<MapRecord, 3> maps;  // K, Q, V
  std::optional<double> seconds;
  std::string device, date, commit, note;
  std::vector<EpochRecord> curve;
  std::vector<SentenceRecord> sentences;   // all, in P1's order; empty where they were not recorded
  std::vector<AttentionRecord> attention;  // by epoch, then block; empty where it was not measured
  std::vector<HistogramBin> histogram;     // by map, then weight; bins without weights are left out

  // It came to its end, so that its last epoch means what that of others means.
  bool is_comparable() const;
};

// How long an optimizer takes, measured alone on a GPU.
struct SpeedRecord {
  std::string optimizer;  // "md-momentum", or a configuration
  double epoch_seconds = 0;
  std::int64_t parameters = 0;  // of the network
};

// The files of a study as text.
struct RecordTexts {
  std::string_view runs, curves;
  std::string_view sentences{}, speed{}, attention{}, histograms{};  // may be empty
  std::vector<std::string> configs;                                  // the names of its configurations

  // Whether runs.csv has a row below the names of its columns.
  bool has_runs() const;
};

// The trainings in the order of runs.csv. Throws Error (bad input), naming file and line, for a column that is
// missing or unknown, a cell that is not what its column says, a training that is there twice or whose
// configuration is not there, and for curves, sentences, attention and histograms that do not fit the runs.
std::vector<TrainingRecord> read_records(const RecordTexts& texts);

// The rows of speed.csv; none for an empty text. Throws Error (bad input) for bad columns and cells, an optimizer that
// is there twice, and networks of different sizes.
std::vector<SpeedRecord> read_speeds(const RecordTexts& texts);

}  // namespace attmirror

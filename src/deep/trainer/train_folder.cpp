#include "deep/trainer/train_folder.hpp"

#include "base/atomic_file.hpp"
#include "base/result_folder.hpp"
#include "deep/trainer/event_file.hpp"
#include "deep/trainer/train_json.hpp"
#include <attmirror/base/error.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace attmirror::deep {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view event_file = "events.out.tfevents.0.attmirror";

// In the order in which they are removed: config.json says what the folder is until the end.
constexpr std::array<std::string_view, 9> run_files{"results.json",
                                                    "checkpoint.safetensors",
                                                    "metrics.jsonl",
                                                    "final.safetensors",
                                                    "final-#.safetensors",
                                                    "epoch-#.safetensors",
                                                    "epoch-#-trial-#.safetensors",
                                                    "events/trial-#/events.out.tfevents.0.attmirror",
                                                    "config.json"};

std::int64_t bytes_of(const fs::path& path) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  return error ? 0 : static_cast<std::int64_t>(bytes);
}

bool is_event_file(const fs::path& file) { return file.filename() == event_file; }

// That of ".../trial-3/events...": 3.
std::int64_t trial_of(const fs::path& file) {
  const std::string name = file.parent_path().filename().string();
  return std::strtoll(name.c_str() + std::string_view("trial-").size(), nullptr, 10);
}

bool holds_final_weights(const fs::path& folder) {
  constexpr std::array<std::string_view, 2> names{"final.safetensors", "final-#.safetensors"};
  return !find_files(folder, names).empty();
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::vector<std::pair<std::string, double>> curves_of(const EpochRow& row) {
  std::vector<std::pair<std::string, double>> values{{"loss/train", row.train_loss},
                                                     {"accuracy/train", row.train_accuracy}};
  if (row.test_loss) values.emplace_back("loss/test", *row.test_loss);
  if (row.test_accuracy) values.emplace_back("accuracy/test", *row.test_accuracy);
  if (row.validation_loss) values.emplace_back("loss/validation", *row.validation_loss);
  if (row.validation_accuracy) values.emplace_back("accuracy/validation", *row.validation_accuracy);
  values.emplace_back("lr", row.lr);
  values.emplace_back("tokens_per_second", row.tokens_per_second);
  values.emplace_back("weights/norm", row.weight_norm);
  for (const EpochRow::MapMeasures& map : row.maps) {
    values.emplace_back(fmt::format("weights/norm_{}", map.map), map.norm);
    values.emplace_back(fmt::format("weights/largest_{}", map.map), map.largest);
    values.emplace_back(fmt::format("weights/above_0.06_{}", map.map), map.above);
    values.emplace_back(fmt::format("weights/sparsity_{}", map.map), map.sparsity);
  }
  for (std::size_t b = 0; b < row.attention.size(); ++b) {
    const AttentionMeasures& block = row.attention[b];
    values.emplace_back(fmt::format("attention/entropy_{}", b), block.all.entropy);
    values.emplace_back(fmt::format("attention/top_share_{}", b), block.all.top_share);
    values.emplace_back(fmt::format("attention/tokens_90_{}", b), block.all.tokens_90);
    values.emplace_back(fmt::format("attention/KQ_norm_{}", b), block.product_norm);
  }
  return values;
}

}  // namespace

AppendedFile::AppendedFile(fs::path path, std::int64_t bytes) : path_(std::move(path)), bytes_(bytes) {
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0)
    throw environment_error(fmt::format("cannot write {}: {}", path_.string(), std::strerror(errno)));
  const off_t there = ::lseek(file_, 0, SEEK_END);
  if (there < bytes) {
    ::close(file_);
    throw bad_input(fmt::format("{} has {} bytes: the checkpoint knows of {}", path_.string(), there, bytes));
  }
  if (::ftruncate(file_, bytes) != 0 || ::lseek(file_, 0, SEEK_END) != bytes) {
    const int error = errno;
    ::close(file_);
    throw environment_error(fmt::format("cannot shorten {}: {}", path_.string(), std::strerror(error)));
  }
}

AppendedFile::~AppendedFile() { ::close(file_); }

void AppendedFile::append(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      throw environment_error(fmt::format("cannot write {}: {}", path_.string(), std::strerror(errno)));
    bytes_ += written;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void AppendedFile::sync() {
  // Some file systems and pipes have no such thing (EINVAL); what matters is a disk that fails.
  if (::fdatasync(file_) != 0 && errno != EINVAL && errno != EROFS)
    throw environment_error(fmt::format("cannot write {}: {}", path_.string(), std::strerror(errno)));
}

TrainFolder::TrainFolder(fs::path path)
    : files_(std::move(path), ResultKind::training, run_files), path_(files_.path()) {}

fs::path TrainFolder::events_path(std::int64_t trial) const {
  return path_ / "events" / fmt::format("trial-{}", trial) / event_file;
}

fs::path TrainFolder::final_path(std::int64_t trial, std::int64_t trials) const {
  return path_ / (trials == 1 ? "final.safetensors" : fmt::format("final-{}.safetensors", trial));
}

fs::path TrainFolder::epoch_path(std::int64_t epoch, std::int64_t trial, std::int64_t trials) const {
  return path_ / (trials == 1 ? fmt::format("epoch-{}.safetensors", epoch)
                              : fmt::format("epoch-{}-trial-{}.safetensors", epoch, trial));
}

void TrainFolder::remove_run() {
  files_.refuse_foreign_config();
  for (const fs::path& file : files_.files())
    if (is_event_file(file))
      remove_events(file);
    else
      remove_file(file);
}

// The curves of trials from this one on.
void TrainFolder::remove_later_events(std::int64_t first_trial) {
  for (const fs::path& file : files_.files())
    if (is_event_file(file) && trial_of(file) >= first_trial) remove_events(file);
}

// The curves of a trial, and the folders that are empty without them.
void TrainFolder::remove_events(const fs::path& file) {
  remove_file(file);
  std::error_code ignored;
  fs::remove(file.parent_path(), ignored);
  fs::remove(path_ / "events", ignored);
}

void TrainFolder::begin(const std::string& config, const std::optional<TrainCheckpoint>& checkpoint) {
  const fs::path metrics = path_ / "metrics.jsonl";
  if (checkpoint && bytes_of(metrics) < checkpoint->metrics_bytes)  // before anything is changed
    throw bad_input(fmt::format("{} has {} bytes: the checkpoint knows of {}", metrics.string(),
                                bytes_of(metrics), checkpoint->metrics_bytes));
  if (!checkpoint) remove_run();
  files_.remove_leftovers();
  if (checkpoint) files_.remove("results.json");
  write_file_atomically(config_path(), config);
  metrics_.emplace(metrics, checkpoint ? checkpoint->metrics_bytes : 0);
  if (!checkpoint) return;
  const std::int64_t trial = checkpoint->current.trial;
  remove_later_events(trial + 1);  // of trials that the checkpoint does not know
  // Curves for TensorBoard that somebody has removed begin anew: all they say is in metrics.jsonl, too.
  if (checkpoint->events_bytes == 0 || bytes_of(events_path(trial)) < checkpoint->events_bytes) return;
  events_.emplace(events_path(trial), checkpoint->events_bytes);
  events_trial_ = trial;
}

void TrainFolder::begin_trial(std::int64_t trial) {
  if (events_trial_ == trial) return;
  std::error_code error;
  fs::create_directories(events_path(trial).parent_path(), error);
  if (error)
    throw environment_error(fmt::format("cannot create the folder {}: {}",
                                        events_path(trial).parent_path().string(), error.message()));
  events_.emplace(events_path(trial), 0);
  events_trial_ = trial;
  events_->append(first_event(wall_time()));
}

void TrainFolder::append(const EpochRow& row) {
  if (saving_.valid() && saving_.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
    saving_.get();
  metrics_->append(to_json(row) + "\n");
  events_->append(scalar_event(wall_time(), row.epoch, curves_of(row)));
}

void TrainFolder::wait_for_save() {
  if (saving_.valid()) saving_.get();
}

void TrainFolder::save(TrainCheckpoint checkpoint, Save when) {
  wait_for_save();
  metrics_->sync();
  checkpoint.metrics_bytes = metrics_->bytes();
  checkpoint.events_bytes = 0;
  if (events_ && events_trial_ == checkpoint.current.trial) {
    events_->sync();
    checkpoint.events_bytes = events_->bytes();
  }
  if (when == Save::now)
    save_train_checkpoint(checkpoint_path(), checkpoint);
  else
    saving_ = std::async(std::launch::async, [path = checkpoint_path(), kept = std::move(checkpoint)] {
      save_train_checkpoint(path, kept);
    });
}

void TrainFolder::finish(const std::string& results) {
  wait_for_save();
  write_file_atomically(path_ / "results.json", results);
}

std::optional<TrainCheckpoint> resumable_checkpoint(const fs::path& folder, const TrainConfig& config,
                                                    std::uint64_t train_fingerprint,
                                                    std::uint64_t test_fingerprint) {
  const fs::path config_path = folder / "config.json", path = folder / "checkpoint.safetensors";
  if (is_there(config_path)) {
    const auto difference = first_difference(read_text_file(config_path), config, config_path.string());
    if (difference)
      throw bad_input(fmt::format("cannot resume the run in {}: {}", folder.string(), *difference));
  }
  if (!is_there(path)) {
    // A run that was killed before its first checkpoint has neither of these.
    if (is_there(folder / "results.json") || holds_final_weights(folder))
      throw bad_input(fmt::format(
          "{} is missing, and without it the run cannot go on: --overwrite starts anew", path.string()));
    return std::nullopt;
  }
  TrainCheckpoint checkpoint = load_train_checkpoint(path);
  if (const auto difference = first_difference(checkpoint.config, config, path.string()))
    throw bad_input(fmt::format("{} is another run's checkpoint: {}", path.string(), *difference));
  if (checkpoint.train_fingerprint != train_fingerprint)
    throw bad_input(
        fmt::format("cannot resume the run in {}: data.train holds other rows than before", folder.string()));
  if (checkpoint.test_fingerprint != test_fingerprint)
    throw bad_input(
        fmt::format("cannot resume the run in {}: data.test holds other rows than before", folder.string()));
  return checkpoint;
}

}  // namespace attmirror::deep

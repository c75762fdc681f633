// attmirror deep train: trains a transformer as a TOML file says, in a folder that survives Ctrl-C, kill -9 and a
// full disk.
#include "base/progress.hpp"
#include "base/signals.hpp"
#include "cli/console.hpp"
#include "cli/deep/deep_options.hpp"
#include "cli/deep/deep_subcommands.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/table.hpp>
#include <attmirror/deep/trainer.hpp>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>

namespace attmirror::cli {

namespace {

struct DeepTrainOptions {
  CommonOptions common;
  std::filesystem::path config, output;
  std::vector<std::string> set;
  bool resume = false, overwrite = false;
};

std::string percent(const std::optional<double>& share) {
  return share && std::isfinite(*share) ? fmt::format("{:.2f} %", 100 * *share) : std::string("-");
}

std::string trials_table(const deep::TrainResult& result) {
  Table table;
  table.columns = {{"trial"},      {"status", Align::left}, {"epochs"},
                   {"train loss"}, {"train accuracy"},      {"best test"},
                   {"at epoch"},   {"last test"},           {"seconds"}};
  for (const deep::TrialResult& trial : result.trials)
    table.rows.push_back({fmt::format("{}", trial.trial), std::string(deep::to_string(trial.status)),
                          fmt::format("{}", trial.epochs),
                          std::isfinite(trial.train_loss) ? fmt::format("{:.4f}", trial.train_loss) : "-",
                          percent(trial.train_accuracy), percent(trial.best_test_accuracy),
                          trial.best_epoch > 0 ? fmt::format("{}", trial.best_epoch) : "-",
                          percent(trial.test_accuracy), fmt::format("{:.1f}", trial.seconds)});
  return to_text(table);
}

// What is seen while it runs: a progress line, and a line for each epoch.
class Watch {
 public:
  Watch(const TrainConfig& config, bool quiet) : config_(config), quiet_(quiet) {}

  void step(const deep::TrainProgress& at) {
    if (quiet_) return;
    const std::int64_t done = (at.trial * at.epochs + at.epoch) * at.steps + at.step;
    if (!progress_)
      progress_.emplace(stderr, ProgressOptions{.label = "train",
                                                .total = at.trials * at.epochs * at.steps,
                                                .first = done - 1,
                                                .unit = "steps",
                                                .quiet = false});
    progress_->relabel(at.trials == 1 ? fmt::format("epoch {}/{}", at.epoch + 1, at.epochs)
                                      : fmt::format("trial {}/{} epoch {}/{}", at.trial + 1, at.trials,
                                                    at.epoch + 1, at.epochs));
    progress_->update(done);
  }

  void epoch(const deep::EpochRow& row) {
    if (quiet_) return;
    std::string text = config_.train.trials > 1 ? fmt::format("trial {} ", row.trial) : std::string();
    text += fmt::format("epoch {}  loss {:.4f}  accuracy {}", row.epoch, row.train_loss,
                        percent(row.train_accuracy));
    if (row.test_accuracy)
      text += fmt::format("  test {:.4f} {}", *row.test_loss, percent(row.test_accuracy));
    text += fmt::format("  {:.1f} s  {:.0f} tokens/s", row.epoch_seconds, row.tokens_per_second);
    clear();
    note(text);
  }

  void clear() { progress_.reset(); }

 private:
  const TrainConfig& config_;
  bool quiet_;
  std::optional<Progress> progress_;
};

// Whether LibTorch was given the reference BLAS, whose matrix products take some fifteen times as long as OpenBLAS's.
// It is what Debian installs beside libtorch-dev where nobody asks for another.
bool has_reference_blas() {
  Dl_info place{};
  void* const product = ::dlsym(RTLD_DEFAULT, "sgemm_");
  if (product == nullptr || ::dladdr(product, &place) == 0 || place.dli_fname == nullptr) return false;
  std::error_code error;
  const std::filesystem::path library = std::filesystem::canonical(place.dli_fname, error);
  return !error && library.parent_path().filename() == "blas";
}

int run_deep_train(const DeepTrainOptions& options, bool threads_given) {
  if (options.resume && options.overwrite)
    throw bad_input("--resume and --overwrite are both given: one continues a run, the other replaces it");
  const SignalGuard
      guard;  // from here on: reading texts takes seconds, and ends in a checkpoint like the rest
  TrainConfig config = load_train_config(options.config, options.set);
  if (threads_given) config.train.threads = options.common.threads;
  const bool quiet = options.common.quiet;
  const deep::TrainData data = deep::load_train_data(config);
  if (!quiet && !config.train.device.starts_with("cuda") && has_reference_blas())
    note("LibTorch multiplies matrices with the reference BLAS: libopenblas0-openmp is many times faster");

  Watch watch(config, quiet);
  deep::TrainOptions training;
  training.folder = options.output;
  training.existing = options.resume      ? deep::ExistingRun::resume
                      : options.overwrite ? deep::ExistingRun::replace
                                          : deep::ExistingRun::refuse;
  training.on_progress = [&](const deep::TrainProgress& at) { watch.step(at); };
  training.on_epoch = [&](const deep::EpochRow& row) { watch.epoch(row); };
  training.on_note = [&](const std::string& text) {
    if (!quiet) note(text);
  };
  training.stop = SignalGuard::stop();
  const deep::TrainResult result = deep::train(config, data, training);
  watch.clear();
  if (!result.writes)
    return result.status == deep::TrainStatus::stopped ? signalled + SignalGuard::interrupted() : done;

  if (options.common.json)
    print_json_text(deep::to_json(result, options.output));
  else if (!quiet)
    print(fmt::format("{}: {} parameters on {}\n\n{}\n{}", options.config.string(), result.parameters,
                      result.device, trials_table(result),
                      fmt::format("files   {}\n", options.output.string())));
  if (result.status == deep::TrainStatus::stopped) {
    note("interrupted; the same command with --resume continues from there");
    return signalled + SignalGuard::interrupted();
  }
  if (result.status == deep::TrainStatus::time_limit) {
    note(
        "stopped: time limit (train.max_seconds) reached; the same command with --resume continues from there");
    return done;
  }
  if (!result.all_diverged()) return done;
  note("every trial diverged: try a smaller optimizer.lr");
  return negative;
}

}  // namespace

Subcommand add_deep_train(CLI::App& parent) {
  auto options = std::make_shared<DeepTrainOptions>();
  options->common.threads = 0;
  CLI::App& app = *parent.add_subcommand("train", std::string(deep_description("train")));
  add_path(app, "config", options->config, "FILE",
           "the TOML file that describes the training: data, model, optimizer, epochs")
      ->required();
  app.add_option("--set", options->set, "replace a value of the file, as in optimizer.p=1.1; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_path(app, "-o,--output", options->output, "FOLDER", "folder to keep the run in")->required();
  add_existing_run_flags(app, options->resume, options->overwrite);
  add_flag(app, "--force", options->overwrite, "the name of --overwrite in version 0.1.0")->group("");
  add_common_options(app, options->common);
  app.footer(
      "Examples:\n"
      "  attmirror deep train sst2.toml -o run/\n"
      "  attmirror deep train sst2.toml --set optimizer.p=2 --set optimizer.lr=0.01 -o gd/\n"
      "  attmirror deep train sst2.toml --resume -o run/\n"
      "  mpirun -n 2 attmirror deep train sst2.toml -o run/");
  return {&app, &options->common,
          [options, &app] { return run_deep_train(*options, app.count("--threads") > 0); }};
}

}  // namespace attmirror::cli

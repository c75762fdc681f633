#include "cli/train_plan.hpp"

#include <attmirror/base/error.hpp>

#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace attmirror::cli {

void check_run_options(const CLI::App& app, const RunOptions& options) {
  if (options.resume && options.overwrite)
    throw bad_input("both --resume and --overwrite are given: expected one of them");
  if (!(options.max_seconds >= 0) || std::isinf(options.max_seconds))
    throw bad_input(
        fmt::format("max-seconds is {}: expected a finite number, 0 for no limit", options.max_seconds));
  if (!(options.checkpoint_every >= 0))
    throw bad_input(
        fmt::format("checkpoint-every is {}: expected 0 or more seconds", options.checkpoint_every));
  if (!options.output.empty()) return;
  for (const char* name : {"--resume", "--overwrite", "--checkpoint-every"})
    if (app.count(name) > 0)
      throw bad_input(fmt::format("{} is given without a run folder: give -o FOLDER", name));
}

void add_train_options(CLI::App& app, TrainOptions& o) {
  add_path(app, "data", o.data, "FILE", "the dataset: .npz with X, Y, Z and v (see attmirror info)")
      ->required();
  add_run_output(app, o.output);

  add_optimizer_options(app, o.given);
  add_field_options(app, descent_fields(), o.given, "Descent", {"steps", "saturation", "max_seconds"});
  add_field_options(app, model_fields(), o.given, "Model");
  add_field_options(app, descent_fields(), o.given, "Large data", {"data_path", "storage"});
  const char* group = "Run folder";
  add_field_options(app, descent_fields(), o.given, group, {"record", "keep"});
  add_checkpoint_interval(app, o.checkpoint_every, group);
  add_existing_run_flags(app, o.resume, o.overwrite, group);
}

TrainPlan make_plan(const CLI::App& app, const TrainOptions& options) {
  check_run_options(app, {.output = options.output,
                          .resume = options.resume,
                          .overwrite = options.overwrite,
                          .checkpoint_every = options.checkpoint_every});
  TrainPlan plan;
  plan.sources.data = options.data;
  plan.optimizer = optimizer_given(options.given);
  plan.model = plan_model(options.given);
  DescentOptions& descent = plan.descent;
  apply(descent_fields(), options.given, descent);
  descent.threads = static_cast<int>(options.common.threads);
  descent.validate();
  plan.model = load_files(std::move(plan.model));
  descent.init = plan.model.init;
  plan.sources.key_weights = plan.model.key_weights_path;
  plan.sources.init = plan.model.init_path;
  return plan;
}

void check_record_memory(const std::vector<BlockShape>& blocks, const DescentOptions& options) {
  constexpr double limit = 2e9;
  double bytes = sizeof(Record);
  if (options.keep == Keep::parameters)
    for (const BlockShape& shape : blocks)
      bytes += 8.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.cols);
  const std::int64_t count = options.record.count(options.steps) + 1;
  const double total = bytes * static_cast<double>(count);
  if (total <= limit) return;
  throw bad_input(
      fmt::format("record {} would keep {} records, {:.3g} GB in all: expected at most 2 GB; record fewer "
                  "steps{}",
                  options.record.to_string(), count, total / 1e9,
                  options.keep == Keep::parameters ? " or use --keep metrics" : ""));
}

}  // namespace attmirror::cli

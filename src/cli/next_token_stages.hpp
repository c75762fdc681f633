// The stages of `attmirror next-token`, trained or resumed one after the other.
#pragma once

#include "cli/next_token_data.hpp"
#include "next_token/next_token_folder.hpp"

#include <string>
#include <vector>

namespace attmirror::cli {

struct StageOutcome {
  Stage stage = Stage::collocation;
  RunResult result;
  Parameters parameters;
  std::vector<Metric> metrics;  // of the last record
  double lr = 0;
  std::string norm_name;  // "‖W_kq‖_2"
  // Every step has length lr in that norm: norm/(steps lr) says how straight they went.
  bool norm_grows_by_lr = false;
};

// Everything that decides the run. `stages` are those of the plan, in order.
NextTokenConfig next_token_config(const NextTokenOptions& options, const NextTokenPlan& plan,
                                  const Corpus& corpus, const Embedding& embedding,
                                  const std::vector<StageOptions>& stages);

// Runs or resumes one stage. `given` has the weights that it starts from, or is frozen at.
StageOutcome run_stage(const NextTokenModel& model, const NextTokenMeasures& measures,
                       const StageOptions& stage, const Parameters& given, const NextTokenOptions& options,
                       NextTokenFolder& folder);

}  // namespace attmirror::cli

// Rows and results as JSON, for files and for --json. Internal.
#pragma once

#include "base/json.hpp"
#include <attmirror/deep/trainer.hpp>

namespace attmirror::deep {

Json trial_json(const TrialResult& trial);
TrialResult trial_from_json(const Json& json);  // throws Json::exception where it is none
Json row_json(const EpochRow& row);

}  // namespace attmirror::deep

// Experiments whose trainings take a GPU: they train nothing, but read the records of docs/results. Internal.
#pragma once

#include "papers/records.hpp"
#include <attmirror/papers/experiment.hpp>

#include <string>

#include <fmt/format.h>

namespace attmirror {

// Out of scope as long as its study has no records.
class RecordedExperiment : public Experiment {
 public:
  ExperimentInfo info() const final {
    ExperimentInfo info = about();
    info.seconds = info.quick_seconds = 0.1;
    info.recorded = true;
    if (!texts().has_runs())
      info.out_of_scope = fmt::format(
          "no training has been recorded yet; docs/results/{}/README.md says how to make them", study());
    return info;
  }

  ExperimentResult run(const ExperimentContext& context) const final {
    const RecordTexts records = texts();
    if (!records.has_runs()) return {};  // out of scope, as info() says
    ExperimentResult result = result_of(records);
    context.progress(1);
    return result;
  }

 private:
  virtual ExperimentInfo about() const = 0;  // apart from times and scope
  virtual std::string study() const = 0;     // the folder in docs/results
  virtual RecordTexts texts() const = 0;
  virtual ExperimentResult result_of(const RecordTexts& records) const = 0;
};

}  // namespace attmirror

// Trainings and what they are done on. A DescentTask points to its model, and the model views its data: here both
// stay where they are for as long as the set lives. Internal.
#pragma once

#include <attmirror/sweep/many.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace attmirror {

class TrainingSet {
 public:
  // A dataset that several trainings may share; the reference stays valid.
  const Dataset& keep(Dataset data) { return data_.emplace_back(std::move(data)); }

  std::size_t add(const Dataset& data, Parameterization parameterization, const AttentionOptions& model,
                  const Optimizer& optimizer, DescentOptions options) {
    models_.emplace_back(data, std::move(parameterization), Logistic{}, model);
    tasks_.push_back({&models_.back(), optimizer, std::move(options)});
    return tasks_.size() - 1;
  }

  std::size_t size() const { return tasks_.size(); }
  std::span<const DescentTask> tasks() const { return tasks_; }
  const Attention& model(std::size_t i) const { return *tasks_[i].model; }
  const Dataset& data(std::size_t i) const { return tasks_[i].model->data(); }

 private:
  std::deque<Dataset> data_;
  std::deque<Attention> models_;
  std::vector<DescentTask> tasks_;
};

// Singular values (largest first) above `tolerance` times the largest.
inline std::ptrdiff_t relative_rank(const Vector& singular_values, double tolerance) {
  if (singular_values.size() == 0 || !(singular_values[0] > 0)) return 0;
  return (singular_values.array() > tolerance * singular_values[0]).count();
}

// NaN for none.
inline double median_of(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace attmirror

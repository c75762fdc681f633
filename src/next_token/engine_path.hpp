// What is behind a NextTokenEngine: the fast path or the plain one. Internal.
#pragma once

#include <attmirror/next_token/model.hpp>

#include <cmath>
#include <limits>
#include <memory>

namespace attmirror {

class NextTokenPathEngine {
 public:
  virtual ~NextTokenPathEngine() = default;
  virtual NextTokenEvaluation evaluate(const ParameterBlocks& parameters, Gradient* gradient) = 0;
  virtual void new_frozen_weights() = 0;
};

std::unique_ptr<NextTokenPathEngine> make_plain_engine(const NextTokenModel& model);
std::unique_ptr<NextTokenPathEngine> make_fast_engine(const NextTokenModel& model, ThreadPool& pool);

}  // namespace attmirror

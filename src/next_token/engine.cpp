#include "next_token/engine_path.hpp"

namespace attmirror {

struct NextTokenEngine::Memory {
  const NextTokenModel* model;
  std::unique_ptr<NextTokenPathEngine> path;
};

NextTokenEngine::NextTokenEngine(const NextTokenModel& model, ThreadPool& pool, NextTokenPath path)
    : memory_(std::make_unique<Memory>(Memory{
          &model,
          path == NextTokenPath::fast ? make_fast_engine(model, pool) : make_plain_engine(model),
      })) {}
NextTokenEngine::~NextTokenEngine() = default;
NextTokenEngine::NextTokenEngine(NextTokenEngine&&) noexcept = default;
NextTokenEngine& NextTokenEngine::operator=(NextTokenEngine&&) noexcept = default;

NextTokenEvaluation NextTokenEngine::evaluate(const ParameterBlocks& parameters, Gradient& gradient) {
  return memory_->path->evaluate(parameters, &gradient);
}

NextTokenEvaluation NextTokenEngine::evaluate(const ParameterBlocks& parameters) {
  return memory_->path->evaluate(parameters, nullptr);
}

void NextTokenEngine::new_frozen_weights() { memory_->path->new_frozen_weights(); }

Gradient NextTokenEngine::make_gradient() const {
  Gradient gradient;
  std::vector<BlockShape> trained;
  for (const BlockShape& shape : memory_->model->blocks())
    for (const Block name : memory_->model->trained())
      if (shape.name == name) trained.push_back(shape);
  gradient.log_scale.assign(trained.size(), 0.0);
  gradient.blocks = ParameterBlocks(std::move(trained));
  return gradient;
}

}  // namespace attmirror

// What an objective is where it does not say otherwise.
#include "descent/fill_random.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/fingerprint.hpp>
#include <attmirror/descent/descend.hpp>
#include <attmirror/descent/objective.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace attmirror {

namespace {

// The engine of an objective that needs no memory.
class StatelessEngine final : public ObjectiveEngine {
 public:
  explicit StatelessEngine(const Objective& objective) : objective_(objective) {}
  Evaluation evaluate(const ParameterBlocks& weights, Gradient& gradient) override {
    return objective_.evaluate(weights, gradient);
  }
  std::vector<Metric> metrics(const ParameterBlocks& weights) override { return objective_.metrics(weights); }

 private:
  const Objective& objective_;
};

// Each block has a seed of its own: the numbers of one do not depend on which others there are.
CounterRandom random_of(const Block& block, std::uint64_t seed) {
  Fingerprint print;
  print.add(seed);
  print.add(block.name());
  return {print.value(), RandomStream::init_own};
}

void start_block(Parameters& start, const BlockShape& shape, const Initialization& init) {
  const CounterRandom random = random_of(shape.name, init.seed);
  if (!shape.is_vector) {
    Matrix& block = make_matrix(start, shape.name);
    return fill_random(block, init, random, block.cols());
  }
  Matrix row(1, shape.cols);
  fill_random(row, init, random, shape.cols);
  make_vector(start, shape.name) = row.transpose();
}

}  // namespace

std::string to_string(const ModelFact& fact) {
  return std::visit([&](const auto& value) { return fmt::format("{} {}", fact.name, value); }, fact.value);
}

Evaluation Objective::evaluate(const ParameterBlocks&, Gradient&) const {
  throw bad_input(
      fmt::format("the objective {} overrides neither evaluate() nor make_engine()", facts().kind));
}

std::unique_ptr<ObjectiveEngine> Objective::make_engine(const DescentOptions&, Jacobian, ThreadPool&) const {
  return std::make_unique<StatelessEngine>(*this);
}

std::vector<Block> Objective::trained() const {
  std::vector<Block> names;
  for (const BlockShape& shape : blocks()) names.push_back(shape.name);
  return names;
}

std::string Objective::description() const {
  const ModelFacts all = facts();
  std::string text = all.kind;
  for (const ModelFact& fact : all.model) text += ", " + to_string(fact);
  for (const ModelFact& fact : all.data) text += ", " + to_string(fact);
  text += ", trains";
  for (const Block& block : trained()) text += fmt::format(" {}", to_string(block));
  return text;
}

Parameters Objective::initial_parameters(const Initialization& init) const {
  init.validate();
  const std::vector<BlockShape> shapes = blocks();
  ParameterBlocks memory(shapes);
  Parameters start = memory.parameters();
  if (init.kind != InitKind::zero)
    for (const BlockShape& shape : trained_blocks()) start_block(start, shape, init);
  visit_blocks(start, init.given, [&](const Block& block, auto& into, const auto& from) {
    if (from.size() == 0) return;
    if (std::ranges::find(shapes, block, &BlockShape::name) == shapes.end())
      throw bad_input(fmt::format("an initial {} is given, but the model {} has no such block",
                                  to_string(block), facts().kind));
    into = from;
  });
  memory.assign(start);  // checks shapes and finiteness
  return start;
}

double Objective::weight_norm(const Parameters& parameters, const Norm& norm) const {
  return visit_block(parameters, trained().front(),
                     [&](const auto& values) { return attmirror::norm(Matrix(values), norm); });
}

bool Objective::is_trained(const Block& block) const {
  const std::vector<Block> names = trained();
  return std::ranges::find(names, block) != names.end();
}

std::vector<BlockShape> Objective::trained_blocks() const {
  const std::vector<BlockShape> all = blocks();
  std::vector<BlockShape> shapes;
  for (const Block& block : trained()) {
    const auto found = std::ranges::find(all, block, &BlockShape::name);
    if (found == all.end())
      throw bad_input(
          fmt::format("cannot train {}: the model {} has no such block", to_string(block), facts().kind));
    shapes.push_back(*found);
  }
  return shapes;
}

Gradient Objective::make_gradient() const {
  Gradient gradient;
  gradient.blocks = ParameterBlocks(trained_blocks());
  gradient.log_scale.assign(static_cast<std::size_t>(gradient.blocks.count()), 0.0);
  return gradient;
}

void Objective::validate() const {
  const std::vector<BlockShape> all = blocks(), moved = trained_blocks();
  for (const BlockShape& shape : all)
    if (shape.rows < 1 || shape.cols < 1)
      throw bad_input(fmt::format("block {} has shape ({}, {}): expected 1 or more of each",
                                  to_string(shape.name), shape.rows, shape.cols));
  if (moved.empty()) throw bad_input(fmt::format("the model {} trains no block", facts().kind));
}

}  // namespace attmirror

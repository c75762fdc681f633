#include "descent/fill_random.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/fingerprint.hpp>
#include <attmirror/next_token/objective.hpp>

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

void check_target(const Matrix& target, const NextTokenModel& model, const Block& block) {
  if (target.size() == 0) return;
  const std::ptrdiff_t rows = block == NextTokenBlock::W_ov ? model.vocabulary_size() : model.dim();
  if (target.rows() != rows || target.cols() != model.dim())
    throw bad_input(fmt::format("the target of {} has shape ({}, {}): expected ({}, {})", to_string(block),
                                target.rows(), target.cols(), rows, model.dim()));
}

// The blocks' own numbers, as they are stored; a target is brought into the same shape once.
double direction_gap(ConstMatrixView weights, const Matrix& direction) {
  const auto w = weights.eigen();
  const double norm = w.stableNorm();
  if (!(norm > 0)) return std::numeric_limits<double>::quiet_NaN();
  return 0.5 * (w / norm - direction).squaredNorm();
}

class Engine final : public ObjectiveEngine {
 public:
  Engine(const NextTokenModel& model, const NextTokenMeasures& measures, int threads, ThreadPool& pool)
      : model_(model), engine_(model, pool, measures.path), unseen_(measures.unseen), threads_(threads) {
    add_direction(NextTokenBlock::W_ov, measures.W_ov);
    add_direction(NextTokenBlock::W_kq, measures.W_kq);
  }

  Evaluation evaluate(const ParameterBlocks& weights, Gradient& gradient) override {
    const NextTokenEvaluation value = engine_.evaluate(weights, gradient);
    accuracy_ = value.accuracy;
    return {value.loss, value.max_softmax};
  }

  std::vector<Metric> metrics(const ParameterBlocks& weights) override {
    std::vector<Metric> metrics{{"accuracy", accuracy_}};
    if (model_.stage() != Stage::collocation && model_.readout() == Readout::softmax) {
      // By predict(), as for any other sentences: where two words are equally probable both must count alike.
      const Parameters now = weights.parameters();
      metrics.front().value = accuracy(model_.sentences(), model_.embedding(), now, threads_);
      if (unseen_ != nullptr)
        metrics.push_back({"unseen_accuracy", accuracy(*unseen_, model_.embedding(), now, threads_)});
    }
    for (const auto& [block, direction] : directions_)
      metrics.push_back({fmt::format("direction_{}", to_string(block)),
                         direction_gap(weights.view(weights.find(block)), direction)});
    if (model_.stage() == Stage::joint)
      metrics.push_back({"norm_W_ov", weights.view(weights.find(NextTokenBlock::W_ov)).eigen().stableNorm()});
    return metrics;
  }

 private:
  // Of a trained block, stored as the block is.
  void add_direction(const Block& block, const Matrix& target) {
    if (target.size() == 0 || std::ranges::count(model_.trained(), block) == 0) return;
    Matrix direction = target / target.stableNorm();
    const BlockShape& shape = *std::ranges::find(model_.blocks(), block, &BlockShape::name);
    if (shape.transposed) direction = Matrix(direction.transpose());
    directions_.emplace_back(block, std::move(direction));
  }

  const NextTokenModel& model_;
  NextTokenEngine engine_;
  const Sentences* unseen_;
  int threads_;
  std::vector<std::pair<Block, Matrix>> directions_;
  double accuracy_ = 0;
};

}  // namespace

double direction_gap(const Matrix& a, const Matrix& b) {
  const double length_a = a.stableNorm(), length_b = b.stableNorm();
  if (!(length_a > 0 && length_b > 0)) return std::numeric_limits<double>::quiet_NaN();
  return 0.5 * (a / length_a - b / length_b).squaredNorm();
}

NextTokenObjective::NextTokenObjective(const NextTokenModel& model, NextTokenMeasures measures)
    : model_(&model), measures_(std::move(measures)) {
  check_target(measures_.W_ov, model, NextTokenBlock::W_ov);
  check_target(measures_.W_kq, model, NextTokenBlock::W_kq);
  if (measures_.unseen != nullptr && measures_.unseen->vocabulary_size() != model.vocabulary_size())
    throw bad_input(fmt::format("the unseen sentences have a vocabulary of {}: expected {}",
                                measures_.unseen->vocabulary_size(), model.vocabulary_size()));
}

std::string NextTokenObjective::description() const {
  return fmt::format("next token, {} words in {} dimensions, {} readout, stage {}", model_->vocabulary_size(),
                     model_->dim(), to_string(model_->readout()), to_string(model_->stage()));
}

std::uint64_t NextTokenObjective::data_fingerprint() const {
  Fingerprint print;
  print.add(model_->embedding().fingerprint());
  print.add(model_->collocations().fingerprint());
  // Stage 1 does not see the sentences.
  if (model_->stage() != Stage::collocation) print.add(model_->sentences().fingerprint());
  return print.value();
}

ModelFacts NextTokenObjective::facts() const {
  const bool sees_sentences = model_->stage() != Stage::collocation;
  const Sentences& sentences = model_->sentences();
  const std::ptrdiff_t collocations = model_->collocations().count();
  return {.kind = std::string(next_token_kind),
          .data = {{"samples", sees_sentences ? sentences.count() : collocations},
                   {"max_tokens", sees_sentences ? sentences.max_length() : 1},
                   {"total_tokens", sees_sentences ? sentences.total_tokens() : collocations},
                   {"dim", model_->dim()}},
          .model = {{"params", std::string(to_string(model_->stage()))},
                    {"rank", model_->dim()},
                    {"head", fmt::format("{}:{}", next_token_kind, to_string(model_->readout()))},
                    {"loss", "cross-entropy"}}};
}

Parameters NextTokenObjective::initial_parameters(const Initialization& init) const {
  init.validate();
  Parameters start = model_->zero_parameters();
  if (init.kind != InitKind::zero) {
    if (is_trained(NextTokenBlock::W_ov))
      fill_random(start.matrices["W_ov"], init, RandomStream::init_decoder, model_->dim());
    if (is_trained(NextTokenBlock::W_kq))
      fill_random(start.matrices["W_kq"], init, RandomStream::init_W, model_->dim());
  }
  const std::vector<BlockShape>& shapes = model_->blocks();
  visit_blocks(start, init.given, [&](const Block& block, auto& into, const auto& from) {
    if (from.size() == 0) return;
    if (std::ranges::find(shapes, block, &BlockShape::name) == shapes.end())
      throw bad_input(
          fmt::format("an initial {} is given, but stage {} of next-token training has no such block",
                      to_string(block), to_string(model_->stage())));
    into = from;
  });
  ParameterBlocks(shapes).assign(start);  // checks shapes and finiteness
  const bool frozen = start.has(NextTokenBlock::W_ov) && !is_trained(NextTokenBlock::W_ov);
  if (frozen && start.matrix(NextTokenBlock::W_ov).isZero(0))
    throw bad_input("W_ov is frozen and 0, where no attention changes the prediction: give a trained one");
  return start;
}

double NextTokenObjective::weight_norm(const Parameters& parameters, const Norm& norm) const {
  const Block& main = is_trained(NextTokenBlock::W_kq) ? NextTokenBlock::W_kq : NextTokenBlock::W_ov;
  return attmirror::norm(parameters.matrix(main), norm);
}

std::unique_ptr<ObjectiveEngine> NextTokenObjective::make_engine(const DescentOptions& options, Jacobian,
                                                                 ThreadPool& pool) const {
  // The gradients are the safe ones whatever the optimizer's policy: P4 published no program to be in parity with.
  return std::make_unique<Engine>(*model_, measures_, options.threads, pool);
}

}  // namespace attmirror

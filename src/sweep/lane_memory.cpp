#include "sweep/lane_memory.hpp"

#include "attention/engine_memory.hpp"
#include "attention/kinds.hpp"
#include "base/dispatch.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <utility>

namespace attmirror {

using namespace attmirror::kernels;

const LaneTable& lane_table() {
  return choose_kernels<isa_sse2::lane_table, isa_avx2::lane_table, isa_avx512::lane_table>();
}

namespace {

// One lane of an array of vectors, as if it were an array of its own.
struct Lane {
  double* entries;
  std::ptrdiff_t width, lane;
  double& operator[](std::ptrdiff_t e) const { return entries[e * width + lane]; }

  // The rows of a matrix without their padding.
  void take_rows(ConstMatrixView from) const {
    for (std::ptrdiff_t i = 0; i < from.rows; ++i)
      for (std::ptrdiff_t j = 0; j < from.cols; ++j)
        (*this)[i * from.cols + j] = from.data[i * from.stride + j];
  }
  // All of it, padding included.
  void take_flat(ConstMatrixView from) const {
    for (std::ptrdiff_t j = 0; j < from.flat_size(); ++j) (*this)[j] = from.data[j];
  }
  void give_flat(MatrixView into) const {
    for (std::ptrdiff_t j = 0; j < into.flat_size(); ++j) into.data[j] = (*this)[j];
  }
};

// What belongs to a head and is the same for all lanes.
struct SetUpLaneHead {
  LaneProblem& problem;
  void operator()(const LinearHead&) const {}
  void operator()(const ReluHead& head) const { problem.head_rows = head.V.cols(); }
  void operator()(const QuadraticHead& head) const { problem.lambda = head.lambda; }
  void operator()(const std::shared_ptr<const CustomHead>&) const {
    throw bad_input("a custom head cannot run in a lane");
  }
};

// What each lane has of its own.
struct FillLaneHead {
  Lane head_weights;
  void operator()(const LinearHead&) const {}
  void operator()(const ReluHead& head) const {
    head_weights.take_rows(PaddedMatrix(head.V.transpose()).view());
  }
  void operator()(const QuadraticHead&) const {}
  void operator()(const std::shared_ptr<const CustomHead>&) const {}
};

}  // namespace

LaneMemory::LaneMemory(std::span<const Attention* const> models, Jacobian jacobian, Rule rule)
    : width(static_cast<std::ptrdiff_t>(models.size())) {
  const Attention& model = *models.front();
  const Dataset& data = model.data();
  problem.form = logit_form(model.parameterization());
  problem.loss = loss_form(model.loss());
  problem.head = head_form(model.head());
  if (problem.loss == LossForm::custom) throw bad_input("a custom loss cannot run in a lane");
  std::visit(SetUpLaneHead{problem}, model.head());
  problem.jacobian = jacobian == Jacobian::safe ? JacobianForm::safe : JacobianForm::textbook;
  problem.samples = data.samples();
  problem.length = data.max_length();
  problem.dim = data.dim();
  problem.stride = padded(problem.dim);
  problem.rank = model.rank();
  problem.rank_stride = padded(problem.rank);
  problem.logit_scale = model.logit_scale();

  const std::ptrdiff_t n = problem.samples, T = problem.length, d = problem.dim, m = problem.rank;
  const bool nonlinear = problem.head != HeadForm::linear, low_rank = problem.form == LogitForm::KQ;
  const auto* prompt = std::get_if<Prompt>(&model.parameterization());
  const std::ptrdiff_t keys = prompt != nullptr && prompt->key_weights.size() > 0 ? d * d : 0;
  const std::ptrdiff_t known_scores = nonlinear || model.is_trained(Block::v) ? 0 : n * T;

  // What is wanted, then one piece of memory for all of it; empty arrays stay null.
  std::vector<std::pair<double**, std::ptrdiff_t>> wanted;
  const auto want = [&](double*& array, std::ptrdiff_t entries) { wanted.emplace_back(&array, entries); };
  for (const BlockShape& shape : model.blocks())
    blocks.push_back({shape.name, {shape.rows, shape.cols, padded(shape.cols)}});
  for (LaneBlock& block : blocks) {
    const std::ptrdiff_t size = block.shape.rows * block.shape.stride;
    want(block.weights, size);
    if (!model.is_trained(block.name)) continue;
    if (rule == Rule::with_dual_image) want(block.dual, size);
    want(block.gradient, size);
    want(block.log_scale, 1);
    want(block.terms, size);
  }
  double *tokens = nullptr, *queries = nullptr, *labels = nullptr, *head_weights = nullptr,
         *key_weights = nullptr;
  want(tokens, n * T * d);
  want(queries, n * d);
  want(labels, n);
  want(scores_, known_scores);
  want(head_weights, problem.head_rows * d);
  want(key_weights, keys);
  for (double** array : {&sums.log_scale, &sums.log_scale_v, &sums.loss, &sums.max_softmax}) want(*array, 1);
  want(scratch.u, n * d);
  for (double** array : {&scratch.low, &scratch.low_r}) want(*array, low_rank ? n * m : 0);
  for (double** array : {&scratch.direction, &scratch.direction_sum}) want(*array, prompt != nullptr ? d : 0);
  for (double** array : {&scratch.attended, &scratch.head_gradient}) want(*array, nonlinear ? n * d : 0);
  for (double** array : {&scratch.logits, &scratch.exps}) want(*array, n * T);
  want(scratch.scores, known_scores > 0 ? 0 : n * T);
  for (double** array : {&scratch.reference, &scratch.gap, &scratch.sum, &scratch.delta, &scratch.margin,
                         &scratch.log_slope, &scratch.weight, &scratch.head})
    want(*array, n);

  std::ptrdiff_t entries = 0;
  for (const auto& [array, size] : wanted) entries += size;
  memory_.assign(static_cast<std::size_t>(entries * width), 0.0);
  double* next = memory_.data();
  for (const auto& [array, size] : wanted)
    if (size > 0) *array = std::exchange(next, next + size * width);
  // By the time the second is written, the first is read for the last time: what is not there is not in the way in the
  // nearest cache.
  scratch.r = scratch.u;
  scratch.coefficients = scratch.logits;
  problem.tokens = tokens;
  problem.queries = queries;
  problem.labels = labels;
  problem.scores = scores_;
  problem.head_weights = head_weights;
  problem.key_weights = key_weights;

  for (LaneBlock& block : blocks) {
    if (block.dual == nullptr && block.gradient != nullptr) block.dual = block.weights;
    // In the order of attention_blocks.
    const std::pair<const double*&, double*&> places[]{
        {point.W, sums.W}, {point.K, sums.K}, {point.Q, sums.Q}, {point.p, sums.p}, {point.v, sums.v}};
    const auto& [weights, gradient] =
        places[std::ranges::find(attention_blocks, block.name) - attention_blocks.begin()];
    weights = block.weights;
    gradient = block.gradient;
  }

  for (std::ptrdiff_t lane = 0; lane < width; ++lane) {
    const Attention& own = *models[static_cast<std::size_t>(lane)];
    Lane{tokens, width, lane}.take_rows(own.data().all_tokens());
    Lane{queries, width, lane}.take_rows(own.data().queries());
    for (std::ptrdiff_t i = 0; i < n; ++i)
      Lane{labels, width, lane}[i] = own.data().labels()[static_cast<std::size_t>(i)];
    std::visit(FillLaneHead{{head_weights, width, lane}}, own.head());
    if (keys > 0)
      Lane{key_weights, width, lane}.take_rows(
          PaddedMatrix(std::get<Prompt>(own.parameterization()).key_weights).view());
  }
}

void LaneMemory::set_weights(std::ptrdiff_t lane, const Attention& model, const ParameterBlocks& from) {
  for (std::size_t b = 0; b < blocks.size(); ++b)
    Lane{blocks[b].weights, width, lane}.take_flat(from.view(static_cast<std::ptrdiff_t>(b)));
  if (scores_ == nullptr) return;
  const ConstMatrixView v = from.view(from.find(Block::v));
  const Dataset& data = model.data();
  for (std::ptrdiff_t t = 0; t < data.total_tokens(); ++t) {
    ConstMatrixView token = data.all_tokens();
    token.data += t * token.stride;
    token.rows = 1;
    Lane{scores_, width, lane}[t] =
        data.labels()[static_cast<std::size_t>(t / problem.length)] * decoder_score(token, v);
  }
}

void LaneMemory::get_weights(std::ptrdiff_t lane, ParameterBlocks& into) const {
  for (std::size_t b = 0; b < blocks.size(); ++b)
    Lane{blocks[b].weights, width, lane}.give_flat(into.view(static_cast<std::ptrdiff_t>(b)));
}

void LaneMemory::set_dual(std::ptrdiff_t lane, const ParameterBlocks& from) {
  for (const LaneBlock& block : blocks)
    if (block.gradient != nullptr) Lane{block.dual, width, lane}.take_flat(from.view(from.find(block.name)));
}

void LaneMemory::get_gradient(std::ptrdiff_t lane, const LaneBlock& block, MatrixView into) const {
  Lane{block.gradient, width, lane}.give_flat(into);
}

}  // namespace attmirror

// What a GradientEngine sets up once: the problem as its kernels see it, and the memory of each chunk.
#include "attention/engine_memory.hpp"

#include "attention/kinds.hpp"
#include "base/dispatch.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

using namespace attmirror::kernels;

namespace {

// The callbacks behind which kernels see a loss and a head of the user's own.
void call_custom_loss(const void* object, const double* margins, std::ptrdiff_t count, double* loss,
                      double* log_slope) {
  const auto& custom = *static_cast<const CustomLoss*>(object);
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    loss[i] = custom.value(margins[i]);
    log_slope[i] = custom.log_abs_derivative(margins[i]);
  }
}

void call_custom_head(const void* object, const double* u, std::ptrdiff_t stride, std::ptrdiff_t count,
                      double* values, double* gradients) {
  const auto& custom = *static_cast<const CustomHeadObject*>(object);
  const auto d = static_cast<std::size_t>(custom.dim);
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    values[i] = custom.head->evaluate({u + i * stride, d}, {gradients + i * stride, d});
    std::fill_n(gradients + i * stride + custom.dim, stride - custom.dim, 0.0);
  }
}

// What belongs to a head, as the kernels see it.
struct SetUpHead {
  Problem& problem;
  PaddedMatrix& head_weights;
  CustomHeadObject& custom_head;
  void operator()(const LinearHead&) const {}
  void operator()(const ReluHead& head) const {
    head_weights = PaddedMatrix(head.V.transpose());
    problem.head_weights = head_weights.view().data;
    problem.head_rows = head_weights.view().rows;
  }
  void operator()(const QuadraticHead& head) const { problem.lambda = head.lambda; }
  void operator()(const std::shared_ptr<const CustomHead>& head) const {
    custom_head = {head.get(), problem.dim};
    problem.custom_head = {&custom_head, &call_custom_head};
  }
};

}  // namespace

BlockPlaces::BlockPlaces(const std::vector<BlockShape>& blocks) {
  const auto place = [&](const Block& name) -> std::ptrdiff_t {
    const auto found = std::ranges::find(blocks, name, &BlockShape::name);
    return found == blocks.end() ? -1 : found - blocks.begin();
  };
  W = place(Block::W);
  K = place(Block::K);
  Q = place(Block::Q);
  p = place(Block::p);
  v = place(Block::v);
}

GradientEngine::Memory::Memory(const Attention& m, const EngineOptions& options, ThreadPool& p)
    : model(&m), pool(&p), layout(m, options.path), all(m.blocks()), trained(m.trained_blocks()), floor(m) {
  const AttentionKernels& kernels =
      layout.path == DataPath::stream
          ? choose_kernels<isa_sse2::stream_kernels, isa_avx2::stream_kernels, isa_avx512::stream_kernels>()
          : choose_kernels<isa_sse2::block_kernels, isa_avx2::block_kernels, isa_avx512::block_kernels>();
  evaluate = options.storage == TokenStorage::float32 ? kernels.evaluate_floats : kernels.evaluate;
  const Dataset& data = m.data();
  problem.form = logit_form(m.parameterization());
  problem.loss = loss_form(m.loss());
  problem.head = head_form(m.head());
  problem.jacobian = options.jacobian == Jacobian::safe ? JacobianForm::safe : JacobianForm::textbook;
  problem.outputs = data.total_queries();
  problem.dim = data.dim();
  problem.stride = padded(data.dim());
  problem.rank = m.rank();
  problem.rank_stride = padded(m.rank());
  problem.logit_scale = m.logit_scale();
  problem.queries = data.queries().data;
  problem.labels = data.labels().data();
  problem.token_rows = layout.token_rows.data();
  problem.lengths = layout.lengths.data();
  problem.score_places = layout.score_places.data();
  if (!layout.mask.empty()) problem.mask = layout.mask.data();
  if (options.storage == TokenStorage::float32)
    round_tokens();
  else
    problem.tokens = data.all_tokens().data;
  set_up_head();
  if (m.has_block(Block::p)) direction = PaddedMatrix(1, problem.dim);
  workers.resize(static_cast<std::size_t>(layout.chunks()));
  for (Worker& worker : workers) set_up_scratch(worker);
}

void GradientEngine::Memory::round_tokens() {
  const ConstMatrixView tokens = model->data().all_tokens();
  float_tokens.resize(static_cast<std::size_t>(tokens.flat_size()));
  for (std::ptrdiff_t j = 0; j < tokens.flat_size(); ++j) {
    if (std::abs(tokens.data[j]) > std::numeric_limits<float>::max())
      throw bad_input(fmt::format("tokens[{}][{}] is {}: too large for tokens stored as float32",
                                  j / tokens.stride, j % tokens.stride, tokens.data[j]));
    float_tokens[static_cast<std::size_t>(j)] = static_cast<float>(tokens.data[j]);
  }
  problem.float_tokens = float_tokens.data();
}

void GradientEngine::Memory::set_up_head() {
  const Dataset& data = model->data();
  if (const auto* custom = std::get_if<std::shared_ptr<const CustomLoss>>(&model->loss()))
    problem.custom_loss = {custom->get(), &call_custom_loss};
  std::visit(SetUpHead{problem, head_weights, custom_head}, model->head());
  if (problem.head != HeadForm::linear || model->is_trained(Block::v)) return;

  sequence_places.push_back(0);
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i)
    sequence_places.push_back(sequence_places.back() + padded_tokens(data.length(i)));
  scores.assign(static_cast<std::size_t>(sequence_places.back()), 0.0);
  scored_decoder = PaddedMatrix(1, problem.dim);  // v = 0 has the scores 0
  if (layout.score_places == sequence_places && data.one_query_each()) {
    problem.scores = scores.data();
  } else {
    for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j)
      token_score_places.push_back(sequence_places[static_cast<std::size_t>(data.sequence_of(j))]);
    problem.token_scores = scores.data();
    problem.token_score_places = token_score_places.data();
  }
}

void GradientEngine::Memory::set_up_scratch(Worker& worker) const {
  const std::ptrdiff_t queries = layout.scratch_queries, tokens = layout.scratch_tokens;
  const bool low_rank = problem.form == LogitForm::KQ, nonlinear = problem.head != HeadForm::linear;
  const bool keeps_attended = nonlinear || (layout.path == DataPath::stream && model->is_trained(Block::v));
  const std::ptrdiff_t rows = (2 + (keeps_attended ? 1 : 0) + (nonlinear ? 1 : 0)) * problem.stride +
                              (low_rank ? 2 * problem.rank_stride : 0);
  worker.memory.assign(static_cast<std::size_t>(queries * (rows + per_query_arrays) + tokens * 4), 0.0);
  double* next = worker.memory.data();
  const auto take = [&](std::ptrdiff_t count) { return std::exchange(next, next + count); };
  Scratch& s = worker.scratch;
  s.u = take(queries * problem.stride);
  s.r = take(queries * problem.stride);
  if (keeps_attended) s.attended = take(queries * problem.stride);
  if (nonlinear) s.head_gradient = take(queries * problem.stride);
  if (low_rank) {
    s.low = take(queries * problem.rank_stride);
    s.low_r = take(queries * problem.rank_stride);
  }
  for (double*& array : s.per_query) array = take(queries);
  s.logits = take(tokens);
  s.exps = take(tokens);
  s.scores = take(tokens);
  s.coefficients = take(tokens);
  if (workers.size() > 1) {
    worker.gradient.blocks = ParameterBlocks(model->trained_blocks());
    worker.gradient.log_scale.assign(model->trained().size(), 0.0);
  }
  if (!float_tokens.empty()) worker.widened_row = PaddedMatrix(1, problem.dim);
  if (model->is_trained(Block::p)) worker.direction_sum = PaddedMatrix(1, problem.dim);
}

}  // namespace attmirror

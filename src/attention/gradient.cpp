#include "attention/block_kernels.hpp"
#include "base/dispatch.hpp"
#include <attmirror/attention/gradient.hpp>
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

using namespace attmirror::kernels;

namespace {

// A block's tokens should stay in the second-level cache between the two times that they are used.
constexpr std::ptrdiff_t block_doubles = 32 * 1024;
// A chunk is worth a thread's attention from about this much work; more chunks than this buy nothing.
constexpr std::ptrdiff_t chunk_doubles = 128 * 1024;
constexpr std::ptrdiff_t max_chunks = 32;

constexpr double infinity = std::numeric_limits<double>::infinity();

// The callbacks behind which kernels see a loss and a head of the user's own.
void call_custom_loss(const void* object, const double* margins, std::ptrdiff_t count, double* loss,
                      double* log_slope) {
  const auto& custom = *static_cast<const CustomLoss*>(object);
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    loss[i] = custom.value(margins[i]);
    log_slope[i] = custom.log_abs_derivative(margins[i]);
  }
}

struct CustomHeadObject {
  const CustomHead* head = nullptr;
  std::ptrdiff_t dim = 0;
};

void call_custom_head(const void* object, const double* u, std::ptrdiff_t stride, std::ptrdiff_t count,
                      double* values, double* gradients) {
  const auto& custom = *static_cast<const CustomHeadObject*>(object);
  const auto d = static_cast<std::size_t>(custom.dim);
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    values[i] = custom.head->evaluate({u + i * stride, d}, {gradients + i * stride, d});
    std::fill_n(gradients + i * stride + custom.dim, stride - custom.dim, 0.0);
  }
}

}  // namespace

struct GradientEngine::Memory {
  const Attention* model;
  ThreadPool* pool;
  const AttentionKernels* kernels;
  Problem problem;
  std::vector<std::ptrdiff_t> token_rows, lengths, score_places;  // by query
  std::vector<std::uint8_t> mask;
  PaddedMatrix head_weights;
  CustomHeadObject custom_head;

  // While v is not trained: the scores of the v that was evaluated last, those of sequence i from
  // sequence_places[i] on (and of query j from token_score_places[j]).
  AlignedVector scores;
  std::vector<std::ptrdiff_t> sequence_places, token_score_places;
  PaddedMatrix scored_decoder;  // that v

  // Blocks of queries are [block_starts[b], block_starts[b+1]); chunk c works off the blocks [chunk_starts[c],
  // chunk_starts[c+1]).
  std::vector<std::ptrdiff_t> block_starts, chunk_starts;
  struct Worker {  // one per chunk
    AlignedVector memory;
    Scratch scratch;
    Sums sums;
    Gradient gradient;           // where this chunk sums; unused for a single chunk
    PaddedMatrix direction_sum;  // of a prompt: sum of r_i, before the key weights
  };
  std::vector<Worker> workers;
  PaddedMatrix direction;  // of a prompt: A^T p

  Memory(const Attention& m, Jacobian jacobian, ThreadPool& p);
  void lay_out_queries();
  void set_up_head();
  void divide();
  void set_up_scratch(Worker& worker) const;
  void update_scores(ConstMatrixView v);
  void form_direction(ConstMatrixView p);
  void begin(Worker& worker, Gradient* target);
  void finish_prompt(Gradient& gradient);
  double penalty(const ParameterBlocks& parameters, Gradient* gradient) const;
  void combine(Gradient& gradient);
  Evaluation run(const ParameterBlocks& parameters, Gradient* gradient);
};

GradientEngine::Memory::Memory(const Attention& m, Jacobian jacobian, ThreadPool& p)
    : model(&m),
      pool(&p),
      kernels(&choose_kernels(isa_sse2::attention_kernels, isa_avx2::attention_kernels,
                              isa_avx512::attention_kernels)) {
  const Dataset& data = m.data();
  problem.form = static_cast<LogitForm>(m.parameterization().index());
  problem.loss = static_cast<LossForm>(m.loss().index());
  problem.head = static_cast<HeadForm>(m.head().index());
  problem.jacobian = jacobian == Jacobian::safe ? JacobianForm::safe : JacobianForm::textbook;
  problem.outputs = data.total_queries();
  problem.dim = data.dim();
  problem.stride = padded(data.dim());
  problem.rank = m.rank();
  problem.rank_stride = padded(m.rank());
  problem.logit_scale = m.logit_scale();
  problem.tokens = data.all_tokens().data;
  problem.queries = data.queries().data;
  problem.labels = data.labels().data();
  lay_out_queries();
  set_up_head();
  if (m.has_block(Block::p)) direction = PaddedMatrix(1, problem.dim);
  divide();
  workers.resize(chunk_starts.size() - 1);
  for (Worker& worker : workers) set_up_scratch(worker);
}

// Where each query finds its tokens, and its place in arrays with a number per query and token.
void GradientEngine::Memory::lay_out_queries() {
  const Dataset& data = model->data();
  const std::ptrdiff_t N = data.total_queries();
  score_places.push_back(0);
  for (std::ptrdiff_t j = 0; j < N; ++j) {
    token_rows.push_back(data.offset(data.sequence_of(j)));
    lengths.push_back(data.attended_length(j));
    score_places.push_back(score_places.back() + padded_tokens(lengths.back()));
  }
  problem.token_rows = token_rows.data();
  problem.lengths = lengths.data();
  problem.score_places = score_places.data();
  if (data.mask() != Mask::custom) return;
  mask.assign(static_cast<std::size_t>(score_places.back()), 0);
  for (std::ptrdiff_t j = 0; j < N; ++j)
    std::ranges::copy(data.mask_row(j), mask.begin() + score_places[static_cast<std::size_t>(j)]);
  problem.mask = mask.data();
}

void GradientEngine::Memory::set_up_head() {
  const Dataset& data = model->data();
  if (const auto* custom = std::get_if<std::shared_ptr<const CustomLoss>>(&model->loss()))
    problem.custom_loss = {custom->get(), &call_custom_loss};
  if (const auto* custom = std::get_if<std::shared_ptr<const CustomHead>>(&model->head())) {
    custom_head = {custom->get(), data.dim()};
    problem.custom_head = {&custom_head, &call_custom_head};
  }
  if (const auto* relu = std::get_if<ReluHead>(&model->head())) {
    head_weights = PaddedMatrix(relu->V.transpose());
    problem.head_weights = head_weights.view().data;
    problem.head_rows = head_weights.view().rows;
  }
  if (const auto* quadratic = std::get_if<QuadraticHead>(&model->head())) problem.lambda = quadratic->lambda;
  if (problem.head != HeadForm::linear || model->is_trained(Block::v)) return;

  sequence_places.push_back(0);
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i)
    sequence_places.push_back(sequence_places.back() + padded_tokens(data.length(i)));
  scores.assign(static_cast<std::size_t>(sequence_places.back()), 0.0);
  scored_decoder = PaddedMatrix(1, problem.dim);  // v = 0 has the scores 0
  if (score_places == sequence_places && data.one_query_each()) {
    problem.scores = scores.data();
  } else {
    for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j)
      token_score_places.push_back(sequence_places[static_cast<std::size_t>(data.sequence_of(j))]);
    problem.token_scores = scores.data();
    problem.token_score_places = token_score_places.data();
  }
}

// Blocks by size of what their queries attend to, then chunks of whole blocks by total size.
void GradientEngine::Memory::divide() {
  const auto rows_of = [&](std::ptrdiff_t j) { return lengths[static_cast<std::size_t>(j)]; };
  std::ptrdiff_t rows = 0, total_rows = 0;
  block_starts.push_back(0);
  for (std::ptrdiff_t j = 0; j < problem.outputs; ++j) {
    rows += rows_of(j);
    total_rows += rows_of(j);
    const bool last = j + 1 == problem.outputs;
    if (last || (rows + rows_of(j + 1)) * problem.stride > block_doubles) {
      block_starts.push_back(j + 1);
      rows = 0;
    }
  }
  const auto blocks = static_cast<std::ptrdiff_t>(block_starts.size()) - 1;
  const std::ptrdiff_t chunks = std::clamp<std::ptrdiff_t>(total_rows * problem.stride / chunk_doubles, 1,
                                                           std::min(max_chunks, blocks));
  for (std::ptrdiff_t c = 0; c <= chunks; ++c) chunk_starts.push_back(blocks * c / chunks);
}

void GradientEngine::Memory::set_up_scratch(Worker& worker) const {
  std::ptrdiff_t queries = 0, tokens = 0;
  for (std::size_t b = 0; b + 1 < block_starts.size(); ++b) {
    queries = std::max(queries, block_starts[b + 1] - block_starts[b]);
    tokens = std::max(tokens, score_places[static_cast<std::size_t>(block_starts[b + 1])] -
                                  score_places[static_cast<std::size_t>(block_starts[b])]);
  }
  queries = padded_tokens(queries);
  const bool low_rank = problem.form == LogitForm::KQ, nonlinear = problem.head != HeadForm::linear;
  const std::ptrdiff_t rows = (nonlinear ? 4 : 2) * problem.stride + (low_rank ? 2 * problem.rank_stride : 0);
  worker.memory.assign(static_cast<std::size_t>(queries * (rows + per_query_arrays) + tokens * 4), 0.0);
  double* next = worker.memory.data();
  const auto take = [&](std::ptrdiff_t count) { return std::exchange(next, next + count); };
  Scratch& s = worker.scratch;
  s.u = take(queries * problem.stride);
  s.r = take(queries * problem.stride);
  if (nonlinear) {
    s.attended = take(queries * problem.stride);
    s.head_gradient = take(queries * problem.stride);
  }
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
  if (model->is_trained(Block::p)) worker.direction_sum = PaddedMatrix(1, problem.dim);
}

// A fixed v stays the same from step to step; then this compares d numbers.
void GradientEngine::Memory::update_scores(ConstMatrixView v) {
  MatrixView known = scored_decoder.view();
  if (std::equal(v.data, v.data + v.stride, known.data)) return;
  std::copy_n(v.data, v.stride, known.data);
  const Dataset& data = model->data();
  const auto direction_v = v.eigen().row(0);
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i) {
    const auto X = data.tokens(i).eigen();
    const double label = problem.scores != nullptr ? problem.labels[i] : 1.0;
    double* into = scores.data() + sequence_places[static_cast<std::size_t>(i)];
    for (std::ptrdiff_t t = 0; t < data.length(i); ++t) into[t] = label * X.row(t).dot(direction_v);
  }
}

// u = scale A^T p
void GradientEngine::Memory::form_direction(ConstMatrixView p) {
  const Matrix& A = std::get<Prompt>(model->parameterization()).key_weights;
  MatrixView u = direction.view();
  if (A.size() == 0) {
    std::copy_n(p.data, u.stride, u.data);
  } else {
    std::fill_n(u.data, u.stride, 0.0);
    for (std::ptrdiff_t r = 0; r < problem.dim; ++r)
      for (std::ptrdiff_t c = 0; c < problem.dim; ++c) u.data[c] += p.data[r] * A(r, c);
  }
  for (std::ptrdiff_t c = 0; c < problem.dim; ++c) u.data[c] *= problem.logit_scale;
}

// Clears a chunk's sums; they go to `target`, or nowhere (null).
void GradientEngine::Memory::begin(Worker& worker, Gradient* target) {
  Sums& sums = worker.sums;
  sums = Sums{};
  const bool safe = problem.jacobian == JacobianForm::safe;
  sums.log_scale = sums.log_scale_v = safe ? -infinity : 0.0;
  if (target == nullptr) return;
  for (std::ptrdiff_t b = 0; b < target->blocks.count(); ++b) {
    MatrixView block = target->blocks.view(b);
    std::fill_n(block.data, block.flat_size(), 0.0);
    switch (target->blocks.shape(b).name) {
      case Block::W:
        sums.W = block.data;
        break;
      case Block::K:
        sums.K = block.data;
        break;
      case Block::Q:
        sums.Q = block.data;
        break;
      case Block::v:
        sums.v = block.data;
        break;
      case Block::p: {
        MatrixView sum = worker.direction_sum.view();
        std::fill_n(sum.data, sum.flat_size(), 0.0);
        sums.direction = sum.data;
        break;
      }
    }
  }
}

// gradient = sum over chunks of e^{scale_c - scale} gradient_c, in chunk order; workers[0] already points at
// it.
void GradientEngine::Memory::combine(Gradient& gradient) {
  Sums& total = workers.front().sums;
  double scale = -infinity, scale_v = -infinity;
  for (const Worker& worker : workers) {
    scale = std::max(scale, worker.sums.log_scale);
    scale_v = std::max(scale_v, worker.sums.log_scale_v);
  }
  const auto factor = [](double own, double common) { return own == common ? 1.0 : std::exp(own - common); };
  for (std::size_t c = 0; c < workers.size(); ++c) {
    const double f = factor(workers[c].sums.log_scale, scale);
    const double f_v = factor(workers[c].sums.log_scale_v, scale_v);
    const auto add = [&](double* into, const double* from, std::ptrdiff_t size, double times) {
      if (c == 0) {
        if (times != 1.0)
          for (std::ptrdiff_t j = 0; j < size; ++j) into[j] *= times;
      } else {
        for (std::ptrdiff_t j = 0; j < size; ++j) into[j] += times * from[j];
      }
    };
    for (std::ptrdiff_t b = 0; b < gradient.blocks.count(); ++b) {
      const Block name = gradient.blocks.shape(b).name;
      if (name == Block::p) continue;
      MatrixView into = gradient.blocks.view(b);
      const double* from = c == 0 ? nullptr : workers[c].gradient.blocks.view(b).data;
      add(into.data, from, into.flat_size(), name == Block::v ? f_v : f);
    }
    if (total.direction != nullptr) add(total.direction, workers[c].sums.direction, problem.stride, f);
    if (c > 0) {
      total.loss += workers[c].sums.loss;
      total.max_softmax += workers[c].sums.max_softmax;
    }
  }
  total.log_scale = scale;
  total.log_scale_v = scale_v;
}

// grad_p = scale A (sum_j r_j)
void GradientEngine::Memory::finish_prompt(Gradient& gradient) {
  const Matrix& A = std::get<Prompt>(model->parameterization()).key_weights;
  MatrixView g = gradient.blocks.view(gradient.blocks.find(Block::p));
  const double* sum = workers.front().sums.direction;
  for (std::ptrdiff_t r = 0; r < problem.dim; ++r) {
    double value = A.size() == 0 ? sum[r] : 0.0;
    for (std::ptrdiff_t c = 0; c < A.cols(); ++c) value += A(r, c) * sum[c];
    g.data[r] = problem.logit_scale * value;
  }
}

// lambda |w|^2 over the trained blocks of the attention, and 2 lambda w added to their gradients. The common factor of
// a safe gradient may be far below that of the penalty: the larger one becomes the new factor.
double GradientEngine::Memory::penalty(const ParameterBlocks& parameters, Gradient* gradient) const {
  const double lambda = model->penalty();
  if (lambda == 0) return 0;
  double sum = 0;
  for (const Block name : model->trained()) {
    if (name == Block::v) continue;
    const ConstMatrixView w = parameters.view(parameters.find(name));
    sum += w.eigen().squaredNorm();
    if (gradient == nullptr) continue;
    const std::ptrdiff_t b = gradient->blocks.find(name);
    double& scale = gradient->log_scale[static_cast<std::size_t>(b)];
    double own = scale;
    if (problem.jacobian == JacobianForm::safe)
      own = std::max(scale, std::log(2 * lambda) + std::log(w.eigen().cwiseAbs().maxCoeff()));
    if (own == -infinity) continue;  // neither has a gradient
    const double keep = own == scale ? 1.0 : std::exp(scale - own),
                 add = std::exp(std::log(2 * lambda) - own);
    const MatrixView g = gradient->blocks.view(b);
    for (std::ptrdiff_t j = 0; j < g.flat_size(); ++j) g.data[j] = keep * g.data[j] + add * w.data[j];
    scale = own;
  }
  return lambda * sum;
}

Evaluation GradientEngine::Memory::run(const ParameterBlocks& parameters, Gradient* gradient) {
  Point at;
  for (std::ptrdiff_t b = 0; b < parameters.count(); ++b) {
    const double* data = parameters.view(b).data;
    switch (parameters.shape(b).name) {
      case Block::W:
        at.W = data;
        break;
      case Block::K:
        at.K = data;
        break;
      case Block::Q:
        at.Q = data;
        break;
      case Block::v:
        at.v = data;
        if (!scores.empty()) update_scores(parameters.view(b));
        break;
      case Block::p:
        form_direction(parameters.view(b));
        at.direction = direction.view().data;
        break;
    }
  }
  pool->run(static_cast<std::ptrdiff_t>(workers.size()), [&](std::ptrdiff_t c) {
    const auto chunk = static_cast<std::size_t>(c);
    Worker& worker = workers[chunk];
    begin(worker, gradient == nullptr ? nullptr : chunk == 0 ? gradient : &worker.gradient);
    for (std::ptrdiff_t b = chunk_starts[chunk]; b < chunk_starts[chunk + 1]; ++b)
      kernels->evaluate_block(problem, at, worker.scratch, worker.sums,
                              block_starts[static_cast<std::size_t>(b)],
                              block_starts[static_cast<std::size_t>(b) + 1]);
  });
  Sums& total = workers.front().sums;
  if (gradient != nullptr) {
    if (workers.size() > 1) combine(*gradient);
    if (total.direction != nullptr) finish_prompt(*gradient);
    for (std::ptrdiff_t b = 0; b < gradient->blocks.count(); ++b)
      gradient->log_scale[static_cast<std::size_t>(b)] =
          gradient->blocks.shape(b).name == Block::v ? total.log_scale_v : total.log_scale;
  } else {
    for (std::size_t c = 1; c < workers.size(); ++c) {
      total.loss += workers[c].sums.loss;
      total.max_softmax += workers[c].sums.max_softmax;
    }
  }
  const auto count = static_cast<double>(problem.outputs);
  return {total.loss / count + penalty(parameters, gradient), total.max_softmax / count};
}

GradientEngine::GradientEngine(const Attention& model, Jacobian jacobian, ThreadPool& pool)
    : memory_(std::make_unique<Memory>(model, jacobian, pool)) {}
GradientEngine::~GradientEngine() = default;
GradientEngine::GradientEngine(GradientEngine&&) noexcept = default;
GradientEngine& GradientEngine::operator=(GradientEngine&&) noexcept = default;

Evaluation GradientEngine::evaluate(const ParameterBlocks& parameters, Gradient& gradient) {
  return memory_->run(parameters, &gradient);
}

Evaluation GradientEngine::evaluate(const ParameterBlocks& parameters) {
  return memory_->run(parameters, nullptr);
}

Gradient GradientEngine::make_gradient() const {
  Gradient gradient;
  gradient.blocks = ParameterBlocks(memory_->model->trained_blocks());
  gradient.log_scale.assign(memory_->model->trained().size(), 0.0);
  return gradient;
}

std::string_view to_string(Jacobian jacobian) { return jacobian == Jacobian::safe ? "safe" : "textbook"; }

Jacobian parse_jacobian(std::string_view name) {
  if (name == "safe") return Jacobian::safe;
  if (name == "textbook") return Jacobian::textbook;
  throw bad_input(fmt::format("jacobian is \"{}\": expected safe or textbook", name));
}

LossAndGradient loss_and_gradient(const Attention& model, const Parameters& parameters, Jacobian jacobian) {
  ParameterBlocks blocks(model.blocks());
  blocks.assign(parameters);
  ThreadPool pool(1);
  GradientEngine engine(model, jacobian, pool);
  Gradient gradient = engine.make_gradient();
  const Evaluation value = engine.evaluate(blocks, gradient);
  for (std::ptrdiff_t b = 0; b < gradient.blocks.count(); ++b)
    gradient.blocks.view(b).eigen() *= std::exp(gradient.log_scale[static_cast<std::size_t>(b)]);
  return {value.loss, value.max_softmax, gradient.blocks.parameters()};
}

}  // namespace attmirror

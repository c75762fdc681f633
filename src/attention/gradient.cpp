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

// gamma_it = Y_i v^T x_it in the padded layout of the kernels.
void form_scores(const Dataset& data, ConstMatrixView decoder, const std::vector<std::ptrdiff_t>& places,
                 AlignedVector& scores) {
  const auto v = decoder.eigen().row(0);
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i) {
    const auto X = data.tokens(i).eigen();
    for (std::ptrdiff_t t = 0; t < data.length(i); ++t)
      scores[static_cast<std::size_t>(places[static_cast<std::size_t>(i)] + t)] =
          data.labels()[static_cast<std::size_t>(i)] * X.row(t).dot(v);
  }
}

}  // namespace

struct GradientEngine::Memory {
  const Attention* model;
  ThreadPool* pool;
  const AttentionKernels* kernels;
  Problem problem;
  std::vector<std::ptrdiff_t> token_rows, score_places;
  AlignedVector scores;         // while v is not trained: of the v that was evaluated last
  PaddedMatrix scored_decoder;  // that v

  // Blocks are [block_starts[b], block_starts[b+1]); chunk c works off the blocks [chunk_starts[c],
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
  void divide();
  void set_up_scratch(Worker& worker) const;
  void update_scores(ConstMatrixView v);
  void form_direction(ConstMatrixView p);
  void begin(Worker& worker, Gradient* target);
  void finish_prompt(Gradient& gradient);
  void combine(Gradient& gradient);
  Evaluation run(const ParameterBlocks& parameters, Gradient* gradient);
};

GradientEngine::Memory::Memory(const Attention& m, Jacobian jacobian, ThreadPool& p)
    : model(&m),
      pool(&p),
      kernels(&choose_kernels(isa_sse2::attention_kernels, isa_avx2::attention_kernels,
                              isa_avx512::attention_kernels)) {
  const Dataset& data = m.data();
  token_rows.resize(static_cast<std::size_t>(data.samples()) + 1);
  score_places.resize(token_rows.size(), 0);
  for (std::size_t i = 0; i < token_rows.size(); ++i) {
    token_rows[i] = data.offset(static_cast<std::ptrdiff_t>(i));
    if (i > 0) score_places[i] = score_places[i - 1] + padded_tokens(token_rows[i] - token_rows[i - 1]);
  }
  problem.form = static_cast<LogitForm>(m.parameterization().index());
  problem.loss = static_cast<LossForm>(m.loss().index());
  problem.jacobian = jacobian == Jacobian::safe ? JacobianForm::safe : JacobianForm::textbook;
  problem.samples = data.samples();
  problem.dim = data.dim();
  problem.stride = padded(data.dim());
  problem.rank = m.rank();
  problem.rank_stride = padded(m.rank());
  problem.tokens = data.all_tokens().data;
  problem.queries = data.queries().data;
  problem.labels = data.labels().data();
  problem.token_rows = token_rows.data();
  problem.score_places = score_places.data();
  if (!m.is_trained(Block::v)) {
    scores.assign(static_cast<std::size_t>(score_places.back()), 0.0);
    scored_decoder = PaddedMatrix(1, problem.dim);  // v = 0 has the scores 0
    problem.scores = scores.data();
  }
  if (m.has_block(Block::p)) direction = PaddedMatrix(1, problem.dim);
  divide();
  workers.resize(chunk_starts.size() - 1);
  for (Worker& worker : workers) set_up_scratch(worker);
}

// Blocks by size of their tokens, then chunks of whole blocks by total size.
void GradientEngine::Memory::divide() {
  block_starts.reserve(token_rows.size());
  block_starts.push_back(0);
  for (std::ptrdiff_t i = 1; i <= problem.samples; ++i) {
    const std::ptrdiff_t rows =
        token_rows[static_cast<std::size_t>(i)] - token_rows[static_cast<std::size_t>(block_starts.back())];
    const bool last = i == problem.samples;
    const std::ptrdiff_t next =
        last ? 0 : token_rows[static_cast<std::size_t>(i) + 1] - token_rows[static_cast<std::size_t>(i)];
    if (last || (rows + next) * problem.stride > block_doubles) block_starts.push_back(i);
  }
  const auto blocks = static_cast<std::ptrdiff_t>(block_starts.size()) - 1;
  const std::ptrdiff_t total = token_rows.back() * problem.stride;
  const std::ptrdiff_t chunks =
      std::clamp<std::ptrdiff_t>(total / chunk_doubles, 1, std::min(max_chunks, blocks));
  for (std::ptrdiff_t c = 0; c <= chunks; ++c) chunk_starts.push_back(blocks * c / chunks);
}

void GradientEngine::Memory::set_up_scratch(Worker& worker) const {
  std::ptrdiff_t sequences = 0, tokens = 0;
  for (std::size_t b = 0; b + 1 < block_starts.size(); ++b) {
    sequences = std::max(sequences, block_starts[b + 1] - block_starts[b]);
    tokens = std::max(tokens, score_places[static_cast<std::size_t>(block_starts[b + 1])] -
                                  score_places[static_cast<std::size_t>(block_starts[b])]);
  }
  sequences = padded_tokens(sequences);
  const bool low_rank = problem.form == LogitForm::KQ;
  const std::ptrdiff_t size =
      sequences * (2 * problem.stride + (low_rank ? 2 * problem.rank_stride : 0) + 10) + tokens * 4;
  worker.memory.assign(static_cast<std::size_t>(size), 0.0);
  double* next = worker.memory.data();
  const auto take = [&](std::ptrdiff_t count) { return std::exchange(next, next + count); };
  Scratch& s = worker.scratch;
  s.u = take(sequences * problem.stride);
  s.r = take(sequences * problem.stride);
  if (low_rank) {
    s.low = take(sequences * problem.rank_stride);
    s.low_r = take(sequences * problem.rank_stride);
  }
  for (double*& array : s.per_sequence) array = take(sequences);
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
  form_scores(model->data(), v, score_places, scores);
}

// u = A^T p
void GradientEngine::Memory::form_direction(ConstMatrixView p) {
  const Matrix& A = std::get<Prompt>(model->parameterization()).key_weights;
  MatrixView u = direction.view();
  if (A.size() == 0) {
    std::copy_n(p.data, u.stride, u.data);
    return;
  }
  std::fill_n(u.data, u.stride, 0.0);
  for (std::ptrdiff_t r = 0; r < problem.dim; ++r)
    for (std::ptrdiff_t c = 0; c < problem.dim; ++c) u.data[c] += p.data[r] * A(r, c);
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

// grad_p = A (sum_i r_i)
void GradientEngine::Memory::finish_prompt(Gradient& gradient) {
  const Matrix& A = std::get<Prompt>(model->parameterization()).key_weights;
  MatrixView g = gradient.blocks.view(gradient.blocks.find(Block::p));
  const double* sum = workers.front().sums.direction;
  for (std::ptrdiff_t r = 0; r < problem.dim; ++r) {
    if (A.size() == 0) {
      g.data[r] = sum[r];
      continue;
    }
    double value = 0;
    for (std::ptrdiff_t c = 0; c < problem.dim; ++c) value += A(r, c) * sum[c];
    g.data[r] = value;
  }
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
        if (problem.scores != nullptr) update_scores(parameters.view(b));
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
  const auto n = static_cast<double>(problem.samples);
  return {total.loss / n, total.max_softmax / n};
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

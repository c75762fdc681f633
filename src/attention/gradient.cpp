#include "attention/engine_memory.hpp"
#include "base/numbers.hpp"
#include <attmirror/attention/gradient.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace attmirror {

using namespace attmirror::kernels;

namespace {}  // namespace

double decoder_score(ConstMatrixView token, ConstMatrixView v) {
  return token.eigen().row(0).dot(v.eigen().row(0));
}

double penalized_square(const Attention& model, const ParameterBlocks& parameters) {
  double sum = 0;
  for (const Block& name : model.trained())
    if (name != Block::v) sum += parameters.view(parameters.find(name)).eigen().squaredNorm();
  return sum;
}

// A fixed v stays the same from step to step; then this compares d numbers.
void GradientEngine::Memory::update_scores(ConstMatrixView v) {
  MatrixView known = scored_decoder.view();
  if (std::equal(v.data, v.data + v.stride, known.data)) return;
  std::copy_n(v.data, v.stride, known.data);
  const Dataset& data = model->data();
  const auto parts = static_cast<std::ptrdiff_t>(workers.size());
  pool->run(parts, [&](std::ptrdiff_t c) {
    MatrixView widened = workers[static_cast<std::size_t>(c)].widened_row.view();
    for (std::ptrdiff_t i = data.samples() * c / parts; i < data.samples() * (c + 1) / parts; ++i) {
      const double label = problem.scores != nullptr ? problem.labels[i] : 1.0;
      double* into = scores.data() + sequence_places[static_cast<std::size_t>(i)];
      for (std::ptrdiff_t t = 0; t < data.length(i); ++t) {
        ConstMatrixView token = data.all_tokens();
        token.data += (data.offset(i) + t) * token.stride;
        token.rows = 1;
        if (!float_tokens.empty()) {
          std::copy_n(float_tokens.data() + (data.offset(i) + t) * token.stride, token.stride, widened.data);
          token = widened;
        }
        into[t] = label * decoder_score(token, v);
      }
    }
  });
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
  sums.largest = sums.log_scale;
  if (target == nullptr) return;
  for (std::ptrdiff_t b = 0; b < target->blocks.count(); ++b) {
    MatrixView block = target->blocks.view(b);
    std::fill_n(block.data, block.flat_size(), 0.0);
  }
  const auto place = [&](std::ptrdiff_t b) { return b < 0 ? nullptr : target->blocks.view(b).data; };
  sums.W = place(trained.W);
  sums.K = place(trained.K);
  sums.Q = place(trained.Q);
  sums.v = place(trained.v);
  if (trained.p < 0) return;
  MatrixView sum = worker.direction_sum.view();
  std::fill_n(sum.data, sum.flat_size(), 0.0);
  sums.direction = sum.data;
}

// gradient = sum over chunks of e^{scale_c - scale} gradient_c, in chunk order; workers[0] already points at
// it. Large gradients are divided among the threads by entries, each of which is summed in chunk order.
void GradientEngine::Memory::combine(Gradient& gradient) {
  Sums& total = workers.front().sums;
  double scale = -infinity, scale_v = -infinity;
  for (const Worker& worker : workers) {
    scale = std::max(scale, worker.sums.log_scale);
    scale_v = std::max(scale_v, worker.sums.log_scale_v);
  }
  const auto factor = [](double own, double common) { return own == common ? 1.0 : std::exp(own - common); };
  for (Worker& worker : workers) {
    worker.factor = factor(worker.sums.log_scale, scale);
    worker.factor_v = factor(worker.sums.log_scale_v, scale_v);
  }
  const auto add = [](double* into, const double* from, std::ptrdiff_t size, double times) {
    if (from == nullptr) {
      if (times != 1.0)
        for (std::ptrdiff_t j = 0; j < size; ++j) into[j] *= times;
    } else {
      for (std::ptrdiff_t j = 0; j < size; ++j) into[j] += times * from[j];
    }
  };
  for (std::ptrdiff_t b = 0; b < gradient.blocks.count(); ++b) {
    if (b == trained.p) continue;
    const MatrixView into = gradient.blocks.view(b);
    const Chunking parts = fixed_chunks(into.flat_size(), 2048, 32);
    pool->run(parts.count, [&](std::ptrdiff_t part) {
      const std::ptrdiff_t begin = parts.begin(part), size = parts.end(part) - begin;
      for (Worker& worker : workers) {
        const bool first = &worker == &workers.front();
        add(into.data + begin, first ? nullptr : worker.gradient.blocks.view(b).data + begin, size,
            b == trained.v ? worker.factor_v : worker.factor);
      }
    });
  }
  for (Worker& worker : workers) {
    const bool first = &worker == &workers.front();
    if (total.direction != nullptr)
      add(total.direction, first ? nullptr : worker.sums.direction, problem.stride, worker.factor);
    if (first) continue;
    total.largest = std::max(total.largest, worker.sums.largest);
    total.loss += worker.sums.loss;
    total.max_softmax += worker.sums.max_softmax;
  }
  total.log_scale = scale;
  total.log_scale_v = scale_v;
}

// grad_p = scale A (sum_j r_j)
void GradientEngine::Memory::finish_prompt(Gradient& gradient) {
  const Matrix& A = std::get<Prompt>(model->parameterization()).key_weights;
  MatrixView g = gradient.blocks.view(trained.p);
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
  if (gradient == nullptr) return lambda * penalized_square(*model, parameters);
  for (const Block& name : model->trained()) {
    if (name == Block::v) continue;
    const ConstMatrixView w = parameters.view(parameters.find(name));
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
  return lambda * penalized_square(*model, parameters);
}

Evaluation GradientEngine::Memory::run(const ParameterBlocks& parameters, Gradient* gradient) {
  Point at;
  if (all.W >= 0) at.W = parameters.view(all.W).data;
  if (all.K >= 0) at.K = parameters.view(all.K).data;
  if (all.Q >= 0) at.Q = parameters.view(all.Q).data;
  if (all.p >= 0) {
    form_direction(parameters.view(all.p));
    at.direction = direction.view().data;
  }
  if (all.v >= 0) {
    at.v = parameters.view(all.v).data;
    if (!scores.empty()) update_scores(parameters.view(all.v));
  }
  pool->run(static_cast<std::ptrdiff_t>(workers.size()), [&](std::ptrdiff_t c) {
    const auto chunk = static_cast<std::size_t>(c);
    Worker& worker = workers[chunk];
    begin(worker, gradient == nullptr ? nullptr : chunk == 0 ? gradient : &worker.gradient);
    for (auto b = static_cast<std::size_t>(layout.chunk_starts[chunk]);
         b < static_cast<std::size_t>(layout.chunk_starts[chunk + 1]); ++b)
      evaluate(problem, at, worker.scratch, worker.sums, layout.block_starts[b], layout.block_starts[b + 1]);
  });
  Sums& total = workers.front().sums;
  if (gradient != nullptr) {
    if (workers.size() > 1) combine(*gradient);
    if (total.direction != nullptr) finish_prompt(*gradient);
    for (std::ptrdiff_t b = 0; b < gradient->blocks.count(); ++b)
      gradient->log_scale[static_cast<std::size_t>(b)] = b == trained.v ? total.log_scale_v : total.log_scale;
  } else {
    for (std::size_t c = 1; c < workers.size(); ++c) {
      total.loss += workers[c].sums.loss;
      total.max_softmax += workers[c].sums.max_softmax;
    }
  }
  const auto count = static_cast<double>(problem.outputs);
  return {total.loss / count + penalty(parameters, gradient), total.max_softmax / count};
}

GradientEngine::GradientEngine(const Attention& model, const EngineOptions& options, ThreadPool& pool) {
  options.validate();
  memory_ = std::make_unique<Memory>(model, options, pool);
}
GradientEngine::GradientEngine(const Attention& model, Jacobian jacobian, ThreadPool& pool)
    : GradientEngine(model, EngineOptions{.jacobian = jacobian}, pool) {}
GradientEngine::~GradientEngine() = default;
GradientEngine::GradientEngine(GradientEngine&&) noexcept = default;
GradientEngine& GradientEngine::operator=(GradientEngine&&) noexcept = default;

Evaluation GradientEngine::evaluate(const ParameterBlocks& parameters, Gradient& gradient) {
  return memory_->run(parameters, &gradient);
}

Evaluation GradientEngine::evaluate(const ParameterBlocks& parameters) {
  return memory_->run(parameters, nullptr);
}

void GradientEngine::clear_rounding(const ParameterBlocks& parameters, Gradient& gradient) const {
  if (memory_->problem.jacobian != JacobianForm::safe) return;
  const Sums& total = memory_->workers.front().sums;
  for (std::ptrdiff_t b = 0; b < gradient.blocks.count(); ++b) {
    const double scale = gradient.log_scale[static_cast<std::size_t>(b)];
    if (scale == -infinity) continue;  // it is 0
    const double headroom = std::exp(total.largest - scale);
    const MatrixView block = gradient.blocks.view(b);
    const std::span numbers(block.data, static_cast<std::size_t>(block.flat_size()));
    if (memory_->floor.is_clear(numbers, headroom)) continue;
    if (memory_->floor.is_zero(parameters, gradient, b)) std::ranges::fill(numbers, 0.0);
  }
}

Gradient GradientEngine::make_gradient() const {
  Gradient gradient;
  gradient.blocks = ParameterBlocks(memory_->model->trained_blocks());
  gradient.log_scale.assign(memory_->model->trained().size(), 0.0);
  return gradient;
}

DataPath GradientEngine::path() const { return memory_->layout.path; }

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

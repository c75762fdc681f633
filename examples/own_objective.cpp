// A model of your own: logistic regression with one block w. It is trained by every optimizer, recorded in a folder,
// stopped and resumed to the same bits, and many trainings run at once. Mirror descent in the geometry of the l_p
// norm goes in the direction that separates the data with the largest margin for ||w||_p = 1.
#include <attmirror/attmirror.hpp>

#include <cstdio>
#include <filesystem>
#include <random>

using namespace attmirror;

class LogisticRegression final : public Objective {
 public:
  LogisticRegression(Matrix inputs, Vector labels) : X_(std::move(inputs)), y_(std::move(labels)) {}

  std::vector<BlockShape> blocks() const override { return {BlockShape::vector("w", X_.cols())}; }
  ModelFacts facts() const override {
    return {.kind = "logistic regression", .data = {{"samples", X_.rows()}, {"dim", X_.cols()}}};
  }
  std::uint64_t data_fingerprint() const override {
    Fingerprint print;
    print.add(X_);
    print.add(y_);
    return print.value();
  }

  // The mean of log(1 + e^-m), m = y x^T w. The gradient's size is kept as a logarithm: normalized steps go on where
  // the gradient itself is below the smallest double.
  Evaluation evaluate(const ParameterBlocks& weights, Gradient& gradient) const override {
    const Vector margins = y_.cwiseProduct(X_ * weights.view(0).eigen().row(0).transpose());
    const Vector losses = margins.unaryExpr([](double m) { return loss_value(Logistic{}, m); });
    const Vector slopes = margins.unaryExpr([](double m) { return log_abs_loss_derivative(Logistic{}, m); });
    const double scale = slopes.maxCoeff();
    const Vector pull = (slopes.array() - scale).exp() * y_.array() / static_cast<double>(y_.size());
    gradient.blocks.view(0).eigen().row(0) = -pull.transpose() * X_;
    gradient.log_scale[0] = scale;
    return {.loss = losses.mean()};
  }

  // y_i x_i^T w >= 1 for all i: what the limit of training is the smallest w of.
  MarginConstraints constraints() const {
    ConstraintArrays arrays;
    arrays.left = y_.asDiagonal() * X_;
    arrays.right = Matrix::Ones(1, 1);
    arrays.group_sizes = {X_.rows()};
    arrays.bounds.assign(static_cast<std::size_t>(X_.rows()), 1.0);
    return MarginConstraints(arrays);
  }

 private:
  Matrix X_;
  Vector y_;
};

// Forty points in ten dimensions, separated by two of them.
LogisticRegression make_model() {
  std::mt19937 random(7);
  Matrix X = Matrix::NullaryExpr(40, 10, [&] { return static_cast<double>(random()) * 0x1p-31 - 1; });
  Vector y(X.rows());
  for (std::ptrdiff_t i = 0; i < X.rows(); ++i) {
    y(i) = X(i, 0) + 0.5 * X(i, 1) > 0 ? 1 : -1;
    X(i, 0) += 0.2 * y(i);
  }
  return {X, y};
}

// Goes on with the run in the folder, or begins it.
DescentRun train(const Objective& model, const Optimizer& rule, const DescentOptions& options,
                 const char* path) {
  RunFolder folder(path);
  const RunConfig config = describe_run(model, rule, options, {});
  const std::optional<Checkpoint> checkpoint = folder.checkpoint(config);
  Descent descent = checkpoint ? Descent(model, rule, options, *checkpoint) : Descent(model, rule, options);
  folder.resume(config, checkpoint);
  const DescentRun run = descent.run({.on_record = [&](const Record& record) { folder.append(record); }});
  folder.finish(model, run, descent.checkpoint(), config);
  return run;
}

int main() {
  const LogisticRegression model = make_model();
  const MirrorDescent rule{.p = 1.5, .lr = 0.1, .normalized = true};

  const char* path = "own_objective_run";
  std::filesystem::remove_all(path);
  train(model, rule, {.steps = 700}, path);
  const DescentRun resumed = train(model, rule, {.steps = 2'000}, path);
  const bool same = resumed.last().vector("w") == descend(model, rule, {.steps = 2'000}).last().vector("w");
  std::printf("%lld steps, |w|_1.5 = %.6g; resumed at step 700: %s\n\n",
              static_cast<long long>(resumed.steps), resumed.norm, same ? "same bits" : "differs");

  std::vector<DescentTask> tasks;
  for (const double p : {1.5, 2.0, 3.0})
    for (const double lr : {0.03, 0.3})
      tasks.push_back({.optimizer = MirrorDescent{.p = p, .lr = lr, .normalized = true},
                       .options = {.steps = 20'000},
                       .objective = &model});
  const std::vector<DescentRun> runs = descend_many(tasks);
  const MarginConstraints constraints = model.constraints();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto& md = std::get<MirrorDescent>(tasks[i].optimizer);
    const MarginSolution svm = max_margin(constraints, Norm::l(md.p));
    const Matrix w = runs[i].last().vector("w");
    const double margin = (constraints.left().eigen() * w).minCoeff() / runs[i].norm * svm.norm;
    std::printf("p = %-3g lr %-4g  |w|_p %8.2f  margin %.4f of the largest  divergence %.1e\n", md.p, md.lr,
                runs[i].norm, margin, directional_bregman(svm.W, w, md.p));
  }
  return same ? 0 : 1;
}

// A stage of next-token training as the training loop of room `descent` sees it, so that every optimizer,
// trace, checkpoint and run folder there works for it.
//
//   NextTokenModel model({&embedding, &collocations, &sentences}, Stage::attention);
//   NextTokenObjective objective(model, {.W_kq = target.W});
//   DescentRun run = descend(objective, GradientDescent{.lr = 0.01, .normalized = true},
//                     {.steps = 10'000, .init = {.given = {.matrices = {{"W_ov", trained}}}}});
//
// Records contain, besides the loss, the norm of the trained weights (of W_kq in joint training) and
//
//   accuracy            on the training data
//   unseen_accuracy     on other sentences, if given
//   direction_W_ov,     1 - cos of the angle to a target, if given: formed without cancellation, NaN at W = 0
//   direction_W_kq
//   norm_W_ov           in joint training, in the geometry of the run
#pragma once

#include <attmirror/descent/descend.hpp>
#include <attmirror/next_token/model.hpp>

namespace attmirror {

// What records of a training hold besides loss and norm.
struct NextTokenMeasures {
  Matrix W_ov{}, W_kq{};              // targets to measure directions to; empty: none
  const Sentences* unseen = nullptr;  // not owned; nullptr: none
  NextTokenPath path = NextTokenPath::fast;
};

// A view of the model: keep the model alive.
class NextTokenObjective final : public Objective {
 public:
  // Throws Error (bad input) if a target has the wrong shape, or unseen sentences another vocabulary.
  explicit NextTokenObjective(const NextTokenModel& model, NextTokenMeasures measures = {});

  std::vector<BlockShape> blocks() const override { return model_->blocks(); }
  std::vector<Block> trained() const override { return model_->trained(); }
  std::string description() const override;
  std::uint64_t data_fingerprint() const override;
  ModelFacts facts() const override;
  bool has_lower_bound() const override { return true; }
  // Trained blocks start as the initialization says; a frozen W_ov must be given. `given` always takes precedence.
  Parameters initial_parameters(const Initialization& initialization) const override;
  double weight_norm(const Parameters& parameters, const Norm& norm) const override;
  std::unique_ptr<ObjectiveEngine> make_engine(const DescentOptions& options, Jacobian jacobian,
                                               ThreadPool& pool) const override;

 private:
  const NextTokenModel* model_;
  NextTokenMeasures measures_;
};

// 1 - cos of the angle between two matrices, as half the squared distance of their directions. NaN if one is 0.
double direction_gap(const Matrix& a, const Matrix& b);

}  // namespace attmirror

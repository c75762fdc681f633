#include "next_token/decoupled_target.hpp"

#include "base/numbers.hpp"
#include "base/stopwatch.hpp"
#include "mirror/spectral.hpp"
#include "next_token/difference_certificate.hpp"
#include "next_token/difference_parts.hpp"
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/margin/support.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace attmirror {

namespace {

// Up to here the whole problem is written out and verified: 128 MB of constraints, a tenth of a second or so.
constexpr double max_verified_numbers = 1 << 24, max_verified_products = 1 << 27;
constexpr std::ptrdiff_t max_singular_values = 512;

class DecoupledSolve {
 public:
  DecoupledSolve(const DifferenceProblem& problem, const Norm& norm, const MarginOptions& options)
      : problem_(problem),
        norm_(norm),
        options_(options),
        begin_(Clock::now()),
        groups_(problem.groups.size()) {
    std::ptrdiff_t first = 0;
    for (const DifferenceProblem::Group& group : problem.groups) {
      first_.push_back(first);
      first += std::ssize(group.differences);
    }
    count_ = first;
  }

  MarginSolution run() {
    solve_groups();
    solution_.kind = norm_;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (const Solved& part : groups_[g])
        if (part.answer.status == MarginStatus::infeasible) return infeasible(g, part);
    assemble_multipliers();
    assemble_weights();
    certify_answer();
    finish();
    return std::move(solution_);
  }

 private:
  struct Solved {
    DifferencePart part;
    PartAnswer answer;
  };

  void solve_groups() {
    ThreadPool pool(options_.threads);
    // Many small chunks: groups differ in size.
    const Chunking chunks = fixed_chunks(std::ssize(groups_), 1, 256);
    pool.run(chunks.count, [&](std::ptrdiff_t chunk) {
      for (std::ptrdiff_t g = chunks.begin(chunk); g < chunks.end(chunk); ++g) {
        const auto at = static_cast<std::size_t>(g);
        MarginOptions own = options_;
        own.threads = 1;
        for (DifferencePart& part : connected_parts(problem_.groups[at], problem_.vocabulary_size())) {
          own.max_seconds = std::max(options_.max_seconds - seconds_since(begin_), 1e-3);
          PartAnswer answer = solve_part(part, norm_, own);
          groups_[at].push_back({std::move(part), std::move(answer)});
        }
      }
    });
  }

  std::ptrdiff_t constraint(std::size_t g, const Solved& solved, std::size_t k) const {
    return first_[g] + solved.part.constraints[k];
  }

  // c^T lambda = dual^p in each part, which makes the whole bound as large as it can be: relative to the largest where
  // powers leave the range, and at p = infinity the parts that attain it.
  void assemble_multipliers() {
    double largest = 0;
    for (const std::vector<Solved>& group : groups_)
      for (const Solved& solved : group) largest = std::max(largest, solved.answer.certificate.dual);
    double scale = std::pow(largest, norm_.p());
    if (!std::isfinite(scale) || scale < std::numeric_limits<double>::min()) scale = 1;
    solution_.lambda = Vector::Zero(count_);
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (const Solved& solved : groups_[g]) {
        const double share = solved.answer.certificate.dual / largest;
        // Without a difference >= 1 a part has no dual and multipliers 0.
        const double factor = share > 0 ? scale * std::pow(share, norm_.p()) : 0;
        for (std::size_t k = 0; k < solved.answer.lambda.size(); ++k)
          solution_.lambda[constraint(g, solved, k)] = factor * solved.answer.lambda[k];
      }
  }

  // W = S for one-hot embeddings; E^T S E or S E for orthonormal ones.
  void assemble_weights() {
    const auto E = problem_.embedding->vectors.view().eigen();
    const bool one_hot = problem_.embedding->is_one_hot();
    const bool units = one_hot || problem_.left == LeftVectors::units;
    Matrix left = Matrix::Zero(std::ssize(groups_), problem_.rows());  // row g: W z_g
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (const Solved& solved : groups_[g])
        for (std::size_t i = 0; i < solved.part.tokens.size(); ++i) {
          const double score = solved.answer.scores[i];
          const Token token = solved.part.tokens[i];
          if (units)
            left(static_cast<std::ptrdiff_t>(g), token) = score;
          else
            left.row(static_cast<std::ptrdiff_t>(g)) += score * E.row(token);
        }
    if (!one_hot) {
      solution_.W.noalias() = left.transpose() * looking_vectors();
      return;
    }
    solution_.W = Matrix::Zero(problem_.rows(), problem_.cols());
    for (std::size_t g = 0; g < groups_.size(); ++g)
      solution_.W.col(problem_.groups[g].token) = left.row(static_cast<std::ptrdiff_t>(g)).transpose();
  }

  Matrix looking_vectors() const {
    const auto E = problem_.embedding->vectors.view().eigen();
    Matrix Z(std::ssize(groups_), problem_.cols());
    for (std::size_t g = 0; g < groups_.size(); ++g)
      Z.row(static_cast<std::ptrdiff_t>(g)) = E.row(problem_.groups[g].token);
    return Z;
  }

  bool verify_as_a_whole() const {
    const auto rows = static_cast<double>(problem_.rows());
    return static_cast<double>(count_) * rows <= max_verified_numbers &&
           static_cast<double>(groups_.size()) * rows * static_cast<double>(problem_.cols()) <=
               max_verified_products;
  }

  void certify_answer() {
    if (verify_as_a_whole()) {
      const MarginConstraints constraints = dense_constraints(problem_);
      Certificate& c = solution_.certificate;
      c = certify(constraints, norm_, solution_.W, solution_.lambda);
      // The products with E round.
      if (!c.feasible() && c.worst_margin > 0.5 && c.worst_margin < 1) {
        solution_.W /= c.worst_margin;
        c = certify(constraints, norm_, solution_.W, solution_.lambda);
      }
      solution_.support = support(constraints, solution_.W);
      proof_ = "verified as a whole";
      return;
    }
    CombinedCertificate combined(norm_);
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (const Solved& solved : groups_[g]) {
        Certificate part = solved.answer.certificate;
        if (part.worst_constraint >= 0)
          part.worst_constraint = constraint(g, solved, static_cast<std::size_t>(part.worst_constraint));
        combined.add(part, 0);
        note_support(g, solved);
      }
    std::ranges::sort(solution_.support);
    solution_.certificate = combined.result();
    if (problem_.embedding->is_one_hot()) {
      proof_ = "verified part by part";
    } else {
      charge_for_rotation();
      proof_ = "verified part by part, and the rotation as a whole";
    }
  }

  void note_support(std::size_t g, const Solved& solved) {
    for (std::size_t k = 0; k < solved.part.differences.size(); ++k) {
      const Difference& d = solved.part.differences[k];
      const double margin = solved.answer.scores[static_cast<std::size_t>(d.better)] -
                            solved.answer.scores[static_cast<std::size_t>(d.worse)];
      if (d.relation == Relation::equal || margin <= 1 + support_tolerance)
        solution_.support.push_back(constraint(g, solved, k));
    }
  }

  // From scores to W = E^T S E for rows that are orthonormal up to delta: |E|^2 <= 1 + |V| delta (Gershgorin) bounds
  // the dual norm of the multipliers. The margins are measured on W; what rounding may have added to them, (rows +
  // cols) u |a| |W| |z|, is made up for by a larger W. Equalities are judged relative to |a| |W| |z|.
  void charge_for_rotation() {
    constexpr double u = std::numeric_limits<double>::epsilon();
    const auto E = problem_.embedding->vectors.view().eigen();
    const Matrix seen = looking_vectors() * solution_.W.transpose();  // row g: W z_g
    const Matrix scores = problem_.left == LeftVectors::units ? seen : Matrix(seen * E.transpose());
    const double size = std::sqrt(2.0) * solution_.W.norm();
    double worst = infinity, wrong = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (const Difference& d : problem_.groups[g].differences) {
        const auto row = static_cast<std::ptrdiff_t>(g);
        const double margin = scores(row, d.better) - scores(row, d.worse);
        if (d.relation == Relation::at_least)
          worst = std::min(worst, margin);
        else
          wrong = std::max(wrong, std::fabs(margin) / size);
      }
    Certificate& c = solution_.certificate;
    const double charged =
        worst - 1.01 * static_cast<double>(problem_.rows() + problem_.cols() + 6) * u * size;
    if (std::isfinite(worst) && charged > 0.5 && charged < 1) {
      solution_.W /= charged;
      worst /= charged;
    }
    const double delta =
        problem_.embedding->orthonormality_error() + static_cast<double>(problem_.cols()) * u;
    c.norm = solution_.W.norm();
    c.dual /= 1 + static_cast<double>(problem_.vocabulary_size()) * delta;
    c.scaled_dual = c.dual * std::sqrt(2.0);
    c.gap = c.norm == 0 && c.dual == 0 ? 0 : (c.norm - c.dual) / c.norm;
    c.worst_margin = worst;
    c.worst_violation = std::max(wrong, std::max(0.0, 1 - worst));
    if (c.worst_violation == 0) c.worst_constraint = -1;
  }

  MarginSolution infeasible(std::size_t g, const Solved& solved) {
    MarginSolution& s = solution_;
    s.status = MarginStatus::infeasible;
    s.lambda = Vector::Zero(count_);
    for (std::size_t k = 0; k < solved.answer.lambda.size(); ++k)
      s.lambda[constraint(g, solved, k)] = solved.answer.lambda[k];
    for (const std::ptrdiff_t k : solved.answer.conflict)
      s.conflict.push_back(constraint(g, solved, static_cast<std::size_t>(k)));
    std::ranges::sort(s.conflict);
    s.certificate = verify_as_a_whole() ? certify(dense_constraints(problem_), norm_, Matrix(), s.lambda)
                                        : solved.answer.certificate;
    s.W = Matrix::Constant(problem_.rows(), problem_.cols(), nan_value);
    s.norm = s.gap = nan_value;
    s.dual = s.certificate.dual;
    s.iterations = solved.answer.iterations;
    s.method = fmt::format("token {} on its own", problem_.groups[g].token);
    s.seconds = seconds_since(begin_);
    return std::move(solution_);
  }

  void finish() {
    MarginSolution& s = solution_;
    std::ptrdiff_t parts = 0, closed = 0;
    for (const std::vector<Solved>& group : groups_)
      for (const Solved& solved : group) {
        ++parts;
        closed += solved.answer.closed_form ? 1 : 0;
        s.iterations += solved.answer.iterations;
      }
    s.method = fmt::format("{} parts on their own, {} of them in closed form, {}", parts, closed, proof_);
    s.norm = s.certificate.norm;
    s.dual = s.certificate.dual;
    s.gap = s.certificate.gap;
    s.status =
        s.certificate.certifies(options_.tolerance(norm_)) ? MarginStatus::certified : MarginStatus::stopped;
    if (s.status == MarginStatus::stopped) s.reason = why_stopped();
    if (s.W.allFinite() && std::min(s.W.rows(), s.W.cols()) <= max_singular_values) {
      Svd svd(s.W.rows(), s.W.cols());
      svd.compute_values(PaddedMatrix(s.W).view());
      s.singular_values = svd.values().eigen().transpose();
    }
    s.seconds = seconds_since(begin_);
  }

  std::string why_stopped() const {
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (const Solved& solved : groups_[g])
        if (solved.answer.status == MarginStatus::stopped)
          return fmt::format("token {}: {}", problem_.groups[g].token,
                             solved.answer.reason.empty() ? "rounding" : solved.answer.reason);
    return fmt::format("rounding: the gap is {:.1e} and a constraint is violated by {:.1e}",
                       solution_.certificate.gap, solution_.certificate.worst_violation);
  }

  const DifferenceProblem& problem_;
  const Norm& norm_;
  const MarginOptions& options_;
  Clock::time_point begin_;
  std::vector<std::ptrdiff_t> first_;  // constraint of each group
  std::ptrdiff_t count_ = 0;
  std::vector<std::vector<Solved>> groups_;
  std::string proof_;
  MarginSolution solution_;
};

}  // namespace

bool decouples(const DifferenceProblem& problem, const Norm& norm) {
  if (!norm.is_entrywise()) return false;
  if (problem.embedding->is_one_hot()) return true;
  return norm == Norm::frobenius() && problem.embedding->orthonormality_error() <= orthonormality_tolerance;
}

MarginSolution solve_decoupled(const DifferenceProblem& problem, const Norm& norm,
                               const MarginOptions& options) {
  return DecoupledSolve(problem, norm, options).run();
}

}  // namespace attmirror

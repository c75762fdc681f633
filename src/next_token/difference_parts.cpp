#include "next_token/difference_parts.hpp"

#include "next_token/difference_certificate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

namespace attmirror {

namespace {

// Sets of tokens that grow together, with the path halved on the way to the root.
class DisjointSets {
 public:
  explicit DisjointSets(std::ptrdiff_t size) : parent_(static_cast<std::size_t>(size)) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  Token root(Token x) {
    while (at(x) != x) x = at(x) = at(at(x));
    return x;
  }
  void join(Token a, Token b) { at(root(a)) = root(b); }

 private:
  Token& at(Token x) { return parent_[static_cast<std::size_t>(x)]; }
  std::vector<Token> parent_;
};

// How many tokens are better and how many worse, where each of the former is compared with each of the latter, and
// equalities hold on either side only.
struct Sides {
  double better = 0, worse = 0;
  std::vector<char> is_better;
};

std::optional<Sides> complete_sides(const DifferencePart& part) {
  enum Side : char { none, better, worse };
  std::vector<char> side(part.tokens.size(), none);
  const auto take = [&](Token token, Side as) {
    char& known = side[static_cast<std::size_t>(token)];
    if (known != none && known != as) return false;
    known = as;
    return true;
  };
  double pairs = 0;  // each once: the lists have no repetitions
  for (const Difference& d : part.differences) {
    if (d.relation != Relation::at_least) continue;
    if (!take(d.better, better) || !take(d.worse, worse)) return {};
    ++pairs;
  }
  Sides sides;
  for (const char s : side) {
    if (s == none) return {};
    (s == better ? sides.better : sides.worse) += 1;
    sides.is_better.push_back(s == better ? 1 : 0);
  }
  if (pairs != sides.better * sides.worse) return {};
  for (const Difference& d : part.differences)
    if (d.relation == Relation::equal &&
        side[static_cast<std::size_t>(d.better)] != side[static_cast<std::size_t>(d.worse)])
      return {};
  return sides;
}

// u of the symmetric solution, as a logistic function so that it stays exact near 0 and 1. At p = 1 the smaller side
// bears it all.
std::pair<double, double> symmetric_scores(const Sides& sides, double p) {
  const double log_ratio = std::log(sides.worse / sides.better);
  const double t = log_ratio == 0 ? 0 : log_ratio / (p - 1);
  return {1 / (1 + std::exp(-t)), -1 / (1 + std::exp(t))};
}

void normalize(PartAnswer& answer, const DifferencePart& part) {
  double sum = 0;
  for (std::size_t k = 0; k < answer.lambda.size(); ++k) {
    if (part.differences[k].relation != Relation::at_least) continue;
    answer.lambda[k] = std::max(answer.lambda[k], 0.0);
    sum += answer.lambda[k];
  }
  if (sum > 0 && std::isfinite(sum))
    for (double& value : answer.lambda) value /= sum;
}

PartAnswer solve_with_margin(const DifferencePart& part, const Norm& norm, const MarginOptions& options) {
  const auto m = std::ssize(part.differences), unknowns = std::ssize(part.tokens);
  ConstraintArrays arrays;
  arrays.left = Matrix::Zero(m, unknowns);
  arrays.right = Matrix::Ones(1, 1);
  arrays.group_sizes = {m};
  for (std::ptrdiff_t k = 0; k < m; ++k) {
    const Difference& d = part.differences[static_cast<std::size_t>(k)];
    arrays.left(k, d.better) = 1;
    arrays.left(k, d.worse) = -1;
    arrays.bounds.push_back(d.bound());
    arrays.relations.push_back(d.relation);
  }
  MarginSolution solution = max_margin(MarginConstraints(arrays), norm, options);
  PartAnswer answer;
  answer.status = solution.status;
  answer.scores.assign(solution.W.data(), solution.W.data() + solution.W.size());
  answer.lambda.assign(solution.lambda.begin(), solution.lambda.end());
  answer.conflict = std::move(solution.conflict);
  answer.iterations = solution.iterations;
  answer.reason = std::move(solution.reason);
  return answer;
}

}  // namespace

std::vector<DifferencePart> connected_parts(const DifferenceProblem::Group& group,
                                            std::ptrdiff_t vocabulary_size) {
  DisjointSets sets(vocabulary_size);
  for (const Difference& d : group.differences) sets.join(d.better, d.worse);
  std::vector<std::int32_t> part_of(static_cast<std::size_t>(vocabulary_size), -1);
  std::vector<Token> local(static_cast<std::size_t>(vocabulary_size), no_token);
  std::vector<DifferencePart> parts;
  const auto local_number = [&](DifferencePart& part, Token token) {
    Token& number = local[static_cast<std::size_t>(token)];
    if (number == no_token) {
      number = static_cast<Token>(part.tokens.size());
      part.tokens.push_back(token);
    }
    return number;
  };
  for (std::size_t k = 0; k < group.differences.size(); ++k) {
    const Difference& d = group.differences[k];
    std::int32_t& number = part_of[static_cast<std::size_t>(sets.root(d.better))];
    if (number < 0) {
      number = static_cast<std::int32_t>(parts.size());
      parts.emplace_back();
    }
    DifferencePart& part = parts[static_cast<std::size_t>(number)];
    const Token better = local_number(part, d.better), worse = local_number(part, d.worse);
    part.differences.push_back({better, worse, d.relation});
    part.constraints.push_back(static_cast<std::ptrdiff_t>(k));
  }
  return parts;
}

PartAnswer solve_part(const DifferencePart& part, const Norm& norm, const MarginOptions& options) {
  PartAnswer answer;
  if (const auto sides = complete_sides(part)) {
    const std::pair<double, double> scores = symmetric_scores(*sides, norm.p());
    for (const char better : sides->is_better) answer.scores.push_back(better ? scores.first : scores.second);
    for (const Difference& d : part.differences)
      answer.lambda.push_back(d.relation == Relation::at_least ? 1 : 0);
    answer.closed_form = true;
  } else {
    answer = solve_with_margin(part, norm, options);
  }
  normalize(answer, part);
  answer.certificate = certify_differences(part.differences, norm, answer.scores, answer.lambda);
  if (answer.closed_form)
    answer.status = answer.certificate.certifies(options.tolerance(norm)) ? MarginStatus::certified
                                                                          : MarginStatus::stopped;
  return answer;
}

}  // namespace attmirror

#include <attmirror/base/error.hpp>
#include <attmirror/margin/problems.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

// One constraint before it becomes numbers: x_first - x_second, or the label times x_first where there is no second.
struct Line {
  std::ptrdiff_t query, first, second;
  double bound;
  Relation relation;
};
constexpr std::ptrdiff_t no_token = -1;

void check_bounds(const Dataset& data, const std::vector<double>& bounds) {
  if (bounds.empty()) return;
  if (static_cast<std::ptrdiff_t>(bounds.size()) != data.total_queries())
    throw bad_input(fmt::format("bounds has {} entries: expected {}, one per query, or none", bounds.size(),
                                data.total_queries()));
  for (std::size_t j = 0; j < bounds.size(); ++j)
    if (!(bounds[j] >= 0) || std::isinf(bounds[j]))
      throw bad_input(fmt::format("bounds[{}] is {}: expected a finite number >= 0", j, bounds[j]));
}

void check_key_weights(const Dataset& data, const Matrix& A) {
  if (A.size() == 0) return;
  if (A.rows() != data.dim() || A.cols() != data.dim())
    throw bad_input(fmt::format("key weights have shape ({}, {}): expected ({}, {})", A.rows(), A.cols(),
                                data.dim(), data.dim()));
  for (std::ptrdiff_t i = 0; i < A.rows(); ++i)
    for (std::ptrdiff_t j = 0; j < A.cols(); ++j)
      if (!std::isfinite(A(i, j)))
        throw bad_input(fmt::format("key weights[{},{}] is {}: expected a finite number", i, j, A(i, j)));
}

void check_logits(const Dataset& data, const GeneralFiniteSvm& problem) {
  if (problem.logits.size() != problem.kept.tokens.size())
    throw bad_input(fmt::format("logits has {} vectors: expected {}, one per query", problem.logits.size(),
                                problem.kept.tokens.size()));
  for (std::size_t j = 0; j < problem.logits.size(); ++j) {
    const Vector& logits = problem.logits[j];
    const std::ptrdiff_t i = data.sequence_of(static_cast<std::ptrdiff_t>(j));
    if (logits.size() != data.length(i))
      throw bad_input(fmt::format("logits[{}] has {} entries: expected {}, one per token of sequence {}", j,
                                  logits.size(), data.length(i), i));
    const double reference = logits[problem.kept.tokens[j].front()];
    for (const std::int64_t t : problem.kept.tokens[j]) {
      if (!std::isfinite(logits[t]))
        throw bad_input(fmt::format("logits[{}][{}] is {}: expected a finite number", j, t, logits[t]));
      if (!std::isfinite(reference - logits[t]))
        throw bad_input(fmt::format("logits[{}][{}] is {}: its difference to that of token {} is too large",
                                    j, t, logits[t], problem.kept.tokens[j].front()));
    }
  }
}

struct Validate {
  const Dataset& data;
  void operator()(const AttentionSvm& svm) const {
    svm.tokens.validate(data);
    check_bounds(data, svm.bounds);
  }
  void operator()(const PromptSvm& svm) const {
    svm.tokens.validate(data);
    check_bounds(data, svm.bounds);
    check_key_weights(data, svm.key_weights);
  }
  void operator()(const DecoderSvm& svm) const { svm.tokens.validate(data); }
  void operator()(const GeneralDirectionSvm& svm) const { svm.kept.validate(data); }
  void operator()(const GeneralFiniteSvm& svm) const {
    svm.kept.validate(data);
    check_logits(data, svm);
  }
};

// The constraints of all queries, in the order that the header promises.
struct Lines {
  const Dataset& data;

  std::vector<Line> of_selection(const Selection& alpha, const std::vector<double>& bounds) const {
    std::vector<Line> lines;
    for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
      const auto query = static_cast<std::size_t>(j);
      const double bound = bounds.empty() ? 1 : bounds[query];
      for (std::ptrdiff_t t = 0; t < data.attended_length(j); ++t)
        if (t != alpha.tokens[query] && data.allows(j, t))
          lines.push_back({j, alpha.tokens[query], t, bound, Relation::at_least});
    }
    return lines;
  }
  std::vector<Line> operator()(const AttentionSvm& svm) const { return of_selection(svm.tokens, svm.bounds); }
  std::vector<Line> operator()(const PromptSvm& svm) const { return of_selection(svm.tokens, svm.bounds); }
  std::vector<Line> operator()(const DecoderSvm& svm) const {
    std::vector<Line> lines;
    for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j)
      lines.push_back({j, svm.tokens.tokens[static_cast<std::size_t>(j)], no_token, 1, Relation::at_least});
    return lines;
  }
  std::vector<Line> operator()(const GeneralDirectionSvm& svm) const {
    std::vector<Line> lines;
    for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
      const auto& kept = svm.kept.tokens[static_cast<std::size_t>(j)];
      for (const std::int64_t t : kept)
        if (t != kept.front()) lines.push_back({j, kept.front(), t, 0, Relation::equal});
      for (std::ptrdiff_t t = 0; t < data.attended_length(j); ++t)
        if (data.allows(j, t) && !std::binary_search(kept.begin(), kept.end(), t))
          lines.push_back({j, kept.front(), t, 1, Relation::at_least});
    }
    return lines;
  }
  std::vector<Line> operator()(const GeneralFiniteSvm& svm) const {
    std::vector<Line> lines;
    for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
      const auto query = static_cast<std::size_t>(j);
      const auto& kept = svm.kept.tokens[query];
      const Vector& logits = svm.logits[query];
      for (const std::int64_t t : kept)
        if (t != kept.front())
          lines.push_back({j, kept.front(), t, logits[kept.front()] - logits[t], Relation::equal});
    }
    return lines;
  }
};

// What is to the left of W in each line.
Matrix left_sides(const Dataset& data, const std::vector<Line>& lines) {
  Matrix left(static_cast<std::ptrdiff_t>(lines.size()), data.dim());
  for (std::size_t k = 0; k < lines.size(); ++k) {
    const Line& line = lines[k];
    const auto row = static_cast<std::ptrdiff_t>(k);
    const std::ptrdiff_t i = data.sequence_of(line.query);
    const auto X = data.tokens(i).eigen();
    if (line.second == no_token) {
      left.row(row) = data.labels()[static_cast<std::size_t>(line.query)] * X.row(line.first);
    } else {
      left.row(row) = X.row(line.first) - X.row(line.second);
      if (!left.row(row).allFinite())
        throw bad_input(
            fmt::format("tokens {} and {} of sequence {} are too far apart: a difference is "
                        "beyond 1.8e308",
                        line.first, line.second, i));
    }
  }
  return left;
}

}  // namespace

void KeptTokens::validate(const Dataset& data) const {
  if (static_cast<std::ptrdiff_t>(tokens.size()) != data.total_queries())
    throw bad_input(fmt::format("kept has {} sets of tokens: expected {}, one per query", tokens.size(),
                                data.total_queries()));
  for (std::size_t j = 0; j < tokens.size(); ++j) {
    const auto query = static_cast<std::ptrdiff_t>(j);
    const std::ptrdiff_t i = data.sequence_of(query), length = data.length(i);
    if (tokens[j].empty()) throw bad_input(fmt::format("kept[{}] is empty: expected at least one token", j));
    for (std::size_t k = 0; k < tokens[j].size(); ++k) {
      const std::int64_t t = tokens[j][k];
      if (t < 0 || t >= length)
        throw bad_input(fmt::format("kept[{}][{}] is {}: expected 0 to {}, a token of sequence {}", j, k, t,
                                    length - 1, i));
      if (k > 0 && t <= tokens[j][k - 1])
        throw bad_input(
            fmt::format("kept[{}][{}] is {} after {}: expected ascending tokens", j, k, t, tokens[j][k - 1]));
      if (!data.allows(query, t))
        throw bad_input(
            fmt::format("kept[{}][{}] is {}: the mask forbids this token of sequence {}", j, k, t, i));
    }
  }
}

std::string_view problem_name(const MarginProblem& problem) {
  struct Name {
    static std::string_view or_relaxed(const std::vector<double>& bounds, std::string_view name) {
      const bool relaxed = std::any_of(bounds.begin(), bounds.end(), [](double c) { return c != 1; });
      return relaxed ? "relaxed" : name;
    }
    std::string_view operator()(const AttentionSvm& svm) const { return or_relaxed(svm.bounds, "attention"); }
    std::string_view operator()(const PromptSvm& svm) const { return or_relaxed(svm.bounds, "prompt"); }
    std::string_view operator()(const DecoderSvm&) const { return "decoder"; }
    std::string_view operator()(const GeneralDirectionSvm&) const { return "general direction"; }
    std::string_view operator()(const GeneralFiniteSvm&) const { return "general finite"; }
  };
  return std::visit(Name{}, problem);
}

void validate(const Dataset& data, const MarginProblem& problem) { std::visit(Validate{data}, problem); }

MarginConstraints constraints(const Dataset& data, const MarginProblem& problem) {
  validate(data, problem);
  const std::vector<Line> lines = std::visit(Lines{data}, problem);
  ConstraintArrays arrays;
  arrays.left = left_sides(data, lines);
  const auto* prompt = std::get_if<PromptSvm>(&problem);
  // A (x - x') and not A x - A x': near tokens keep the digits in which they differ.
  if (prompt && prompt->key_weights.size() != 0)
    arrays.left = (arrays.left * prompt->key_weights.transpose()).eval();
  if (prompt || std::holds_alternative<DecoderSvm>(problem))
    arrays.right = Matrix::Ones(data.total_queries(), 1);
  else
    arrays.right = data.queries().eigen();
  arrays.group_sizes.assign(static_cast<std::size_t>(data.total_queries()), 0);
  for (const Line& line : lines) {
    const std::ptrdiff_t i = data.sequence_of(line.query);
    ++arrays.group_sizes[static_cast<std::size_t>(line.query)];
    arrays.bounds.push_back(line.bound);
    arrays.relations.push_back(line.relation);
    arrays.origins.push_back(
        {i, line.query - data.first_query(i), line.second == no_token ? line.first : line.second});
  }
  return MarginConstraints(arrays);
}

std::vector<double> relaxed_bounds(const Dataset& data, std::span<const std::ptrdiff_t> decoder_support) {
  std::vector<double> bounds(static_cast<std::size_t>(data.total_queries()), 0.0);
  for (std::size_t k = 0; k < decoder_support.size(); ++k) {
    if (decoder_support[k] < 0 || decoder_support[k] >= data.total_queries())
      throw bad_input(fmt::format("decoder_support[{}] is {}: expected 0 to {}, a query", k,
                                  decoder_support[k], data.total_queries() - 1));
    bounds[static_cast<std::size_t>(decoder_support[k])] = 1;
  }
  return bounds;
}

}  // namespace attmirror

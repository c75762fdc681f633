// The arrays of svm.npz. Texts are arrays of bytes and clock times are left out, so that equal solutions are
// equal files.
#include "base/words.hpp"
#include "data/text_array.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/margin/svm_file.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

constexpr std::int64_t format_version = 1;

// ---- writing

Array vector_array(const Vector& values) {
  return Array(std::span<const double>(values.data(), static_cast<std::size_t>(values.size())));
}

Array matrix_array(const Matrix& values) {
  return {{values.rows(), values.cols()},
          std::span<const double>(values.data(), static_cast<std::size_t>(values.size()))};
}

Array origins_array(std::span<const ConstraintOrigin> origins) {
  std::vector<std::int64_t> values;
  for (const ConstraintOrigin& o : origins) values.insert(values.end(), {o.sequence, o.query, o.token});
  return {{static_cast<std::int64_t>(origins.size()), 3}, std::span<const std::int64_t>(values)};
}

// (n), (n, K) for K queries each, and one axis over all queries where their numbers differ.
Shape selection_shape(const Dataset& data) {
  if (data.one_query_each() || !data.equal_query_counts()) return {data.total_queries()};
  return {data.samples(), data.query_count(0)};
}

void put_weights(NamedArrays& arrays, const std::string& name, const Matrix& W) {
  if (!W.allFinite()) return;
  arrays.emplace(name, name == "p" || name == "v" ? vector_array(W.col(0)) : matrix_array(W));
}

// What a solution has besides its weights; `suffix` tells the two halves of a Gen-SVM apart.
void put_solution(NamedArrays& arrays, const MarginConstraints& constraints, const MarginSolution& solution,
                  const std::string& suffix) {
  if (solution.lambda.size() != constraints.count())
    throw bad_input(fmt::format("the solution has {} multipliers: expected {}, one per constraint",
                                solution.lambda.size(), constraints.count()));
  std::vector<ConstraintOrigin> support;
  for (const std::ptrdiff_t k : solution.support) {
    if (k < 0 || k >= constraints.count())
      throw bad_input(
          fmt::format("support has the constraint {}: there are {} of them", k, constraints.count()));
    support.push_back(constraints.origins()[static_cast<std::size_t>(k)]);
  }
  const auto put = [&](const char* name, Array array) { arrays.emplace(name + suffix, std::move(array)); };
  put("lambda", vector_array(solution.lambda));
  put("constraints", origins_array(constraints.origins()));
  put("bounds", Array(constraints.bounds()));
  put("support", origins_array(support));
  put("status", text_array(to_string(solution.status)));
  put("norm", Array::scalar(solution.norm));
  put("dual", Array::scalar(solution.dual));
  put("gap", Array::scalar(solution.gap));
  put("iterations", Array::scalar(std::int64_t{solution.iterations}));
  put("method", text_array(solution.method));
  if (solution.singular_values.size() > 0) put("singular_values", vector_array(solution.singular_values));
  if (!solution.kind.is_entrywise())
    put("dual_multiplicity", Array::scalar(std::int64_t{solution.dual_multiplicity}));
}

NamedArrays common_arrays(const Dataset& data, std::string_view problem, const Norm& kind) {
  NamedArrays arrays;
  arrays.emplace("format_version", Array::scalar(format_version));
  arrays.emplace("problem", text_array(problem));
  arrays.emplace("kind", text_array(to_string(kind)));
  arrays.emplace("data_fingerprint", Array::scalar(std::bit_cast<std::int64_t>(data.fingerprint())));
  return arrays;
}

struct TokensOf {
  const Selection* operator()(const AttentionSvm& p) const { return &p.tokens; }
  const Selection* operator()(const PromptSvm& p) const { return &p.tokens; }
  const Selection* operator()(const DecoderSvm& p) const { return &p.tokens; }
  const Selection* operator()(const auto&) const { return nullptr; }
};

// The kept tokens as [sequence, query, token].
std::vector<ConstraintOrigin> kept_origins(const Dataset& data, const KeptTokens& kept) {
  std::vector<ConstraintOrigin> result;
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
    const std::ptrdiff_t i = data.sequence_of(j);
    for (const std::int64_t t : kept.tokens[static_cast<std::size_t>(j)])
      result.push_back({i, j - data.first_query(i), t});
  }
  return result;
}

// ---- reading

// Reads the arrays of one file; every message begins with its path.
class Reader {
 public:
  Reader(const std::filesystem::path& path, NamedArrays arrays)
      : name_(path.string()), arrays_(std::move(arrays)) {}

  const Array* find(const std::string& array) const {
    const auto found = arrays_.find(array);
    return found == arrays_.end() ? nullptr : &found->second;
  }
  std::string called(const std::string& array) const { return fmt::format("{}: {}", name_, array); }

  // Where the array is there, its numbers, all finite and of this shape.
  std::vector<double> numbers(const std::string& array, const Shape& expected) const {
    const Array* found = find(array);
    if (!found) return {};
    check_shape(array, found->shape(), expected);
    return finite(array, *found);
  }
  std::vector<double> finite(const std::string& array, const Array& found) const {
    std::vector<double> values = found.to_doubles(called(array));
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!std::isfinite(values[i]))
        throw bad_input(fmt::format("{}[{}] is {}: expected a finite number", called(array),
                                    position(i, found.shape()), values[i]));
    return values;
  }
  Matrix matrix(const std::string& array, std::int64_t rows, std::int64_t cols) const {
    const std::vector<double> values = numbers(array, {rows, cols});
    return values.empty() ? Matrix() : Matrix(Eigen::Map<const Matrix>(values.data(), rows, cols));
  }
  Vector vector(const std::string& array, std::int64_t size) const {
    const std::vector<double> values = numbers(array, {size});
    return Eigen::Map<const Vector>(values.data(), static_cast<Eigen::Index>(values.size()));
  }
  // Of any length.
  Vector vector(const std::string& array) const {
    const Array* found = find(array);
    if (!found) return {};
    if (found->axes() != 1)
      throw bad_input(
          fmt::format("{} has shape {}: expected one axis", called(array), to_string(found->shape())));
    return vector(array, found->shape()[0]);
  }
  std::vector<ConstraintOrigin> origins(const std::string& array) const {
    std::vector<ConstraintOrigin> result;
    const Array* found = find(array);
    if (!found) return result;
    if (found->axes() != 2 || found->shape()[1] != 3)
      throw bad_input(
          fmt::format("{} has shape {}: expected (m, 3), sequence, query and token of each constraint",
                      called(array), to_string(found->shape())));
    const std::vector<std::int64_t> values = found->to_int64(called(array));
    for (std::size_t i = 0; i + 2 < values.size(); i += 3)
      result.push_back({values[i], values[i + 1], values[i + 2]});
    return result;
  }
  std::string text(const std::string& array) const {
    const Array* found = find(array);
    return found ? text_of(*found, called(array)) : std::string();
  }

 private:
  void check_shape(const std::string& array, const Shape& shape, const Shape& expected) const {
    if (shape != expected)
      throw bad_input(
          fmt::format("{} has shape {}: expected {}", called(array), to_string(shape), to_string(expected)));
  }
  static std::string position(std::size_t i, const Shape& shape) {
    if (shape.size() != 2) return fmt::format("{}", i);
    const auto cols = static_cast<std::size_t>(shape[1]);
    return fmt::format("{},{}", i / cols, i % cols);
  }

  std::string name_;
  NamedArrays arrays_;
};

void check_version(const Reader& reader) {
  const Array* found = reader.find("format_version");
  if (!found) return;  // a file of the user's own making
  const std::vector<std::int64_t> version = found->to_int64(reader.called("format_version"));
  if (version.size() != 1 || version[0] != format_version)
    throw bad_input(fmt::format("{} is {}: this version of attmirror reads {}",
                                reader.called("format_version"), fmt::join(version, ", "), format_version));
}

std::optional<MarginStatus> status_of(const Reader& reader) {
  const std::string word = reader.text("status");
  if (word.empty()) return std::nullopt;
  for (const MarginStatus status : {MarginStatus::certified, MarginStatus::infeasible, MarginStatus::stopped})
    if (word == to_string(status)) return status;
  throw bad_input(fmt::format("{} is \"{}\": expected certified, infeasible or stopped",
                              reader.called("status"), one_line(word)));
}

// What `action` throws, with the name of the array before it.
template <class Action>
auto naming(const std::string& name, Action action) {
  try {
    return action();
  } catch (const Error& error) {
    throw error.in(name);
  }
}

std::optional<Selection> selection_of(const Reader& reader, const Dataset& data) {
  const Array* found = reader.find("alpha");
  if (!found) return std::nullopt;
  const std::string name = reader.called("alpha");
  // One axis over all queries will do for (n, K), too.
  if (found->shape() != selection_shape(data) && found->axes() != 1)
    throw bad_input(fmt::format("{} has shape {}: expected {}", name, to_string(found->shape()),
                                to_string(selection_shape(data))));
  Selection selection{found->to_int64(name)};
  naming(name + " does not fit the data", [&] { selection.validate(data); });
  return selection;
}

void check_multipliers(const Reader& reader, const Vector& lambda, std::span<const ConstraintOrigin> origins,
                       const std::string& suffix) {
  if (!origins.empty() && static_cast<std::ptrdiff_t>(origins.size()) != lambda.size())
    throw bad_input(fmt::format("{} has {} entries: expected {}, one per row of constraints{}",
                                reader.called("lambda" + suffix), lambda.size(), origins.size(), suffix));
}

}  // namespace

std::string_view weights_name(const MarginProblem& problem) {
  if (std::holds_alternative<PromptSvm>(problem)) return "p";
  return std::holds_alternative<DecoderSvm>(problem) ? "v" : "W";
}

Matrix SavedSolution::weights(const MarginProblem& of) const {
  if (std::holds_alternative<GeneralFiniteSvm>(of)) return W_fin;
  const std::string_view name = weights_name(of);
  if (name == "W") return W;
  const Vector& vector = name == "p" ? p : v;
  return vector.size() == 0 ? Matrix() : Matrix(vector);
}

void save_solution(const std::filesystem::path& path, const Dataset& data, const MarginProblem& problem,
                   const MarginSolution& solution) {
  NamedArrays arrays = common_arrays(data, problem_name(problem), solution.kind);
  put_solution(arrays, constraints(data, problem), solution, "");
  put_weights(arrays, std::string(weights_name(problem)), solution.W);
  if (const Selection* tokens = std::visit(TokensOf{}, problem))
    arrays.emplace("alpha", Array(selection_shape(data), std::span<const std::int64_t>(tokens->tokens)));
  if (const auto* prompt = std::get_if<PromptSvm>(&problem); prompt && prompt->key_weights.size() > 0)
    arrays.emplace("key_weights", matrix_array(prompt->key_weights));
  save_npz(path, arrays);
}

MarginStatus GeneralSolution::status() const {
  for (const MarginStatus worse : {MarginStatus::infeasible, MarginStatus::stopped})
    if (direction.status == worse || finite.status == worse) return worse;
  return MarginStatus::certified;
}

void save_solution(const std::filesystem::path& path, const Dataset& data, const GeneralFiniteSvm& problem,
                   const GeneralSolution& solution) {
  NamedArrays arrays = common_arrays(data, "general", solution.direction.kind);
  put_solution(arrays, constraints(data, GeneralDirectionSvm{problem.kept}), solution.direction, "");
  put_solution(arrays, constraints(data, problem), solution.finite, "_fin");
  put_weights(arrays, "W", solution.direction.W);
  put_weights(arrays, "W_fin", solution.finite.W);
  arrays.emplace("kept", origins_array(kept_origins(data, problem.kept)));
  if (solution.R) arrays.emplace("R", Array::scalar(*solution.R));
  save_npz(path, arrays);
}

SavedSolution load_solution(const std::filesystem::path& path, const Dataset& data) {
  const Reader reader(path, load_npz(path));
  check_version(reader);
  const std::int64_t d = data.dim();
  SavedSolution solution;
  solution.problem = reader.text("problem");
  if (const std::string kind = reader.text("kind"); !kind.empty())
    solution.kind = naming(reader.called("kind"), [&] { return parse_norm(kind); });
  solution.status = status_of(reader);
  solution.W = reader.matrix("W", d, d);
  solution.p = reader.vector("p", d);
  solution.v = reader.vector("v", d);
  solution.W_fin = reader.matrix("W_fin", d, d);
  solution.key_weights = reader.matrix("key_weights", d, d);
  solution.lambda = reader.vector("lambda");
  solution.lambda_fin = reader.vector("lambda_fin");
  solution.constraints = reader.origins("constraints");
  solution.bounds = reader.vector("bounds");
  solution.constraints_fin = reader.origins("constraints_fin");
  check_multipliers(reader, solution.lambda, solution.constraints, "");
  if (solution.bounds.size() > 0 && solution.bounds.size() != solution.lambda.size())
    throw bad_input(fmt::format("{} has {} entries: expected {}, one per entry of lambda",
                                reader.called("bounds"), solution.bounds.size(), solution.lambda.size()));
  check_multipliers(reader, solution.lambda_fin, solution.constraints_fin, "_fin");
  solution.support = reader.origins("support");
  solution.alpha = selection_of(reader, data);
  if (const Array* found = reader.find("data_fingerprint")) {
    const std::vector<std::int64_t> value = found->to_int64(reader.called("data_fingerprint"));
    if (value.size() == 1) solution.data_fingerprint = std::bit_cast<std::uint64_t>(value[0]);
  }
  return solution;
}

Vector matched_multipliers(const Vector& lambda, const std::vector<ConstraintOrigin>& origins,
                           const MarginConstraints& constraints, Unmatched unmatched, std::string_view name) {
  if (lambda.size() == 0 && origins.empty()) return {};
  if (origins.empty()) {
    if (lambda.size() == constraints.count()) return lambda;
    if (unmatched == Unmatched::drop) return {};
    throw bad_input(fmt::format("{} has {} entries: expected {}, one per constraint", name, lambda.size(),
                                constraints.count()));
  }
  const auto key = [](const ConstraintOrigin& o) { return std::tuple(o.sequence, o.query, o.token); };
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::ptrdiff_t> index;
  for (std::ptrdiff_t k = 0; k < constraints.count(); ++k)
    index.emplace(key(constraints.origins()[static_cast<std::size_t>(k)]), k);
  Vector result = Vector::Zero(constraints.count());
  std::vector<unsigned char> seen(static_cast<std::size_t>(constraints.count()), 0);
  for (std::size_t k = 0; k < origins.size(); ++k) {
    const auto found = index.find(key(origins[k]));
    const bool twice = found != index.end() && seen[static_cast<std::size_t>(found->second)] != 0;
    if (unmatched == Unmatched::refuse && (found == index.end() || twice))
      throw bad_input(fmt::format("{}[{}] belongs to sequence {}, query {}, token {}: {}", name, k,
                                  origins[k].sequence, origins[k].query, origins[k].token,
                                  twice ? "another entry does too" : "the problem has no such constraint"));
    if (found == index.end()) continue;
    seen[static_cast<std::size_t>(found->second)] = 1;
    result[found->second] = lambda[static_cast<Eigen::Index>(k)];
  }
  return result;
}

}  // namespace attmirror

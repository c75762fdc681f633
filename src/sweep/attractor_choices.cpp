#include "sweep/attractor_choices.hpp"

#include <attmirror/base/error.hpp>
#include <attmirror/sweep/attractors.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace attmirror {

namespace {

void check_attractor_model(const Attention& model) {
  if (!std::holds_alternative<LinearHead>(model.head()))
    throw bad_input(fmt::format("{} is not linear: the scores v^T x of tokens are those of the linear head",
                                field_name("head")));
  if (model.is_trained(Block::v))
    throw bad_input("v is trained: attractors are about attention with a fixed decoder");
  if (model.penalty() > 0)
    throw bad_value("penalty", model.penalty(), "0, because a penalty keeps the weights finite");
}

// Tokens by score, neighbors that are equal to rounding on one level.
std::vector<int> levels_of(const Vector& scores, const Vector& sizes, const std::vector<bool>& allowed) {
  std::vector<std::size_t> order;
  for (std::size_t t = 0; t < allowed.size(); ++t)
    if (allowed[t]) order.push_back(t);
  const auto score = [&](std::size_t t) { return scores[static_cast<std::ptrdiff_t>(t)]; };
  std::ranges::stable_sort(order, {}, score);
  std::vector<int> levels(allowed.size(), -1);
  int level = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (k > 0) {
      const double size =
          sizes[static_cast<std::ptrdiff_t>(order[k - 1])] + sizes[static_cast<std::ptrdiff_t>(order[k])];
      if (score(order[k]) - score(order[k - 1]) > equal_score_tolerance * size) ++level;
    }
    levels[order[k]] = level;
  }
  return levels;
}

}  // namespace

AttractorChoices::AttractorChoices(const Attention& model) : model_(&model) {
  check_attractor_model(model);
  const Dataset& data = model.data();
  const Vector v = model.zero_parameters().v;
  keys_ = data.all_tokens().eigen();
  if (const auto* prompt = std::get_if<Prompt>(&model.parameterization());
      prompt != nullptr && prompt->key_weights.size() > 0)
    keys_ = (keys_ * prompt->key_weights.transpose()).eval();
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
    const auto X = data.tokens(data.sequence_of(j)).eigen();
    const double label = data.labels()[static_cast<std::size_t>(j)];
    std::vector<bool> allowed(static_cast<std::size_t>(X.rows()));
    for (std::size_t t = 0; t < allowed.size(); ++t)
      allowed[t] = data.allows(j, static_cast<std::ptrdiff_t>(t));
    levels_.push_back(levels_of(label * (X * v), X.cwiseAbs() * v.cwiseAbs(), allowed));
    top_.push_back(*std::ranges::max_element(levels_.back()));
    std::vector<std::int64_t>& options = options_.emplace_back(1, lowest_level);
    std::vector<std::int64_t>& same = first_same_.emplace_back();
    const auto keys = keys_.middleRows(data.offset(data.sequence_of(j)), X.rows());
    for (std::ptrdiff_t t = 0; t < X.rows(); ++t) {
      std::ptrdiff_t first = 0;
      while (level(j, first) != level(j, t) || keys.row(first) != keys.row(t)) ++first;
      same.push_back(first);
      if (first == t && level(j, t) > 0) options.push_back(t);
    }
  }
}

double AttractorChoices::count() const {
  double product = 1;
  for (const auto& options : options_) product *= static_cast<double>(options.size());
  return product;
}

AttractorChoice AttractorChoices::at(std::int64_t index) const {
  AttractorChoice choice(options_.size());
  for (std::size_t j = options_.size(); j-- > 0;) {
    const std::int64_t count = std::ssize(options_[j]);
    choice[j] = options_[j][static_cast<std::size_t>(index % count)];
    index /= count;
  }
  return choice;
}

AttractorChoice AttractorChoices::of(const Selection& on_top) const {
  on_top.validate(model_->data());
  AttractorChoice choice;
  for (std::size_t j = 0; j < on_top.tokens.size(); ++j) {
    const auto query = static_cast<std::ptrdiff_t>(j);
    const std::int64_t token = on_top.tokens[j];
    choice.push_back(level(query, token) == 0 ? lowest_level : first_same(query, token));
  }
  return choice;
}

bool AttractorChoices::all_equal() const {
  return std::ranges::all_of(top_, [](int top) { return top == 0; });
}

bool AttractorChoices::has_constraints(const AttractorChoice& choice) const {
  return std::ranges::any_of(choice, [](std::int64_t token) { return token != lowest_level; });
}

MarginConstraints AttractorChoices::constraints(const AttractorChoice& choice) const {
  const Dataset& data = model_->data();
  const bool prompt = std::holds_alternative<Prompt>(model_->parameterization());
  ConstraintArrays arrays;
  std::vector<std::pair<std::ptrdiff_t, std::ptrdiff_t>> rows;  // of all_tokens(): selected, worse
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
    const std::int64_t selected = choice[static_cast<std::size_t>(j)];
    const std::ptrdiff_t i = data.sequence_of(j);
    std::int64_t& size = arrays.group_sizes.emplace_back(0);
    if (selected == lowest_level) continue;
    for (std::ptrdiff_t t = 0; t < data.length(i); ++t) {
      if (level(j, t) < 0 || level(j, t) >= level(j, selected)) continue;
      rows.emplace_back(data.offset(i) + selected, data.offset(i) + t);
      arrays.origins.push_back({i, j - data.first_query(i), t});
      ++size;
    }
  }
  arrays.left.resize(std::ssize(rows), data.dim());
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const auto row = static_cast<std::ptrdiff_t>(k);
    arrays.left.row(row) =
        data.all_tokens().eigen().row(rows[k].first) - data.all_tokens().eigen().row(rows[k].second);
  }
  // A (x - x') and not A x - A x': near tokens keep the digits in which they differ.
  if (prompt)
    if (const Matrix& A = std::get<Prompt>(model_->parameterization()).key_weights; A.size() > 0)
      arrays.left = (arrays.left * A.transpose()).eval();
  arrays.right = prompt ? Matrix(Matrix::Ones(data.total_queries(), 1)) : Matrix(data.queries().eigen());
  arrays.bounds.assign(rows.size(), 1.0);
  return MarginConstraints(arrays);
}

Vector AttractorChoices::logits(std::ptrdiff_t query, const Matrix& W) const {
  const Dataset& data = model_->data();
  const std::ptrdiff_t i = data.sequence_of(query);
  const auto X = keys_.middleRows(data.offset(i), data.length(i));
  if (std::holds_alternative<Prompt>(model_->parameterization())) return X * W.col(0);
  return X * (W * data.queries().eigen().row(query).transpose());
}

Norm attractor_norm(const Attention& model, double p) {
  if (!(p > 1) || std::isinf(p)) throw bad_value("p", p, "a number between 1 and infinity");
  if (!std::holds_alternative<KQ>(model.parameterization())) return Norm::l(p);
  if (p != 2)
    throw bad_value("p", p, "2 for K, Q, because no norm is known whose margin other geometries maximize");
  return Norm::nuclear();
}

}  // namespace attmirror

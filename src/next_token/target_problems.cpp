#include "next_token/target_problems.hpp"

#include <attmirror/base/error.hpp>

#include <fmt/format.h>

namespace attmirror {

namespace {

// A chain of equalities makes all tokens equal.
void add_equalities(std::span<const Token> tokens, std::vector<Difference>& to) {
  for (std::size_t i = 1; i < tokens.size(); ++i) to.push_back({tokens[i - 1], tokens[i], Relation::equal});
}

}  // namespace

void check_vocabulary(const Embedding& embedding, std::ptrdiff_t of, std::string_view name) {
  if (of != embedding.vocabulary_size())
    throw bad_input(fmt::format("{} have a vocabulary of {}: the embedding has {} rows", name, of,
                                embedding.vocabulary_size()));
}

DifferenceProblem collocation_problem(const Embedding& embedding, const Collocations& collocations) {
  check_vocabulary(embedding, collocations.vocabulary_size(), "collocations");
  const std::ptrdiff_t size = embedding.vocabulary_size();
  DifferenceProblem problem{&embedding, LeftVectors::units, {}};
  std::vector<char> follows(static_cast<std::size_t>(size));
  for (Token x = 0; x < size; ++x) {
    std::vector<Token> successors;
    for (const Collocations::Successor& s : collocations.successors(x)) successors.push_back(s.token);
    if (successors.empty()) continue;
    DifferenceProblem::Group& group = problem.groups.emplace_back();
    group.token = x;
    add_equalities(successors, group.differences);
    for (const Token y : successors) follows[static_cast<std::size_t>(y)] = 1;
    for (const Token y : successors)
      for (Token v = 0; v < size; ++v)
        if (!follows[static_cast<std::size_t>(v)]) group.differences.push_back({y, v, Relation::at_least});
    for (const Token y : successors) follows[static_cast<std::size_t>(y)] = 0;
  }
  return problem;
}

DifferenceProblem attention_problem(const Embedding& embedding, const PartialOrders& orders) {
  check_vocabulary(embedding, orders.vocabulary_size(), "orders");
  DifferenceProblem problem{&embedding, LeftVectors::embeddings, {}};
  for (const Token q : orders.queries()) {
    DifferenceProblem::Group& group = problem.groups.emplace_back();
    group.token = q;
    for (const Preference& p : orders.preferences(q))
      group.differences.push_back({p.better, p.worse, Relation::at_least});
  }
  return problem;
}

DifferenceProblem graph_problem(const Embedding& embedding, const PartialOrders& orders,
                                const PriorityGraph& graph) {
  check_vocabulary(embedding, orders.vocabulary_size(), "orders");
  check_vocabulary(embedding, graph.vocabulary_size(), "components");
  DifferenceProblem problem{&embedding, LeftVectors::embeddings, {}};
  for (const Token q : orders.queries()) {
    DifferenceProblem::Group& group = problem.groups.emplace_back();
    group.token = q;
    for (const std::vector<Token>& component : graph.components(q))
      add_equalities(component, group.differences);
    for (const Preference& p : orders.preferences(q))
      if (!graph.same_component(q, p.better, p.worse))
        group.differences.push_back({p.better, p.worse, Relation::at_least});
  }
  return problem;
}

}  // namespace attmirror

#include "next_token/restricted_loss.hpp"
#include "next_token/target_problems.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/next_token/graph_svm.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

bool follows(const Collocations& collocations, Token token, Token label) {
  const auto successors = collocations.successors(token);
  return std::any_of(successors.begin(), successors.end(),
                     [&](const Collocations::Successor& s) { return s.token == label; });
}

// The component that holds all optimal tokens of sentence i, where it holds another token of it too; otherwise -1:
// the sentence costs nothing in the limit. Optimal tokens in two components leave nothing to decide either: any
// other token is below both, so it can share a component with at most one of them, and then the other one is above
// that component.
std::int32_t contested_component(const Sentences& sentences, std::ptrdiff_t i, std::span<const char> optimal,
                                 const PriorityGraph& graph) {
  const std::span<const Token> tokens = sentences.tokens(i);
  std::int32_t component = -1;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    if (!optimal[t]) continue;
    const std::int32_t own = graph.component(sentences.query(i), tokens[t]);
    if (own < 0)
      throw bad_input(
          fmt::format("sentences[{}] is not among those of the graph: token {} is not compared "
                      "under query {}",
                      i, tokens[t], sentences.query(i)));
    if (component >= 0 && own != component) return -1;
    component = own;
  }
  for (std::size_t t = 0; t < tokens.size(); ++t)
    if (!optimal[t] && graph.component(sentences.query(i), tokens[t]) == component) return component;
  return -1;
}

}  // namespace

MarginConstraints graph_constraints(const Embedding& embedding, const PartialOrders& orders,
                                    const PriorityGraph& graph) {
  return dense_constraints(graph_problem(embedding, orders, graph));
}

MarginSolution graph_direction(const Embedding& embedding, const PartialOrders& orders,
                               const PriorityGraph& graph, const Norm& norm, const TargetOptions& options) {
  return solve_target(graph_problem(embedding, orders, graph), norm, options);
}

FinitePart graph_finite_part(const Embedding& embedding, const Sentences& sentences,
                             const Collocations& collocations, const PriorityGraph& graph) {
  check_vocabulary(embedding, sentences.vocabulary_size(), "sentences");
  check_vocabulary(embedding, collocations.vocabulary_size(), "collocations");
  check_vocabulary(embedding, graph.vocabulary_size(), "components");
  std::map<std::pair<Token, std::int32_t>, RestrictedComponent> found;
  std::vector<char> optimal;
  for (std::ptrdiff_t i = 0; i < sentences.count(); ++i) {
    const std::span<const Token> tokens = sentences.tokens(i);
    const Token query = sentences.query(i);
    optimal.clear();
    for (const Token token : tokens)
      optimal.push_back(follows(collocations, token, sentences.label(i)) ? 1 : 0);
    const auto count = std::count(optimal.begin(), optimal.end(), 1);
    if (count == 0)
      throw bad_input(fmt::format("sentences[{}] has the label {}, which follows none of its tokens", i,
                                  sentences.label(i)));
    if (count == std::ssize(tokens)) continue;
    const std::int32_t number = contested_component(sentences, i, optimal, graph);
    if (number < 0) continue;
    const auto [at, is_new] = found.try_emplace({query, number});
    RestrictedComponent& component = at->second;
    if (is_new) {
      component.looking = query;
      component.tokens = graph.components(query)[static_cast<std::size_t>(number)];
    }
    RestrictedComponent::Term& term = component.terms.emplace_back();
    term.weight = sentences.weight(i) / sentences.total_weight();
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const auto place = std::lower_bound(component.tokens.begin(), component.tokens.end(), tokens[t]);
      if (place == component.tokens.end() || *place != tokens[t]) continue;
      term.positions.push_back(
          {static_cast<std::int32_t>(place - component.tokens.begin()), optimal[t] != 0});
    }
  }
  std::vector<RestrictedComponent> components;
  for (auto& entry : found) components.push_back(std::move(entry.second));
  return minimize_restricted(embedding, LeftVectors::embeddings, components);
}

FinitePart collocation_finite_part(const Embedding& embedding, const Collocations& collocations) {
  check_vocabulary(embedding, collocations.vocabulary_size(), "collocations");
  const auto tokens = static_cast<double>(collocations.count());
  std::vector<RestrictedComponent> components;
  for (Token x = 0; x < embedding.vocabulary_size(); ++x) {
    const auto successors = collocations.successors(x);
    if (successors.size() < 2) continue;
    double total = 0;
    for (const Collocations::Successor& s : successors) total += s.weight;
    RestrictedComponent& component = components.emplace_back();
    component.looking = x;
    for (std::size_t y = 0; y < successors.size(); ++y) {
      component.tokens.push_back(successors[y].token);
      RestrictedComponent::Term& term = component.terms.emplace_back();
      term.weight = successors[y].weight / total / tokens;
      for (std::size_t v = 0; v < successors.size(); ++v)
        term.positions.push_back({static_cast<std::int32_t>(v), v == y});
    }
  }
  return minimize_restricted(embedding, LeftVectors::units, components);
}

}  // namespace attmirror

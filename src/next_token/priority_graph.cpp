// Strongly connected components by Tarjan's algorithm (1972), one query at a time.
//
// A depth-first search numbers the tokens as it meets them and keeps those without a component on a stack. low(v) is
// the lowest number that v reaches through its tree and one edge more; v with low(v) = number(v) is the root of a
// component, and the stack above it holds the others. Components are complete in an order in which edges go from
// later to earlier ones; counted backwards it is topological. The search keeps its own stack of visits: a chain of
// comparisons is as long as the vocabulary, which recursion would not survive.
#include "base/numbers.hpp"
#include <attmirror/next_token/graph_svm.hpp>

#include <algorithm>

namespace attmirror {
namespace {

constexpr std::int32_t unknown = -1;

// Nodes 0 ... n-1 with the edges out[v] to out[v + 1] - 1, whose heads are given.
struct Graph {
  std::vector<std::size_t> out;
  std::vector<std::int32_t> heads;
};

std::vector<std::int32_t> topological_components(const Graph& graph) {
  const auto n = static_cast<std::int32_t>(graph.out.size() - 1);
  std::vector<std::int32_t> number(at(n), unknown), low(at(n)), component(at(n), unknown), stack;
  struct Visit {
    std::int32_t node;
    std::size_t edge;  // the next one to follow
  };
  std::vector<Visit> visits;
  std::int32_t numbered = 0, components = 0;
  const auto enter = [&](std::int32_t v) {
    number[at(v)] = low[at(v)] = numbered++;
    stack.push_back(v);
    visits.push_back({v, graph.out[at(v)]});
  };
  for (std::int32_t start = 0; start < n; ++start) {
    if (number[at(start)] == unknown) enter(start);
    while (!visits.empty()) {
      Visit& visit = visits.back();
      const std::int32_t v = visit.node;
      if (visit.edge < graph.out[at(v) + 1]) {
        const std::int32_t u = graph.heads[visit.edge++];
        if (number[at(u)] == unknown)
          enter(u);  // ends the life of `visit`
        else if (component[at(u)] == unknown)
          low[at(v)] = std::min(low[at(v)], number[at(u)]);
        continue;
      }
      visits.pop_back();
      if (!visits.empty()) {
        const std::int32_t parent = visits.back().node;
        low[at(parent)] = std::min(low[at(parent)], low[at(v)]);
      }
      if (low[at(v)] != number[at(v)]) continue;
      for (std::int32_t u = unknown; u != v; stack.pop_back()) {
        u = stack.back();
        component[at(u)] = components;
      }
      ++components;
    }
  }
  for (std::int32_t& c : component) c = components - 1 - c;
  return component;
}

}  // namespace

PriorityGraph::PriorityGraph(const PartialOrders& orders)
    : component_of_(static_cast<std::size_t>(orders.vocabulary_size())) {
  std::vector<std::int32_t> node(component_of_.size());  // of a token that this query compares
  for (const Token q : orders.queries()) {
    std::vector<Token> tokens;
    for (const Preference& edge : orders.preferences(q)) {
      tokens.push_back(edge.better);
      tokens.push_back(edge.worse);
    }
    std::sort(tokens.begin(), tokens.end());
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::size_t v = 0; v < tokens.size(); ++v) node[at(tokens[v])] = static_cast<std::int32_t>(v);

    Graph graph{std::vector<std::size_t>(tokens.size() + 1, 0), {}};
    for (const Preference& edge :
         orders.preferences(q)) {  // sorted by `better`: the edges lie in their places
      ++graph.out[at(node[at(edge.better)]) + 1];
      graph.heads.push_back(node[at(edge.worse)]);
    }
    for (std::size_t v = 0; v < tokens.size(); ++v) graph.out[v + 1] += graph.out[v];
    const std::vector<std::int32_t> components = topological_components(graph);
    std::vector<Member>& members = component_of_[at(q)];
    members.reserve(tokens.size());
    for (std::size_t v = 0; v < tokens.size(); ++v) members.push_back({tokens[v], components[v]});
  }
}

std::int32_t PriorityGraph::component(Token query, Token token) const {
  const std::vector<Member>& members = component_of_[at(query)];
  const auto place =
      std::lower_bound(members.begin(), members.end(), token,
                       [](const Member& member, Token wanted) { return member.token < wanted; });
  return place == members.end() || place->token != token ? -1 : place->component;
}

bool PriorityGraph::same_component(Token query, Token a, Token b) const {
  const std::int32_t of_a = component(query, a);
  return of_a >= 0 && of_a == component(query, b);
}

std::vector<std::vector<Token>> PriorityGraph::components(Token query) const {
  std::vector<std::vector<Token>> result;
  for (const Member& member : component_of_[at(query)]) {
    if (result.size() <= at(member.component)) result.resize(at(member.component) + 1);
    result[at(member.component)].push_back(member.token);
  }
  return result;
}

bool PriorityGraph::is_acyclic() const {
  return std::all_of(component_of_.begin(), component_of_.end(), [](const std::vector<Member>& members) {
    const auto last = std::max_element(members.begin(), members.end(), [](const Member& a, const Member& b) {
      return a.component < b.component;
    });
    return last == members.end() || at(last->component) + 1 == members.size();
  });
}

}  // namespace attmirror

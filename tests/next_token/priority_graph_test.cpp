#include <attmirror/next_token/graph_svm.hpp>

#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace attmirror {
namespace {

using Tokens = std::vector<Token>;
using Edge = std::pair<Token, Token>;

// x > x' for each edge under one query, by sentences "x x' q" with n(x) = x; so x > q as well.
PartialOrders orders_of(std::ptrdiff_t size, Token query, const std::vector<Edge>& edges) {
  Sentences sentences(size);
  for (const Edge& edge : edges) sentences.add(Tokens{edge.first, edge.second, query}, edge.first);
  return PartialOrders(sentences, Collocations::identity(size));
}

TEST(PriorityGraph, ComponentsStandInTopologicalOrder) {
  // 5 > {1, 2, 3} > 4 > query 0; 6 is not compared.
  const PriorityGraph graph(orders_of(7, 0, {{5, 1}, {1, 2}, {2, 3}, {3, 1}, {3, 4}}));
  const std::vector<Tokens> expected = {{5}, {1, 2, 3}, {4}, {0}};
  EXPECT_EQ(graph.components(0), expected);
  EXPECT_EQ(graph.component(0, 2), 1);
  EXPECT_EQ(graph.component(0, 6), -1);
  EXPECT_EQ(graph.component(3, 2), -1) << "another query";
  EXPECT_TRUE(graph.same_component(0, 1, 3));
  EXPECT_FALSE(graph.same_component(0, 1, 4));
  EXPECT_FALSE(graph.same_component(0, 6, 6)) << "not compared at all";
  EXPECT_TRUE(graph.components(1).empty());
  EXPECT_FALSE(graph.is_acyclic());
  EXPECT_TRUE(PriorityGraph(orders_of(7, 0, {{5, 1}, {1, 2}, {5, 2}})).is_acyclic());
  EXPECT_TRUE(PriorityGraph(PartialOrders(Sentences(3), Collocations::identity(3))).is_acyclic());
}

TEST(PriorityGraph, LongChainsAndCyclesNeedNoRecursion) {
  constexpr Token size = 200'000;
  Sentences sentences(size);
  for (Token x = 0; x + 1 < size; ++x) sentences.add(Tokens{x, x + 1, size - 1}, x);
  const PriorityGraph chain(PartialOrders(sentences, Collocations::identity(size)));
  EXPECT_TRUE(chain.is_acyclic());
  for (Token x = 0; x < size; x += 999) EXPECT_EQ(chain.component(size - 1, x), x);
  sentences.add(Tokens{size - 1, 0, size - 1}, size - 1);
  const PriorityGraph ring(PartialOrders(sentences, Collocations::identity(size)));
  EXPECT_EQ(ring.components(size - 1).size(), 1u);
}

// Two tokens share a component where each reaches the other; edges between components lead to higher numbers.
TEST(PriorityGraph, AgreesWithReachability) {
  EXPECT_TRUE(rc::check("random comparisons", [] {
    const Token size = *rc::gen::inRange<Token>(2, 9);
    const auto token = rc::gen::inRange<Token>(0, size);
    const Token query = *token;
    std::vector<Edge> edges;
    for (const Edge& edge : *rc::gen::container<std::vector<Edge>>(rc::gen::pair(token, token)))
      if (edge.first != edge.second) edges.push_back(edge);
    const PartialOrders orders = orders_of(size, query, edges);
    const PriorityGraph graph(orders);

    const auto n = static_cast<std::size_t>(size);
    std::vector<std::vector<bool>> reaches(n, std::vector<bool>(n, false));
    for (const Preference& edge : orders.preferences(query))
      reaches[static_cast<std::size_t>(edge.better)][static_cast<std::size_t>(edge.worse)] = true;
    for (std::size_t via = 0; via < n; ++via)
      for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < n; ++b)
          if (reaches[a][via] && reaches[via][b]) reaches[a][b] = true;

    for (Token a = 0; a < size; ++a) {
      RC_ASSERT((graph.component(query, a) == -1) ==
                (orders.token_class(query, a) == TokenClass::non_comparable));
      for (Token b = 0; b < size; ++b) {
        if (a == b) continue;
        const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
        RC_ASSERT(graph.same_component(query, a, b) == (reaches[i][j] && reaches[j][i]));
      }
    }
    for (const Preference& edge : orders.preferences(query))
      RC_ASSERT(graph.component(query, edge.better) <= graph.component(query, edge.worse));
    RC_ASSERT(graph.is_acyclic() == !orders.find_cycle().has_value());
    std::int32_t number = 0;
    for (const Tokens& tokens : graph.components(query)) {
      RC_ASSERT(!tokens.empty());
      for (const Token x : tokens) RC_ASSERT(graph.component(query, x) == number);
      ++number;
    }
  }));
}

}  // namespace
}  // namespace attmirror

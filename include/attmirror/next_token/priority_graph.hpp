// Cyclic priorities (Li et al. 2024, "Mechanics of next token prediction with self-attention").
//
// The comparisons x >_q x' are the edges of a directed graph for each query. Where there are cycles the tokens of one
// strongly connected component cannot be ordered; attention keeps a finite ratio between them and separates components.
#pragma once

#include <attmirror/next_token/partial_order.hpp>

#include <vector>

namespace attmirror {

class PriorityGraph {
 public:
  explicit PriorityGraph(const PartialOrders& orders);

  std::ptrdiff_t vocabulary_size() const { return static_cast<std::ptrdiff_t>(component_of_.size()); }
  // Numbered in a topological order: every edge between components goes from a lower to a higher number. A token that is
  // not compared under the query has the component -1. The numbers depend on the comparisons alone, not on the order of the
  // sentences.
  std::int32_t component(Token query, Token token) const;
  bool same_component(Token query, Token a, Token b) const;  // not so for tokens that are not compared
  // The tokens of each component, each list ascending.
  std::vector<std::vector<Token>> components(Token query) const;
  bool is_acyclic() const;  // every component is one token

 private:
  struct Member {
    Token token;
    std::int32_t component;
  };
  std::vector<std::vector<Member>> component_of_;  // by query, sorted by token
};

}  // namespace attmirror

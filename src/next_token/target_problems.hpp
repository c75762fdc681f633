// The max-margin problems of P4 and of Graph-SVM as differences of scores. Internal.
#pragma once

#include "next_token/difference_problem.hpp"
#include <attmirror/next_token/graph_svm.hpp>
#include <attmirror/next_token/partial_order.hpp>
#include <attmirror/next_token/targets.hpp>

#include <string_view>

namespace attmirror {

// Throws Error (bad input) unless `of` has as many tokens as the embedding.
void check_vocabulary(const Embedding& embedding, std::ptrdiff_t of, std::string_view name);

// All three check that vocabularies agree. The embedding must outlive the problem.
DifferenceProblem collocation_problem(const Embedding& embedding, const Collocations& collocations);
DifferenceProblem attention_problem(const Embedding& embedding, const PartialOrders& orders);
DifferenceProblem graph_problem(const Embedding& embedding, const PartialOrders& orders,
                                const PriorityGraph& graph);

// By whichever way is exact and fast.
MarginSolution solve_target(const DifferenceProblem& problem, const Norm& norm, const TargetOptions& options);

}  // namespace attmirror

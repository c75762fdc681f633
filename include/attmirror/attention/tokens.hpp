// Which tokens attention prefers, and how good they are.
//
//   score      gamma_it = Y_i h(x_it)        how much token t would help with the label of sequence i; h(x) = v^T x
//   optimal    argmax_t gamma_it             the tokens a perfect attention would pick
//   selected   argmax_t softmax(a_i)_t       the tokens this attention picks
//   margin     min over i and t != alpha_i of (x_{i,alpha_i} - x_it)^T W z_i
//
// With several queries per sequence, i denotes a query. Tokens that its mask forbids have score and logit
// -infinity and do not count in margins.
#pragma once

#include <attmirror/attention/attention.hpp>
#include <attmirror/data/selection.hpp>

#include <vector>

namespace attmirror {

// One vector per query. The scores use the given parameters' v.
std::vector<Vector> token_scores(const Attention& model, const Parameters& parameters);
std::vector<Vector> logits(const Attention& model, const Parameters& parameters);
std::vector<Vector> attention_probabilities(const Attention& model, const Parameters& parameters);

// Ties go to the first token. optimal_tokens(data) needs the dataset's decoder.
Selection optimal_tokens(const Attention& model, const Parameters& parameters);
Selection optimal_tokens(const Dataset& data);
Selection selected_tokens(const Attention& model, const Parameters& parameters);

// The smallest difference of logits between a selected token and another token of its sequence, for combined
// weights W or a prompt p (not normalized, no 1/sqrt(d)). Infinite when every query has only one token.
double selection_margin(const Dataset& data, const Selection& selection, const Matrix& W);
double selection_margin(const Dataset& data, const Selection& selection, const Prompt& prompt,
                        const Vector& p);
// The same for the weights of this model's parameterization, as attention_weights() gives them.
double selection_margin(const Attention& model, const Selection& selection, const Matrix& weights);

}  // namespace attmirror

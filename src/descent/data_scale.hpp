// Step sizes, starts and decoders in units of the data, so that results do not depend on the units of X and
// Z.
//
// A step of length lr, in the norm that an optimizer's steps are measured in, changes the logit of a token
// against the others of its sequence by at most lr ||(x_t - mean x) z^T||_*, with the dual norm. Let s be the
// root mean square of that dual norm over all queries and the tokens that they attend to. Then
//
//   lr = reach / s               normalized steps of length lr: a step moves a logit by about `reach` at most
//   lr = reach / s^(p-1)         mirror descent, whose steps are taken by y with ||W||_p = ||y||_q^{1/(p-1)}
//   lr = reach 100^(p-2) / s^(p-1)    for p > 2, where weights grow only like the (p-1)-th root of the steps
//
// With X multiplied by a and Z by b, s is multiplied by a b, the weights by 1 / (a b), and all logits stay as
// they are. Steps that are not normalized have the length of a gradient, which is in proportion to s: one
// more division by s.
//
// K and Q share the scale of W = K Q^T between them (square roots); a prompt has no queries. Internal.
#pragma once

#include <attmirror/attention/attention.hpp>
#include <attmirror/descent/optimizer.hpp>

#include <cstdint>

namespace attmirror {

// s above, for steps measured in `norm`; 0 where all tokens of each sequence are equal.
double logit_scale(const Attention& model, const Norm& norm);

// The root mean square of the scores v^T x of all tokens; 0 without a decoder.
double score_scale(const Dataset& data);

// How far a logit goes in a step when all steps agree: 0.3, 0.1 for methods that average gradients and 0.02
// for Lion, whose average is the longest. Gradients shrink by a factor with every 1 that the logits move, so
// an average over ten long steps is ruled by the oldest.
double default_reach(const Optimizer& optimizer);

// The optimizer with the step size of the rule (entropy_beta, too, where the geometry has one), rounded to
// three digits: people read and retype it. Throws Error (bad input) where the data have no scale: all tokens
// of each sequence are equal, or all queries are 0.
Optimizer scaled_to(const Attention& model, Optimizer optimizer);

double lr_of(const Optimizer& optimizer);
Optimizer with_lr(Optimizer optimizer, double lr);

// The deviation of normal starts at which a typical logit is 1, as P1's Setting A has it; three digits.
double start_deviation(const Attention& model);

}  // namespace attmirror

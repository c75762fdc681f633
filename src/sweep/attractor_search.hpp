// Solves and judges one choice of tokens; what the list of attractors and the ends of training are made from.
// Internal.
#pragma once

#include "sweep/attractor_choices.hpp"
#include <attmirror/descent/optimizer.hpp>
#include <attmirror/sweep/attractors.hpp>

#include <optional>

namespace attmirror {

// What came of a choice.
enum class ChoiceState {
  attractor,
  repelled,    // a better token is not behind by more than 1, or an equal one is ahead
  infeasible,  // proved: no weights select these tokens over the worse ones
  undecided,   // a deficit is 1 to rounding, or the problem was not solved to its tolerance
  stopped,     // because that was requested
};

struct JudgedChoice {
  ChoiceState state = ChoiceState::undecided;
  Attractor attractor{};                  // of state attractor
  std::optional<AttractorChoice> next{};  // of state repelled: where its queries go from here
};

JudgedChoice judge_choice(const AttractorChoices& choices, const AttractorChoice& choice, const Norm& norm,
                          const StopRequest& stop);

// The whole one first, then by margin.
void sort_attractors(std::vector<Attractor>& list);

// Normalized descent in the geometry of p, with steps by the data's scale.
Optimizer attractor_optimizer(const Attention& model, double p);

// How far tokens of other scores are behind the token on top, in the query where they are closest; in logits.
double least_decided_lead(const AttractorChoices& choices, const Selection& on_top, const Matrix& W);

}  // namespace attmirror

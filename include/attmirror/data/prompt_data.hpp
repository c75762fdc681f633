// The small data sets on which P2 shows where a trained prompt goes: which token one input ends on, the
// max-margin direction of several inputs, the decoder and the prompt trained together, and two losses.
//
// In all but the joint one the third coordinate of a token is its score, read by the decoder v = (0, 0, 1),
// and attention looks at the first two alone, through key weights A = diag(1, 1, 0):
//
//   const Dataset data = generate(MultiInputData{});
//   const Attention model{data, Prompt{score_blind_key_weights()}};
//
// A prompt has no queries. A Dataset does, and here they are all u = (1, 0, ...), the common unit vector of
// P2's equivalence lemma: with identity key weights, training W on the same data gives W = p u^T at every
// step, the run of the prompt in W's first column. (The queries could not be 0: W would never move.) Numbers are
// rounded to single precision where the published code does so.
#pragma once

#include <attmirror/data/dataset.hpp>

#include <cstdint>

namespace attmirror {

// diag(1, 1, 0): what Prompt{} takes for the three-dimensional data below. The joint data need none.
Matrix score_blind_key_weights();

// One input of three tokens, (-0.1, 1, 1), (1, 0, 0.9) and (0, 0, s). The first is optimal, and the second
// beats only the third: whether training can end on the second depends on s.
struct SingleInputData {
  enum class Scores {
    equal,    // s = 0.9: no token but the optimal one is better than another, and every start leads to it
    unequal,  // s = 0: the second token is locally optimal, and some starts lead to it
  };
  Scores scores = Scores::equal;

  void validate() const;  // throws Error (bad input) for a value that is none of the two
};

Dataset generate(const SingleInputData& options);

// Three inputs of seven tokens in three clusters: token 0 about (1, 0), tokens 1 to 3 about (-1, 1), tokens 4
// to 6 about (-1/2, -1/2), each with noise 0.2 randn(3, 7, 3) of torch's generator. Token 0 has score 1, all
// others 1/2.
struct MultiInputData {
  std::uint64_t seed = 0;  // P2's; the lower 32 bits count

  void validate() const {}  // every seed will do
};

Dataset generate(const MultiInputData& options);

// Decoder and prompt trained together: three inputs with labels +1, -1, +1 and tokens 0 and x_i in the plane,
// x = (1, 1), (1, -1) and a third. No decoder, because the run trains it (P2 starts from v = (-1, 0) and p =
// (0, -1)); the key weights are the identity.
struct JointPromptData {
  enum class LabelMargin {
    tight,  // third (1/2, 1): all three are support vectors of the labels' max-margin problem
    slack,  // third (1/2, 3/2): it is none, so its attention constraint relaxes from >= 1 to >= 0
  };
  LabelMargin label_margin = LabelMargin::tight;

  void validate() const;  // throws Error (bad input) for a value that is none of the two
};

Dataset generate(const JointPromptData& options);

// Two inputs, {0, (1, 1, C)} and {0, (1, -1, 1)}. The prompt's direction tends to (1, 0) for every loss; what
// the loss decides is the finite offset p_2 -> 1/2 log(C |ell'(C)| / |ell'(1)|).
struct LossComparisonData {
  double score = 10;  // C, of the first input's best token; P2 has 1 to 10 and 100

  void validate() const;  // throws Error (bad input) unless C is finite and positive
};

Dataset generate(const LossComparisonData& options);

}  // namespace attmirror

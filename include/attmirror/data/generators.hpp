// The random data of the papers, from their seeds, and data of the same kind in other sizes.
#pragma once

#include <attmirror/data/dataset.hpp>

#include <cstdint>
#include <optional>

namespace attmirror {

// Points on the unit sphere, as in the experiments of "Optimizing Attention with Mirror Descent" and
// "Transformers as Support Vector Machines": with torch's generator, in this order,
//   decoder v = randn(d) / norm, labels Y = sign of randn(n), tokens X = randn(n, T, d) and queries Z =
//   randn(n, d) with rows of norm 1.
// Drawn and normalized in single precision, as in the papers, then widened to double. The golden data at the
// first paper's sizes are reproduced to the last bit (see data/torch_random.hpp).
struct SphereData {
  std::int64_t samples = 6;  // n; 6, 8, 10 and seeds 1 to 100 are the first paper's figure
  std::int64_t tokens = 8;   // T, tokens per sequence, or the maximum if min_tokens is set
  std::int64_t dim = 10;     // d
  std::uint64_t seed = 1;    // of torch's generator, which uses the lower 32 bits

  // Ragged data (not in the papers): the length of each sequence is uniform in min_tokens..tokens, and it
  // keeps the first tokens of the sequence in the rectangular data set with the same seed.
  std::optional<std::int64_t> min_tokens = std::nullopt;

  // Cross-attention from several queries to each sequence: Z = randn(n, K, d) with rows of norm 1, one label for
  // all queries of a sequence. The papers' runs have one query each.
  std::int64_t queries = 1;  // K

  // Self-attention: the queries are tokens of their sequence, and no Z is drawn.
  enum class QueryFrom {
    draw,         // cross-attention
    first_token,  // one query each
    last_token,   // one query each; P3's default outside of its experiments
    all_tokens,   // as many queries as tokens; with_causal_mask() makes it causal
  };
  QueryFrom query_from = QueryFrom::draw;

  // Throws Error (bad input) for sizes below 1, min_tokens above tokens, more than one query to draw in
  // self-attention, or sizes that do not fit into any memory.
  void validate() const;
};

Dataset generate(const SphereData& options);

// The two sequences of the first paper's joint training of decoder and attention (n = 2, T = 3, d = 2). The
// query is the first token of each; there is no decoder, because the run trains it from zero. Nothing is
// random here.
struct JointData {};

Dataset generate(const JointData& options);

// Data for nonlinear heads, on which attention keeps several tokens of a sequence (P3, section on nonlinear
// heads), drawn with torch's generator in single precision, then widened to double.

// For the ReLU head 1^T ReLU(V^T u): in this order V = randn(d, d) / Frobenius norm, tokens randn(n, T, d) with
// rows of norm 1, labels the sign of randn(n), queries randn(n, d) with rows of norm 1. There is no decoder; V is
// head_weights(). P3 skips data without a label of -1, which is left to the experiment.
struct ReluHeadData {
  std::int64_t samples = 3;  // n
  std::int64_t tokens = 4;   // T
  std::int64_t dim = 4;      // d; P3 has 4, 6, 8 and 10
  std::uint64_t seed = 1;    // of torch's generator, which uses the lower 32 bits

  void validate() const;  // throws Error (bad input) for sizes below 1 or too large for memory
};

Dataset generate(const ReluHeadData& options);

// For the quadratic head v^T u - lambda |u|^2: the tokens of each sequence are orthonormal, and all labels
// are +1. Then the best attention is known: sparsemax(gamma / (2 lambda)) for the scores gamma = X v.
//
// In this order: v = randn(d) / norm, tokens from randn(n, T, d), queries randn(n, d) with rows of norm 1. P3
// takes the left factor of torch's singular value decomposition of each sequence, whose choice of rotation
// and signs is up to the library and is not repeated here: ours are the rows in Gram-Schmidt order (the QR
// decomposition with positive diagonal), orthonormal in double precision.
struct OrthonormalData {
  std::int64_t samples = 3;  // n
  std::int64_t tokens = 4;   // T, at most d
  std::int64_t dim = 4;      // d; P3 has d = T
  std::uint64_t seed = 1;    // of torch's generator, which uses the lower 32 bits

  void validate() const;  // throws Error (bad input) for such sizes and for more tokens than dimensions
};

Dataset generate(const OrthonormalData& options);

// The small data sets on which P2 shows where a trained prompt goes: on which token one input ends, the
// max-margin direction of several inputs, the decoder and the prompt trained together, and two losses.
//
// In all but the joint one, the third coordinate of a token is its score, read by the decoder v = (0, 0, 1),
// and attention sees only the first two, through key weights A = diag(1, 1, 0):
//
//   const Dataset data = generate(MultiInputData{});
//   const Attention model{data, Prompt{score_blind_key_weights()}};
//
// A prompt has no queries. A Dataset does, and here all of them are u = (1, 0, ...), the common unit vector
// of P2's equivalence lemma: with identity key weights, training W on the same data gives W = p u^T at every
// step, so the run of the prompt is the first column of W. (The queries cannot be 0, because then W would
// never move.) Numbers are rounded to single precision where the published code does so.

// diag(1, 1, 0): pass it to Prompt{} for the three-dimensional data below. The joint data do not need it.
Matrix score_blind_key_weights();

// One input of three tokens, (-0.1, 1, 1), (1, 0, 0.9) and (0, 0, s). The first is optimal, and the second
// beats only the third: whether training can end on the second depends on s.
struct SingleInputData {
  // Whether the two tokens that are not optimal have the same score.
  enum class Scores {
    equal,    // s = 0.9: no token but the optimal one is better than another, and every start leads to it
    unequal,  // s = 0: the second token is locally optimal, and some starts lead to it
  };
  Scores scores = Scores::equal;

  void validate() const;  // throws Error (bad input) for any other value
};

Dataset generate(const SingleInputData& options);

// Three inputs of seven tokens in three clusters: token 0 about (1, 0), tokens 1 to 3 about (-1, 1), tokens 4
// to 6 about (-1/2, -1/2), each with noise 0.2 randn(3, 7, 3) of torch's generator. Token 0 has score 1, all
// others 1/2.
struct MultiInputData {
  std::uint64_t seed = 0;  // P2's; the lower 32 bits count

  void validate() const {}  // every seed is valid
};

Dataset generate(const MultiInputData& options);

// Decoder and prompt trained together: three inputs with labels +1, -1, +1 and tokens 0 and x_i in the plane,
// x = (1, 1), (1, -1) and a third. No decoder, because the run trains it (P2 starts from v = (-1, 0) and p =
// (0, -1)); the key weights are the identity.
struct JointPromptData {
  // Whether every sequence is a support vector of the labels' max-margin problem.
  enum class LabelMargin {
    tight,  // third (1/2, 1): all three are support vectors of the labels' max-margin problem
    slack,  // third (1/2, 3/2): not a support vector, so its attention constraint relaxes from >= 1 to >= 0
  };
  LabelMargin label_margin = LabelMargin::tight;

  void validate() const;  // throws Error (bad input) for any other value
};

Dataset generate(const JointPromptData& options);

// Two inputs, {0, (1, 1, C)} and {0, (1, -1, 1)}. The prompt's direction tends to (1, 0) for every loss; what
// the loss decides is the finite offset p_2 -> 1/2 log(C |ell'(C)| / |ell'(1)|).
struct LossComparisonData {
  double score = 10;  // C, of the first input's best token; P2 has 1 to 10 and 100

  void validate() const;  // throws Error (bad input) unless C is finite and positive
};

Dataset generate(const LossComparisonData& options);

// The two data sets in the plane on which P3 draws how W and (K,Q) turn toward their max-margin solutions,
// with torch's generator in the order v, X, Z. All labels are +1; v and the queries have norm 1. Drawn and
// normalized in single precision, as in the paper, then widened to double.

// Two sequences of three tokens: 0.3 randn about (-1, 0) and about (1, 0). Tokens 0 and 2 are optimal, and the
// solution of least nuclear norm has rank 1.
struct Visualization1Data {
  std::uint64_t seed = 1;  // P3's; the lower 32 bits count

  void validate() const {}  // every seed is valid
};

Dataset generate(const Visualization1Data& options);

// Two sequences of five tokens: first (1, 1/2) and (1, -1/2), the other four 0.5 randn about (-1, 0). The first
// tokens are optimal, and the solution of least nuclear norm has rank 2.
struct Visualization2Data {
  std::uint64_t seed = 3;  // P3's; the lower 32 bits count

  void validate() const {}  // every seed is valid
};

Dataset generate(const Visualization2Data& options);

}  // namespace attmirror

// Attractors: the directions that training can converge to, and the tokens it then ends on.
//
// For each query j choose a token alpha_j. Tokens of its sequence with a lower score Y v^T x are worse, those
// with a higher one better, and the others equal. Let W_alpha be the smallest W with
//
//   (x_alpha - x_t)^T W z_j >= 1    for every query j and every *worse* token t.
//
// Far out along it, at R W_alpha, a token that is behind by delta pulls with a force of order e^{-R delta}:
// worse tokens push the weights away from themselves, better ones pull them over, equal ones do nothing.
// Pushes with delta = 1 balance in W_alpha, so it attracts descent if everything else is weaker:
//
//   better tokens   are behind by more than 1 (their deficit), so that their pull is the first to vanish
//   equal tokens    are behind alpha_j in a query that has support tokens; elsewhere they may even be level
//                   with it, and attention ends as a mixture of them
//
// The attractor is *whole* if every query has a best token, and *partial* otherwise; S is the set of queries
// that have one. If all tokens but the best have equal scores, a query outside S has no worse tokens: W_alpha
// is the max-margin solution of S alone, and leaves the best tokens of the others behind by more than the
// margin.
//
// If no two tokens of a query have equal scores, alpha is an attractor exactly if it is locally optimal as in
// P1, P2 and P3: constraints that are not active may be dropped or added. With equal scores there are more
// attractors than locally optimal selections, because no margin is demanded over tokens that the loss does
// not distinguish. That these attract, too, is an argument of ours, with the descents of confirm_attractors()
// as its evidence, and not a theorem of the papers.
//
//   const Attention model{data};
//   const Attractors found = attractors(model);
//   found.count(AttractorKind::partial);
#pragma once

#include <attmirror/attention/attention.hpp>
#include <attmirror/data/selection.hpp>
#include <attmirror/margin/max_margin.hpp>
#include <attmirror/sweep/which_margin.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// Whether every query ends on a best token.
enum class AttractorKind { whole, partial };
std::string_view to_string(AttractorKind kind);

// ---- one attractor

// How far the nearest better token of a query is behind the selected one.
struct Deficit {
  std::int64_t query = 0, token = 0;  // the better token
  double size = 0;                    // (x_alpha - x_token)^T W z, above 1
};

// What makes an attractor one, computed from the raw data by code that shares nothing with the search.
struct AttractorCertificate {
  Certificate margin;  // of the max-margin solution
  // The smallest difference of logits at W between a selected token and a worse one (at least 1), and a
  // better one (above 1); infinite where there is none.
  double least_margin = std::numeric_limits<double>::infinity();
  double least_deficit = std::numeric_limits<double>::infinity();
  // The same to an equal token, in queries with support tokens (above 0) and in the others (at least 0).
  // Tokens that are equal in all entries do not count.
  double least_lead = std::numeric_limits<double>::infinity();
  double least_idle_lead = std::numeric_limits<double>::infinity();
  // The solution is known up to its gap: no deficit of the exact one differs from ours by more. NaN for K, Q,
  // because the nuclear norm has several solutions; the deficits are then those of this W.
  double deficit_error = 0;
  double tolerance = 0;  // of the gap

  bool holds() const;
};

// A direction that attracts descent.
struct Attractor {
  AttractorKind kind = AttractorKind::whole;
  Selection tokens;                // on top at solution.W, one for each query; ties go to the first
  std::vector<std::int64_t> held;  // S: the queries on a best token
  std::vector<Deficit> deficits;   // one for each of the others
  // W (d, d), or (d, 1) for a prompt. Its constraints are those of attractor_constraints().
  MarginSolution solution;
  AttractorCertificate certificate;
  // Whether `tokens` is also a locally optimal selection as in P1, P2 and P3: equal tokens are behind by more
  // than 1.
  bool locally_optimal = false;
};

// Selected tokens over worse ones, by query and token; `tokens` as in Attractor. Scores count as equal if
// they differ by at most 1e-12 of the sum of |v_k x_k| of both tokens. Throws Error (bad input) if the tokens
// do not fit the data.
MarginConstraints attractor_constraints(const Attention& model, const Selection& tokens);

// Judges tokens, multipliers and weights again, from nothing else than the data. Throws Error (bad input) if
// their shapes do not fit the model.
AttractorCertificate verify_attractor(const Attention& model, const Attractor& attractor);

// ---- all of them

// Where to look for attractors.
struct AttractorOptions {
  // Of the geometry: mirror descent in l_p turns to the l_p max-margin solution; 1 < p < infinity. 2 is
  // gradient descent, and the only choice for K, Q, which turn to the nuclear one.
  double p = 2;
  // Up to this many choices are all examined. There are two for each query with equal scores of all tokens
  // but the best, and as many as it has tokens where all scores differ.
  std::int64_t max_candidates = 20'000;
  // Otherwise, random choices to search from: each is solved, and queries move on to better tokens
  // that are not behind by more than 1, until none is left.
  std::int64_t search_starts = 1'000;
  std::uint64_t seed = 0;  // of these directions
  MarginWork work{};       // threads, progress, stop

  void validate() const;
};

// The attractors of a dataset.
struct Attractors {
  std::vector<Attractor> list;  // the whole one first, then by margin, the largest first
  Norm norm = Norm::frobenius();
  double p = 2;
  double candidates = 0;      // how many choices there are
  std::int64_t examined = 0;  // how many of them were solved
  bool complete =
      false;  // all of them, and none is undecided: there are no other attractors (K, Q: of least nuclear norm)
  // Choices whose problem has no solution; and those without a certificate either way, because a deficit is 1
  // to rounding or a problem was not solved to its tolerance.
  std::int64_t infeasible = 0, undecided = 0;
  bool interrupted = false;

  std::int64_t count(AttractorKind kind) const;
  // Where weights belong that select these tokens; nothing if no attractor of the list does.
  std::optional<std::size_t> find(const Attention& model, const Selection& tokens) const;
};

// Throws Error (bad input) for a model with another head than v^T u, with a trained v, or with a penalty,
// which keeps weights finite; and if all tokens of each query have equal scores.
Attractors attractors(const Attention& model, const AttractorOptions& options = {});
// The same for W, a prompt or K, Q on a dataset, with the logistic loss; no other loss has other attractors.
Attractors attractors(const Dataset& data, const AttractorOptions& options = {},
                      const Parameterization& parameterization = W{});

// The attractor that weights with these tokens on top belong to, if there is one.
std::optional<Attractor> attractor_of(const Attention& model, const Selection& tokens, double p = 2);

// ---- what descent does

// Random starts, and how they are trained: by normalized descent whose steps become ten times as long three
// times.
struct StartOptions {
  std::int64_t starts = 1'000;
  // Entries are N(0, std^2); 0: such that a typical logit is 1, as in P1's Setting A.
  double std = 0;
  std::uint64_t seed = 0;     // of the first start; the others follow
  std::int64_t steps = 1000;  // of each of the four lengths
  MarginWork work{};

  void validate() const;
};

// Where a start ended if not on an attractor of the list. Elsewhere: its attention is decided, on tokens that
// are none of the attractors. Undecided: a better or worse token is less than 30 logits behind.
constexpr std::int64_t ended_elsewhere = -1, ended_undecided = -2;

// Where many starts ended.
struct StartShares {
  std::vector<std::int64_t>
      ends;  // of each start: the place of its attractor in the list, or one of the above
  std::vector<std::int64_t> counts;  // by attractor, in the order of the list
  std::int64_t elsewhere = 0, undecided = 0;
  std::int64_t starts = 0;
  bool interrupted = false;  // there are then no ends and no counts

  std::int64_t total(const Attractors& found, AttractorKind kind) const;
};

// If `found` is not complete, ends on tokens that it lacks are judged, and attractors among them added to it.
StartShares train_starts(const Attention& model, Attractors& found, const StartOptions& options = {});

// One descent that began close to an attractor: at R W plus noise, with R so large that its deficits can be
// told from 1.
struct Confirmation {
  // False where there is nothing to judge. Plain descent and the flow are not tried from R above 400, where
  // gradients are of order e^-R; the flow is not for p above 4, and where it is stiff (margins of very
  // different sizes, weights that are 0 with p above 2) it may not end within 250,000 gradients.
  bool finished = false;
  bool stayed = false;     // on the attractor's tokens
  double correlation = 0;  // of the last weights with its direction
  double lead = 0;         // the smallest one over tokens of another score at the end, in logits
};

// What three kinds of descent make of an attractor.
struct AttractorCheck {
  double R = 0;                  // of the start
  double start_correlation = 0;  // of the start with the attractor's direction
  Confirmation plain;            // 20,000 steps, of which the first adds at most 0.1 to R
  Confirmation normalized;       // 20,000 steps, of at least a thousandth of the start each
  Confirmation flow;             // mirror_flow() to time 1e300

  // All that finished stayed on the tokens: the plain one with a correlation above 0.95, because it gets no
  // further than the logarithm of its steps, and the others closer to the direction than the start was, or
  // above 0.999. At least one finished.
  bool holds() const;
};

// One check for each attractor of the list; empty if work.stop was requested.
std::vector<AttractorCheck> confirm_attractors(const Attention& model, const Attractors& found,
                                               const MarginWork& work = {});

// ---- a condition under which there is only one

// Sequences compete if what raises the lead of one best token lowers that of another. With A_jt = (x_best -
// x_t) z_j^T, gradient flow with equal scores of all tokens but the best moves W by sum_j c_j s_j (1 - s_j)
// Abar_j, where s_j is the probability of the best token, c_j > 0, and Abar_j is a mean of the A_jt. So if
//
//   <A_it, A_jt'> >= 0    for all queries i != j and all tokens t, t'
//
// then d/dt log(s_j / (1 - s_j)) >= c_j s_j (1 - s_j) |Abar_j|^2, and |Abar_j| >= 1 / |W_mm|: every
// probability s_j rises to 1, from every start. No query can be left behind, and there is no partial
// attractor, because all solutions are sums of A_it with positive factors. The condition is ours; it is
// sufficient and far from necessary.
struct GlobalCondition {
  bool applies = false;       // W or a prompt, and gradient descent: the argument above is about these
  bool unique_best = false;   // each query has one best token
  bool equal_scores = false;  // and all its other tokens have equal scores
  bool feasible = false;      // some weights select all best tokens
  // The smallest cosine between A_it and A_jt' of two queries, and where that is; 1 if there is only one
  // query. Above -1e-12 it counts as 0.
  double least_cosine = 1;
  ConstraintOrigin first{}, second{};

  bool holds() const { return applies && unique_best && equal_scores && feasible && least_cosine >= -1e-12; }
};

// Throws Error (bad input) for a model that attractors() refuses, except where all tokens have equal scores.
GlobalCondition global_condition(const Attention& model);

}  // namespace attmirror

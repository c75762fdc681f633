// The list of attractors: by enumeration where there are few choices, otherwise by a search.
//
// The search imitates what descent does with the tokens of a start. The tokens on top of a random W are a
// choice; its solution W_alpha is where descent would turn if they stayed. If a better token is not behind by
// more than 1, its pull wins, and the query moves on to it; where there are several such queries, the one
// whose pull is strongest moves first. Scores only rise (or stay, where an equal token is ahead), so this
// ends after few solutions, on an attractor or on tokens that no weights select. Random weights rarely have
// many best tokens on top, so in three starts of four some queries, chosen at random, begin on theirs.
#include "base/random.hpp"
#include "sweep/attractor_search.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/margin/support.hpp>

#include <algorithm>
#include <cmath>
#include <set>

namespace attmirror {

namespace {

constexpr std::int64_t choices_per_piece = 512;  // between two reports of progress
constexpr int longest_chain = 1000;              // of equal tokens that overtake each other

// How a query's tokens stand at W, seen from its choice.
struct Standing {
  std::int64_t selected = 0;                           // the choice, or the first on top of the lowest level
  std::int64_t nearest_better = -1, first_equal = -1;  // -1: none
  double deficit = std::numeric_limits<double>::infinity(), lead = deficit, margin = deficit;
};

Standing standing(const AttractorChoices& choices, std::ptrdiff_t j, std::int64_t choice, const Matrix& W) {
  const Vector logits = choices.logits(j, W);
  const int level = choices.choice_level(j, choice);
  Standing result;
  result.selected = choice;
  if (choice == lowest_level)
    for (std::ptrdiff_t t = 0; t < logits.size(); ++t)
      if (choices.level(j, t) == 0 &&
          (result.selected == lowest_level || logits[t] > logits[result.selected]))
        result.selected = t;
  for (std::ptrdiff_t t = 0; t < logits.size(); ++t) {
    if (!choices.is_allowed(j, t) || choices.same(j, t, result.selected)) continue;
    const double ahead = logits[result.selected] - logits[t];
    if (choices.level(j, t) < level) result.margin = std::min(result.margin, ahead);
    if (choices.level(j, t) > level && ahead < result.deficit) {
      result.deficit = ahead;
      result.nearest_better = t;
    }
    if (choices.level(j, t) == level && ahead < result.lead) {
      result.lead = ahead;
      result.first_equal = t;
    }
  }
  return result;
}

// The tokens on top of random weights with entries N(0, 1), or the best ones for a share of the queries.
AttractorChoice random_choice(const AttractorChoices& choices, std::uint64_t seed, std::int64_t start) {
  const Dataset& data = choices.model().data();
  const bool prompt = std::holds_alternative<Prompt>(choices.model().parameterization());
  Matrix W(data.dim(), prompt ? 1 : data.dim());
  const CounterRandom random(seed, RandomStream::attractor_directions);
  const double share = static_cast<double>(start % 4) / 4;
  const std::int64_t drawn = W.size() + data.total_queries();  // numbers for one start
  for (std::ptrdiff_t k = 0; k < W.size(); ++k)
    W.data()[k] = random.normal(static_cast<std::uint64_t>(start * drawn + k));
  Selection on_top;
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
    const Vector logits = choices.logits(j, W);
    const bool begins_on_best =
        random.uniform(static_cast<std::uint64_t>(start * drawn + W.size() + j)) < share;
    const int least_level = begins_on_best ? choices.top_level(j) : 0;
    std::int64_t top = -1;
    for (std::ptrdiff_t t = 0; t < logits.size(); ++t)
      if (choices.level(j, t) >= least_level && (top < 0 || logits[t] > logits[top])) top = t;
    on_top.tokens.push_back(top);
  }
  return choices.of(on_top);
}

// What one chain of the search met, from first to last.
using Chain = std::vector<std::pair<AttractorChoice, JudgedChoice>>;

Chain follow(const AttractorChoices& choices, AttractorChoice choice, const Norm& norm,
             const StopRequest& stop) {
  Chain chain;
  while (std::ssize(chain) < longest_chain) {
    chain.emplace_back(choice, judge_choice(choices, choice, norm, stop));
    if (!chain.back().second.next) break;
    choice = *chain.back().second.next;
    if (std::ranges::find(chain, choice, &Chain::value_type::first) != chain.end()) break;
  }
  return chain;
}

// Runs `work(index)` for 0 to count - 1 in pieces; false if it was stopped.
template <class Work, class Collect>
bool in_pieces(std::int64_t count, const MarginWork& how, Work work, Collect collect) {
  ThreadPool pool(how.threads);
  using Result = decltype(work(std::int64_t{0}));
  for (std::int64_t first = 0; first < count; first += choices_per_piece) {
    if (how.on_progress) how.on_progress(static_cast<double>(first) / static_cast<double>(count));
    std::vector<Result> results(static_cast<std::size_t>(std::min(choices_per_piece, count - first)));
    pool.run(std::ssize(results),
             [&](std::ptrdiff_t k) { results[static_cast<std::size_t>(k)] = work(first + k); });
    if (how.stop.requested()) return false;
    for (Result& result : results) collect(std::move(result));
  }
  return true;
}

void count_choice(Attractors& found, JudgedChoice&& judged) {
  ++found.examined;
  found.infeasible += judged.state == ChoiceState::infeasible;
  found.undecided += judged.state == ChoiceState::undecided;
  if (judged.state == ChoiceState::attractor) found.list.push_back(std::move(judged.attractor));
}

}  // namespace

std::string_view to_string(AttractorKind kind) {
  switch (kind) {
    case AttractorKind::whole:
      return "whole";
    case AttractorKind::partial:
      return "partial";
  }
  return "unknown";
}

JudgedChoice judge_choice(const AttractorChoices& choices, const AttractorChoice& choice, const Norm& norm,
                          const StopRequest& stop) {
  JudgedChoice result;
  const Dataset& data = choices.model().data();
  Matrix W = Matrix::Zero(
      data.dim(), std::holds_alternative<Prompt>(choices.model().parameterization()) ? 1 : data.dim());
  Attractor& attractor = result.attractor;
  if (choices.has_constraints(choice)) {
    MarginOptions options;
    options.stop = stop;
    if (const auto* kq = std::get_if<KQ>(&choices.model().parameterization())) options.max_rank = kq->rank;
    attractor.solution = max_margin(choices.constraints(choice), norm, options);
    if (attractor.solution.interrupted) return {.state = ChoiceState::stopped};
    if (attractor.solution.status == MarginStatus::infeasible) return {.state = ChoiceState::infeasible};
    if (attractor.solution.status == MarginStatus::stopped) return {.state = ChoiceState::undecided};
    W = attractor.solution.W;
  }
  bool attracts = true, surely_not = false;
  // Of the queries that move on, the one whose token pulls most.
  AttractorChoice next = choice;
  double strongest = std::numeric_limits<double>::infinity();
  const auto move = [&](std::size_t query, std::int64_t token, double behind) {
    if (behind >= strongest) return;
    strongest = behind;
    next = choice;
    next[query] = choices.first_same(static_cast<std::ptrdiff_t>(query), token);
  };
  attractor.locally_optimal = true;
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
    const auto query = static_cast<std::size_t>(j);
    const Standing at = standing(choices, j, choice[query], W);
    attractor.tokens.tokens.push_back(at.selected);
    if (at.nearest_better < 0)
      attractor.held.push_back(j);
    else
      attractor.deficits.push_back({j, at.nearest_better, at.deficit});
    attractor.locally_optimal = attractor.locally_optimal && at.lead > 1 + support_tolerance;
    const bool active = at.margin <= 1 + support_tolerance;
    // Of tokens that are level, an idle query names the first.
    const bool overtaken = at.lead < 0 || (at.lead == 0 && at.first_equal < at.selected) ||
                           (active && at.lead <= support_tolerance);
    if (at.deficit <= 1 + support_tolerance) {
      attracts = false;
      surely_not = surely_not || at.deficit < 1 - support_tolerance;
      move(query, at.nearest_better, at.deficit);
    } else if (choice[query] != lowest_level && overtaken) {
      attracts = false;
      surely_not = surely_not || !active || at.lead < -support_tolerance;
      if (at.lead < 0) move(query, at.first_equal, at.lead);
    }
  }
  if (attracts && choices.has_constraints(choice)) {
    attractor.kind = attractor.deficits.empty() ? AttractorKind::whole : AttractorKind::partial;
    attractor.certificate = verify_attractor(choices.model(), attractor);
    result.state = attractor.certificate.holds() ? ChoiceState::attractor : ChoiceState::undecided;
    return result;
  }
  result = {.state = surely_not ? ChoiceState::repelled : ChoiceState::undecided};
  if (next != choice) result.next = std::move(next);
  return result;
}

void sort_attractors(std::vector<Attractor>& list) {
  std::ranges::stable_sort(list, [](const Attractor& a, const Attractor& b) {
    return std::tuple(a.kind, a.solution.norm, a.tokens.tokens) <
           std::tuple(b.kind, b.solution.norm, b.tokens.tokens);
  });
}

void AttractorOptions::validate() const {
  if (max_candidates < 0) throw bad_value("max_candidates", max_candidates, "0 or more");
  if (search_starts < 0) throw bad_value("search_starts", search_starts, "0 or more");
}

std::int64_t Attractors::count(AttractorKind kind) const {
  return std::ranges::count(list, kind, &Attractor::kind);
}

std::optional<std::size_t> Attractors::find(const Attention& model, const Selection& tokens) const {
  const AttractorChoices choices(model);
  const AttractorChoice choice = choices.of(tokens);
  for (std::size_t k = 0; k < list.size(); ++k)
    if (choices.of(list[k].tokens) == choice) return k;
  return std::nullopt;
}

Attractors attractors(const Attention& model, const AttractorOptions& options) {
  options.validate();
  Attractors found;
  found.p = options.p;
  found.norm = attractor_norm(model, options.p);
  const AttractorChoices choices(model);
  if (choices.all_equal())
    throw bad_input("all tokens of each sequence have equal scores: expected a better one to select");
  found.candidates = choices.count();
  const StopRequest& stop = options.work.stop;
  if (found.candidates <= static_cast<double>(options.max_candidates)) {
    const auto count = static_cast<std::int64_t>(found.candidates);
    found.interrupted = !in_pieces(
        count, options.work,
        [&](std::int64_t k) { return judge_choice(choices, choices.at(k), found.norm, stop); },
        [&](JudgedChoice&& judged) { count_choice(found, std::move(judged)); });
    found.complete = !found.interrupted && found.undecided == 0;
  } else {
    std::set<AttractorChoice> seen;
    // The best tokens first, then the random directions.
    const AttractorChoice best = choices.of(optimal_tokens(model.data()));
    found.interrupted = !in_pieces(
        options.search_starts + 1, options.work,
        [&](std::int64_t k) {
          return follow(choices, k == 0 ? best : random_choice(choices, options.seed, k - 1), found.norm,
                        stop);
        },
        [&](Chain&& chain) {
          for (auto& [choice, judged] : chain)
            if (seen.insert(choice).second) count_choice(found, std::move(judged));
        });
  }
  sort_attractors(found.list);
  return found;
}

Attractors attractors(const Dataset& data, const AttractorOptions& options,
                      const Parameterization& parameterization) {
  return attractors(Attention(data, parameterization), options);
}

std::optional<Attractor> attractor_of(const Attention& model, const Selection& tokens, double p) {
  const AttractorChoices choices(model);
  JudgedChoice judged = judge_choice(choices, choices.of(tokens), attractor_norm(model, p), {});
  if (judged.state != ChoiceState::attractor) return std::nullopt;
  return std::move(judged.attractor);
}

}  // namespace attmirror

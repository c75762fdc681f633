// The comparisons of all sentences, query by query, and the search for a cycle.
//
// Sentences are dealt to their queries first (a counting sort of their numbers), so that only one query's comparisons
// are in flux at a time: they are collected, merged and made unique, again and again as they double, which keeps the
// memory within twice the number of *different* comparisons.
#include "base/numbers.hpp"
#include "next_token/word_messages.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/next_token/partial_order.hpp>

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace attmirror {
namespace {

// Each comparison once, with the first sentence that makes it; the first `united` are in order already. So are those
// of a single long sentence, which then cost a merge and no sort.
void sort_and_unite(std::vector<Preference>& preferences, std::size_t united) {
  const auto comes_first = [](const Preference& a, const Preference& b) {
    return std::tie(a.better, a.worse, a.sentence) < std::tie(b.better, b.worse, b.sentence);
  };
  const auto added = preferences.begin() + static_cast<std::ptrdiff_t>(united);
  if (!std::is_sorted(added, preferences.end(), comes_first))
    std::sort(added, preferences.end(), comes_first);
  std::inplace_merge(preferences.begin(), added, preferences.end(), comes_first);
  preferences.erase(std::unique(preferences.begin(), preferences.end()), preferences.end());
}

// The numbers of the sentences, those of query 0 first; query q has first[q] to first[q + 1] - 1.
struct ByQuery {
  std::vector<std::int64_t> first, sentences;
};

ByQuery by_query(const Sentences& sentences) {
  ByQuery result;
  result.first.assign(at(sentences.vocabulary_size()) + 1, 0);
  for (std::ptrdiff_t i = 0; i < sentences.count(); ++i) ++result.first[at(sentences.query(i)) + 1];
  for (std::size_t q = 1; q < result.first.size(); ++q) result.first[q] += result.first[q - 1];
  std::vector<std::int64_t> next = result.first;
  result.sentences.resize(at(sentences.count()));
  for (std::ptrdiff_t i = 0; i < sentences.count(); ++i)
    result.sentences[at(next[at(sentences.query(i))]++)] = i;
  return result;
}

// One query's comparisons as a graph, better -> worse, between the tokens that can lie on a cycle.
//
// A token that nothing beats lies on no cycle, nor does one that beats nothing: without it the comparisons it takes
// part in are gone, and its neighbours may be free in turn. What remains when nobody is free is empty exactly where
// there is no cycle (Kahn's algorithm from both ends).
class CycleSearch {
 public:
  explicit CycleSearch(std::span<const Preference> edges);
  bool has_cycle() const { return !nodes_.empty(); }
  std::vector<Preference> shortest() const;

 private:
  std::int32_t node_of(Token token) const {
    const auto place = std::lower_bound(nodes_.begin(), nodes_.end(), token);
    return place == nodes_.end() || *place != token ? -1 : static_cast<std::int32_t>(place - nodes_.begin());
  }

  std::vector<Token> nodes_;        // ascending
  std::vector<Preference> edges_;   // between them, sorted by better, then worse
  std::vector<std::int32_t> head_;  // of edge e: the node of `worse`
  std::vector<std::size_t> out_;    // node v has the edges out_[v] to out_[v + 1] - 1
};

CycleSearch::CycleSearch(std::span<const Preference> edges) {
  for (const Preference& edge : edges) {
    nodes_.push_back(edge.better);
    nodes_.push_back(edge.worse);
  }
  std::sort(nodes_.begin(), nodes_.end());
  nodes_.erase(std::unique(nodes_.begin(), nodes_.end()), nodes_.end());

  const std::size_t n = nodes_.size();
  struct Neighbours {
    std::vector<std::size_t> first;
    std::vector<std::int32_t> nodes;
  };
  // degree[0]: how many still beat it, degree[1]: how many it still beats.
  std::vector<std::int32_t> degree[2] = {std::vector<std::int32_t>(n), std::vector<std::int32_t>(n)};
  std::vector<std::int32_t> tails, heads;
  for (const Preference& edge : edges) {
    tails.push_back(node_of(edge.better));
    heads.push_back(node_of(edge.worse));
    ++degree[1][at(tails.back())];
    ++degree[0][at(heads.back())];
  }
  const auto neighbours = [n](const std::vector<std::int32_t>& from, const std::vector<std::int32_t>& to) {
    Neighbours result{std::vector<std::size_t>(n + 1, 0), std::vector<std::int32_t>(to.size())};
    for (const std::int32_t v : from) ++result.first[at(v) + 1];
    for (std::size_t v = 0; v < n; ++v) result.first[v + 1] += result.first[v];
    std::vector<std::size_t> next = result.first;
    for (std::size_t e = 0; e < to.size(); ++e) result.nodes[next[at(from[e])]++] = to[e];
    return result;
  };
  const Neighbours after[2] = {neighbours(tails, heads), neighbours(heads, tails)};

  std::vector<char> gone(n, 0);
  std::vector<std::int32_t> loose;
  for (std::size_t v = 0; v < n; ++v)
    if (degree[0][v] == 0 || degree[1][v] == 0) {
      gone[v] = 1;
      loose.push_back(static_cast<std::int32_t>(v));
    }
  while (!loose.empty()) {
    const std::size_t v = at(loose.back());
    loose.pop_back();
    for (const int side : {0, 1})
      for (std::size_t e = after[side].first[v]; e < after[side].first[v + 1]; ++e) {
        const std::size_t u = at(after[side].nodes[e]);
        if (--degree[side][u] > 0 || gone[u]) continue;
        gone[u] = 1;
        loose.push_back(static_cast<std::int32_t>(u));
      }
  }
  for (std::size_t e = 0; e < edges.size(); ++e)
    if (!gone[at(tails[e])] && !gone[at(heads[e])]) edges_.push_back(edges[e]);
  std::vector<Token> rest;
  for (std::size_t v = 0; v < n; ++v)
    if (!gone[v]) rest.push_back(nodes_[v]);
  nodes_ = std::move(rest);

  out_.assign(nodes_.size() + 1, 0);
  for (const Preference& edge : edges_) {
    head_.push_back(node_of(edge.worse));
    ++out_[at(node_of(edge.better)) + 1];
  }
  for (std::size_t v = 0; v < nodes_.size(); ++v) out_[v + 1] += out_[v];
}

// Breadth first from each token in turn, back to itself, and never as deep as the best cycle so far; a cycle as short
// as one can be ends the search.
std::vector<Preference> CycleSearch::shortest() const {
  const std::size_t n = nodes_.size();
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::vector<std::size_t> best;  // the edges of the best cycle
  std::vector<std::size_t> came_by(n), seen(n, none);
  std::vector<std::int32_t> tail_of(edges_.size());
  for (std::size_t v = 0; v < n; ++v)
    for (std::size_t e = out_[v]; e < out_[v + 1]; ++e) tail_of[e] = static_cast<std::int32_t>(v);

  // Pairs first: they are the common case (one sentence with two labels), and without one three is the least.
  const auto has_pair = [&](std::size_t e) {
    const std::size_t v = at(head_[e]);
    return std::binary_search(head_.begin() + static_cast<std::ptrdiff_t>(out_[v]),
                              head_.begin() + static_cast<std::ptrdiff_t>(out_[v + 1]), tail_of[e]);
  };
  bool pairs = false;
  for (std::size_t e = 0; e < edges_.size() && !pairs; ++e) pairs = has_pair(e);
  const std::size_t least = pairs ? 2 : 3;

  std::vector<std::int32_t> level, next_level;
  for (std::size_t start = 0; start < n && best.size() != least; ++start) {
    level.assign(1, static_cast<std::int32_t>(start));
    seen[start] = start;
    std::size_t closing = none;
    for (std::size_t depth = 1; !level.empty() && closing == none && (best.empty() || depth < best.size());
         ++depth) {
      next_level.clear();
      for (const std::int32_t v : level) {
        for (std::size_t e = out_[at(v)]; e < out_[at(v) + 1] && closing == none; ++e) {
          const std::size_t u = at(head_[e]);
          if (u == start) closing = e;
          if (seen[u] == start) continue;
          seen[u] = start;
          came_by[u] = e;
          next_level.push_back(head_[e]);
        }
        if (closing != none) break;
      }
      level.swap(next_level);
    }
    if (closing == none) continue;
    best.assign(1, closing);
    for (std::size_t v = at(tail_of[closing]); v != start; v = at(tail_of[came_by[v]]))
      best.push_back(came_by[v]);
    std::reverse(best.begin(), best.end());
  }
  std::vector<Preference> steps;
  for (const std::size_t e : best) steps.push_back(edges_[e]);
  return steps;
}

}  // namespace

std::string_view to_string(TokenClass token_class) {
  switch (token_class) {
    case TokenClass::non_comparable:
      return "non-comparable";
    case TokenClass::optimal:
      return "optimal";
    case TokenClass::non_optimal:
      return "non-optimal";
  }
  return "unnamed";
}

std::string to_string(const PreferenceCycle& cycle, const Vocabulary& vocabulary,
                      std::span<const std::int64_t> line_numbers) {
  constexpr std::size_t shown = 12;
  if (cycle.steps.empty()) return fmt::format("after {}: no cycle", shown_word(vocabulary.word(cycle.query)));
  std::string text = fmt::format("after {}: {}", shown_word(vocabulary.word(cycle.query)),
                                 shown_word(vocabulary.word(cycle.steps.front().better)));
  for (std::size_t i = 0; i < cycle.steps.size(); ++i) {
    const Preference& step = cycle.steps[i];
    if (cycle.steps.size() > shown && i >= shown / 2 && i < cycle.steps.size() - shown / 2) {
      if (i == shown / 2) text += fmt::format(" > ... ({} more)", cycle.steps.size() - shown);
      continue;
    }
    const std::string source = line_numbers.empty() ? fmt::format("sentence {}", step.sentence + 1)
                                                    : fmt::format("line {}", line_numbers[at(step.sentence)]);
    text += fmt::format(" > {} ({})", shown_word(vocabulary.word(step.worse)), source);
  }
  return text;
}

PartialOrders::PartialOrders(const Sentences& sentences, const Collocations& collocations)
    : preferences_(at(sentences.vocabulary_size())), members_(at(sentences.vocabulary_size())) {
  if (sentences.vocabulary_size() != collocations.vocabulary_size())
    throw bad_input(
        fmt::format("the sentences are of a vocabulary of {} words and the collocations of one of {}",
                    sentences.vocabulary_size(), collocations.vocabulary_size()));
  const ByQuery dealt = by_query(sentences);
  std::vector<Preference> found;
  std::vector<Token> different, optimal;
  for (std::size_t q = 0; q < preferences_.size(); ++q) {
    found.clear();
    std::size_t united = 0;
    for (std::int64_t j = dealt.first[q]; j < dealt.first[q + 1]; ++j) {
      const std::int64_t i = dealt.sentences[at(j)];
      const Token label = sentences.label(i);
      different.assign(sentences.tokens(i).begin(), sentences.tokens(i).end());
      std::sort(different.begin(), different.end());
      different.erase(std::unique(different.begin(), different.end()), different.end());
      const auto worse = std::stable_partition(different.begin(), different.end(),
                                               [&](Token x) { return collocations.follows(label, x); });
      if (worse == different.begin()) unexplained_.push_back({i});
      for (auto better = different.begin(); better != worse; ++better) {
        for (auto other = worse; other != different.end(); ++other) found.push_back({*better, *other, i});
        if (found.size() > 2 * united + 4096) {
          sort_and_unite(found, united);
          united = found.size();
        }
      }
    }
    sort_and_unite(found, united);
    preferences_[q].assign(found.begin(), found.end());

    std::vector<Member>& members = members_[q];
    for (const Preference& preference : found) {
      members.push_back({preference.better, TokenClass::optimal});
      members.push_back({preference.worse, TokenClass::non_optimal});
    }
    // One loss is enough: of a token's entries non-optimal ones come first, and the first one stays.
    std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
      return std::tie(a.token, b.token_class) < std::tie(b.token, a.token_class);
    });
    members.erase(std::unique(members.begin(), members.end(),
                              [](const Member& a, const Member& b) { return a.token == b.token; }),
                  members.end());
    members.shrink_to_fit();
  }
  std::sort(unexplained_.begin(), unexplained_.end(),
            [](const UnexplainedLabel& a, const UnexplainedLabel& b) { return a.sentence < b.sentence; });
}

std::ptrdiff_t PartialOrders::total_preferences() const {
  std::ptrdiff_t total = 0;
  for (const std::vector<Preference>& of_query : preferences_)
    total += static_cast<std::ptrdiff_t>(of_query.size());
  return total;
}

std::vector<Token> PartialOrders::queries() const {
  std::vector<Token> result;
  for (std::size_t q = 0; q < preferences_.size(); ++q)
    if (!preferences_[q].empty()) result.push_back(static_cast<Token>(q));
  return result;
}

std::optional<PreferenceCycle> PartialOrders::find_cycle() const {
  for (std::size_t q = 0; q < preferences_.size(); ++q) {
    const CycleSearch search(preferences_[q]);
    if (search.has_cycle()) return PreferenceCycle{static_cast<Token>(q), search.shortest()};
  }
  return std::nullopt;
}

TokenClass PartialOrders::token_class(Token query, Token token) const {
  const std::vector<Member>& members = members_[at(query)];
  const auto place =
      std::lower_bound(members.begin(), members.end(), token,
                       [](const Member& member, Token wanted) { return member.token < wanted; });
  return place == members.end() || place->token != token ? TokenClass::non_comparable : place->token_class;
}

std::vector<TokenClass> PartialOrders::token_classes(Token query) const {
  std::vector<TokenClass> result(preferences_.size(), TokenClass::non_comparable);
  for (const Member& member : members_[at(query)]) result[at(member.token)] = member.token_class;
  return result;
}

}  // namespace attmirror

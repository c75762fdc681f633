#include "next_token/explained_sentences.hpp"

#include "base/numbers.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace attmirror {

namespace {

// The comparisons of the sentences that were kept, of one query: better -> worse.
//
// A sentence adds an edge from each optimal token to each of its others. With them there is a cycle exactly
// where an old path leads from one of the others to an optimal token: a cycle needs such a path to come back
// to a new edge's tail, and the edge from that optimal token to the path's first token, which is among the
// new ones, closes one.
class AcyclicOrder {
 public:
  // Adds the comparisons, or returns false and changes nothing where they would make a cycle.
  bool add(const std::vector<Token>& optimal, const std::vector<Token>& others) {
    if (reaches(others, optimal)) return false;
    for (const Token better : optimal) {
      std::vector<Token>& worse = worse_[better];
      for (const Token other : others)
        if (known_.insert(pair(better, other)).second) worse.push_back(other);
    }
    return true;
  }

 private:
  static std::uint64_t pair(Token better, Token worse) {
    return static_cast<std::uint64_t>(better) << 32 | static_cast<std::uint32_t>(worse);
  }

  bool reaches(const std::vector<Token>& from, const std::vector<Token>& to) const {
    std::vector<Token> open = from;
    std::unordered_set<Token> seen(from.begin(), from.end());
    while (!open.empty()) {
      const auto found = worse_.find(open.back());
      open.pop_back();
      if (found == worse_.end()) continue;
      for (const Token next : found->second) {
        if (std::ranges::binary_search(to, next)) return true;
        if (seen.insert(next).second) open.push_back(next);
      }
    }
    return false;
  }

  std::unordered_map<Token, std::vector<Token>> worse_;
  std::unordered_set<std::uint64_t> known_;
};

}  // namespace

std::string_view to_string(SkipReason reason) {
  switch (reason) {
    case SkipReason::no_successor:
      return "no successor";
    case SkipReason::unexplained_label:
      return "unexplained label";
    case SkipReason::contradiction:
      return "contradiction";
  }
  return "unnamed";
}

ExplainedSentences explained_sentences(const Sentences& sentences, const Collocations& collocations,
                                       Contradictions contradictions) {
  ExplainedSentences result{Sentences(sentences.vocabulary_size()), {}, {}};
  std::unordered_map<Token, AcyclicOrder> orders;  // by query
  for (std::ptrdiff_t i = 0; i < sentences.count(); ++i) {
    const Token label = sentences.label(i);
    std::vector<Token> others(sentences.tokens(i).begin(), sentences.tokens(i).end());
    std::ranges::sort(others);
    others.erase(std::unique(others.begin(), others.end()), others.end());
    if (std::ranges::any_of(others, [&](Token x) { return collocations.successors(x).empty(); })) {
      result.skipped.push_back({i, SkipReason::no_successor});
      continue;
    }
    const auto rest = std::stable_partition(others.begin(), others.end(),
                                            [&](Token x) { return collocations.follows(label, x); });
    const std::vector<Token> optimal(others.begin(), rest);
    others.erase(others.begin(), rest);
    if (optimal.empty()) {
      result.skipped.push_back({i, SkipReason::unexplained_label});
      continue;
    }
    if (contradictions == Contradictions::skip && !orders[sentences.query(i)].add(optimal, others)) {
      result.skipped.push_back({i, SkipReason::contradiction});
      continue;
    }
    result.sentences.add(sentences.tokens(i), label, sentences.weight(i));
    result.kept.push_back(i);
  }
  return result;
}

}  // namespace attmirror

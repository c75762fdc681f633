#include "base/numbers.hpp"
#include "base/random.hpp"
#include "base/words.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/next_token/realizable.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

namespace attmirror {
namespace {

// Rankings are a square of token numbers; this many still fit 31 bits of them.
constexpr std::ptrdiff_t largest_vocabulary = 46'340;

// The numbers of one object (a sentence, a ranking) of a stream, one after the other: addresses (object, 0), (object,
// 1), ...
class Draws {
 public:
  Draws(const CounterRandom& random, std::int64_t object)
      : random_(random), next_(static_cast<std::uint64_t>(object) << 32) {}
  std::size_t below(std::size_t limit) { return random_.below(limit, next_++); }
  std::ptrdiff_t between(std::ptrdiff_t low, std::ptrdiff_t high) {
    return low + static_cast<std::ptrdiff_t>(below(at(high - low + 1)));
  }

 private:
  const CounterRandom& random_;
  std::uint64_t next_;
};

std::vector<Token> all_tokens(std::ptrdiff_t vocabulary) {
  std::vector<Token> tokens(at(vocabulary));
  std::iota(tokens.begin(), tokens.end(), Token{0});
  return tokens;
}

void shuffle(std::vector<Token>& tokens, Draws& draws) {
  for (std::size_t i = tokens.size(); i > 1; --i) std::swap(tokens[i - 1], tokens[draws.below(i)]);
}

std::vector<Token> draw_successors(const RealizableOptions& options) {
  const CounterRandom random(options.seed, RandomStream::successors);
  Draws draws(random, 0);
  std::vector<Token> successors = all_tokens(options.vocabulary);
  if (options.successor == SuccessorKind::permutation)
    shuffle(successors, draws);
  else
    for (Token& y : successors) y = static_cast<Token>(draws.below(successors.size()));
  return successors;
}

// Tokens of one successor side by side, where the best of them stood; q before its equals. A permutation leaves the
// ranking as it is.
void gather_equals(std::vector<Token>& ranking, Token q, const std::vector<Token>& successors) {
  std::vector<std::size_t> place(ranking.size(), ranking.size());  // of a successor: of its best token
  for (std::size_t r = ranking.size(); r-- > 0;) place[at(successors[at(ranking[r])])] = r;
  std::stable_sort(ranking.begin(), ranking.end(), [&](Token a, Token b) {
    const std::size_t of_a = place[at(successors[at(a)])], of_b = place[at(successors[at(b)])];
    return of_a != of_b ? of_a < of_b : a == q && b != q;
  });
}

std::vector<Token> draw_ranking(const RealizableOptions& options, Token q,
                                const std::vector<Token>& successors) {
  const CounterRandom random(options.seed, RandomStream::rankings);
  Draws draws(random, q);
  std::vector<Token> ranking = all_tokens(options.vocabulary);
  shuffle(ranking, draws);
  if (options.successor == SuccessorKind::map) gather_equals(ranking, q, successors);
  if (options.order == OrderKind::three_class) {
    const auto used = ranking.begin() + options.optimal + options.non_optimal;
    const auto place = std::find(ranking.begin(), ranking.end(), q);
    if (place >= used) std::iter_swap(used - 1, place);
  }
  return ranking;
}

// Draws sentences; its arrays are made once, since there may be millions.
class SentenceMaker {
 public:
  SentenceMaker(std::ptrdiff_t vocabulary, const std::vector<Token>& successors, Repetition repetition)
      : positions_(at(vocabulary)), successors_(successors), repetition_(repetition) {
    std::iota(positions_.begin(), positions_.end(), std::size_t{0});
  }

  std::span<const Token> tokens() const { return tokens_; }
  Token label() const { return successors_[at(best_)]; }

  // `best` somewhere before q (or q itself), others of `pool` with other successors, q last.
  void make_classes(Token q, Token best, std::span<const Token> pool, std::ptrdiff_t length, Draws& draws) {
    best_ = best;
    tokens_.clear();
    const bool repeats = repetition_ == Repetition::allowed;
    const bool once = best == q && !repeats;
    const auto usable = [&](Token x) {
      return (repeats || x != q) && successors_[at(x)] != successors_[at(best)];
    };
    take_others(pool, at(length) - (once ? 1 : 2), usable, q, draws);
    if (!once)
      tokens_.insert(tokens_.begin() + static_cast<std::ptrdiff_t>(draws.below(tokens_.size() + 1)), best);
    tokens_.push_back(q);
  }

  // Any tokens, q last; the best by the ranking.
  void make_linear(Token q, std::span<const Token> ranking, std::ptrdiff_t length, Draws& draws) {
    tokens_.clear();
    best_places_.clear();
    const bool repeats = repetition_ == Repetition::allowed;
    take_others(
        ranking, at(length) - 1, [&](Token x) { return repeats || x != q; }, q, draws);
    tokens_.push_back(q);
    const auto own = static_cast<std::size_t>(std::find(ranking.begin(), ranking.end(), q) - ranking.begin());
    best_ = ranking[std::min(own, *std::min_element(best_places_.begin(), best_places_.end()))];
  }

 private:
  template <class Usable>
  void take_others(std::span<const Token> pool, std::size_t count, Usable usable, Token query, Draws& draws) {
    if (repetition_ == Repetition::allowed)
      draw_others(pool, count, usable, query, draws);
    else
      deal_others(pool, count, usable, query, draws);
  }

  // `count` independent draws from the usable ones of the pool; the query where none is usable.
  template <class Usable>
  void draw_others(std::span<const Token> pool, std::size_t count, Usable usable, Token query, Draws& draws) {
    if (std::none_of(pool.begin(), pool.end(), usable)) {
      tokens_.insert(tokens_.end(), count, query);
      return;
    }
    while (count > 0) {
      const std::size_t place = draws.below(pool.size());
      if (!usable(pool[place])) continue;
      tokens_.push_back(pool[place]);
      best_places_.push_back(place);
      --count;
    }
  }

  // `count` usable ones of the pool, each once before any comes again; the query where none is usable. Fisher and
  // Yates' shuffle, as far as it is needed, on an array of positions that is put back in order afterwards: the work
  // is that of the tokens drawn, however large the pool.
  template <class Usable>
  void deal_others(std::span<const Token> pool, std::size_t count, Usable usable, Token query, Draws& draws) {
    while (count > 0) {
      const std::size_t before = tokens_.size();
      swaps_.clear();
      for (std::size_t i = 0; i < pool.size() && count > 0; ++i) {
        const std::size_t j = i + draws.below(pool.size() - i);
        std::swap(positions_[i], positions_[j]);
        swaps_.emplace_back(i, j);
        if (!usable(pool[positions_[i]])) continue;
        tokens_.push_back(pool[positions_[i]]);
        best_places_.push_back(positions_[i]);
        --count;
      }
      for (auto swap = swaps_.rbegin(); swap != swaps_.rend(); ++swap)
        std::swap(positions_[swap->first], positions_[swap->second]);
      if (tokens_.size() > before) continue;
      tokens_.insert(tokens_.end(), count, query);
      return;
    }
  }

  std::vector<std::size_t> positions_;  // 0, 1, 2, ... between calls
  std::vector<std::pair<std::size_t, std::size_t>> swaps_;
  std::vector<std::size_t> best_places_;  // in the pool, of what was taken
  std::vector<Token> tokens_;
  const std::vector<Token>& successors_;
  Repetition repetition_;
  Token best_ = no_token;
};

void make_sentence(SentenceMaker& maker, const RealizableOptions& options, const std::vector<Token>& ranking,
                   Token q, std::ptrdiff_t min_length, std::ptrdiff_t max_length, Draws& draws) {
  const std::ptrdiff_t length = draws.between(min_length, max_length);
  if (options.order == OrderKind::linear) {
    maker.make_linear(q, ranking, length, draws);
    return;
  }
  const std::span<const Token> all(ranking);
  const auto optimal = all.first(at(options.optimal)),
             others = all.subspan(at(options.optimal), at(options.non_optimal));
  const bool own = std::find(optimal.begin(), optimal.end(), q) != optimal.end();
  maker.make_classes(q, own ? q : optimal[draws.below(optimal.size())], others, length, draws);
}

// Token sequences as bytes: what a hash set of the standard library takes.
std::string_view bytes_of(std::span<const Token> tokens) {
  return {reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes()};
}

// Sentences of tokens that training never compared under their query.
class NonComparableMaker {
 public:
  NonComparableMaker(const RealizableData& data, std::span<const Token> queries)
      : data_(data), orders_(data.sentences, data.collocations), classes_(at(data.options.vocabulary)) {
    for (const Token q : queries) {
      Classes& classes = classes_[at(q)];
      const std::vector<TokenClass> kinds = orders_.token_classes(q);
      for (Token x = 0; x < data.options.vocabulary; ++x)
        if (x != q) classes.tokens[at(static_cast<int>(kinds[at(x)]))].push_back(x);
      classes.own = kinds[at(q)];
      if (classes.of(TokenClass::non_comparable).empty()) continue;
      if (classes.own == TokenClass::optimal || !classes.of(TokenClass::optimal).empty())
        queries_[0].push_back(q);
      if (classes.own == TokenClass::non_optimal) queries_[1].push_back(q);
    }
    if (queries_[0].empty() && queries_[1].empty())
      throw bad_input(
          "there are no unseen sentences with non-comparable tokens: training compares every token "
          "under each of its queries");
  }

  // False where this draw has no two tokens with different successors to show.
  bool make(SentenceMaker& maker, std::int64_t number, Draws& draws) const {
    std::size_t half = at(number % 2);
    if (queries_[half].empty()) half = 1 - half;
    const Token q = queries_[half][at(number / 2) % queries_[half].size()];
    const Classes& classes = classes_[at(q)];
    const auto& best_of = classes.of(half == 0 ? TokenClass::optimal : TokenClass::non_comparable);
    const auto& pool = classes.of(half == 0 ? TokenClass::non_comparable : TokenClass::non_optimal);
    const RealizableOptions& options = data_.options;
    const std::ptrdiff_t length =
        draws.between(std::max<std::ptrdiff_t>(options.min_length, half == 0 ? 3 : 2),
                      std::max<std::ptrdiff_t>(options.max_length, 3));
    const Token best =
        half == 0 && classes.own == TokenClass::optimal ? q : best_of[draws.below(best_of.size())];
    maker.make_classes(q, best, pool, length, draws);
    const auto tokens = maker.tokens();
    return half == 1
               ? data_.collocations.successor(q) != maker.label()
               : std::any_of(tokens.begin(), tokens.end(), [&](Token x) { return x != q && x != best; });
  }

 private:
  struct Classes {
    std::vector<Token> tokens[3];  // by TokenClass, without the query
    TokenClass own = TokenClass::non_comparable;
    const std::vector<Token>& of(TokenClass kind) const { return tokens[at(static_cast<int>(kind))]; }
  };
  const RealizableData& data_;
  PartialOrders orders_;
  std::vector<Classes> classes_;  // by query
  std::vector<Token>
      queries_[2];  // that have sentences with an optimal best token, with a non-comparable one
};

template <class Kind>
Kind parse_kind(std::string_view what, std::string_view name, std::initializer_list<Kind> kinds) {
  std::vector<std::string_view> names;
  for (const Kind kind : kinds) {
    if (name == to_string(kind)) return kind;
    names.push_back(to_string(kind));
  }
  throw bad_input(fmt::format("{} is \"{}\": expected {}", what, name, expected_choice(name, names)));
}

}  // namespace

std::string_view to_string(OrderKind kind) { return kind == OrderKind::linear ? "linear" : "three-class"; }
std::string_view to_string(SuccessorKind kind) { return kind == SuccessorKind::map ? "map" : "permutation"; }
std::string_view to_string(UnseenKind kind) {
  switch (kind) {
    case UnseenKind::same_order:
      return "same-order";
    case UnseenKind::non_comparable:
      return "non-comparable";
    case UnseenKind::longer:
      return "longer";
  }
  return "unnamed";
}

OrderKind parse_order_kind(std::string_view name) {
  return parse_kind("order", name, {OrderKind::three_class, OrderKind::linear});
}
SuccessorKind parse_successor_kind(std::string_view name) {
  return parse_kind("successor", name, {SuccessorKind::permutation, SuccessorKind::map});
}
std::string_view to_string(Repetition repetition) {
  return repetition == Repetition::avoided ? "avoided" : "allowed";
}
Repetition parse_repetition(std::string_view name) {
  return parse_kind("repetition", name, {Repetition::allowed, Repetition::avoided});
}
UnseenKind parse_unseen_kind(std::string_view name) {
  return parse_kind("kind of unseen sentences", name,
                    {UnseenKind::same_order, UnseenKind::non_comparable, UnseenKind::longer});
}

void RealizableOptions::validate() const {
  if (vocabulary < 2 || vocabulary > largest_vocabulary)
    throw bad_input(fmt::format("vocabulary is {}: expected 2 to {}", vocabulary, largest_vocabulary));
  if (sentences < 1 || sentences >= std::ptrdiff_t{1} << 32)
    throw bad_input(fmt::format("sentences is {}: expected 1 to 2^32 - 1", sentences));
  if (min_length < 2)
    throw bad_input(fmt::format("min_length is {}: expected 2 or more, a token and the query", min_length));
  if (max_length < min_length || max_length >= std::ptrdiff_t{1} << 30)
    throw bad_input(
        fmt::format("max_length is {}: expected {} (min_length) to 2^30 - 1", max_length, min_length));
  if (optimal < 0) throw bad_input(fmt::format("optimal is {}: expected 0 or more", optimal));
  if (non_optimal < 0) throw bad_input(fmt::format("non_optimal is {}: expected 0 or more", non_optimal));
  if (order == OrderKind::linear && (optimal != 0 || non_optimal != 0))
    throw bad_input(
        fmt::format("optimal is {} and non_optimal {}: expected 0, because a linear order has no classes",
                    optimal, non_optimal));
  if (std::max<std::ptrdiff_t>(optimal, 1) > vocabulary - std::max<std::ptrdiff_t>(non_optimal, 1))
    throw bad_input(
        fmt::format("optimal is {} and non_optimal {}: expected 1 or more each and {} (vocabulary) at most "
                    "together; 0 chooses",
                    optimal, non_optimal, vocabulary));
}

RealizableOptions RealizableOptions::resolved() const {
  validate();
  RealizableOptions result = *this;
  if (order == OrderKind::linear) return result;
  const auto share = [this](std::ptrdiff_t part, std::ptrdiff_t taken) {
    return std::min(std::max<std::ptrdiff_t>(part, 1), vocabulary - std::max<std::ptrdiff_t>(taken, 1));
  };
  if (optimal == 0) result.optimal = share(vocabulary / 4, non_optimal);
  if (non_optimal == 0) result.non_optimal = share(vocabulary / 2, result.optimal);
  return result;
}

RealizableData make_realizable(const RealizableOptions& options) {
  RealizableData data{.options = options.resolved(),
                      .vocabulary = Vocabulary::numbered(options.vocabulary),
                      .collocations = {},
                      .sentences = Sentences(options.vocabulary),
                      .rankings = {}};
  const std::vector<Token> successors = draw_successors(data.options);
  data.collocations = Collocations::hard(successors);
  for (Token q = 0; q < options.vocabulary; ++q)
    data.rankings.push_back(draw_ranking(data.options, q, successors));

  const CounterRandom random(options.seed, RandomStream::sentences);
  SentenceMaker maker(options.vocabulary, successors, options.repetition);
  for (std::ptrdiff_t i = 0; i < options.sentences; ++i) {
    const auto q = static_cast<Token>(i % options.vocabulary);
    Draws draws(random, i);
    make_sentence(maker, data.options, data.rankings[at(q)], q, options.min_length, options.max_length,
                  draws);
    data.sentences.add(maker.tokens(), maker.label());
  }
  return data;
}

Sentences unseen_sentences(const RealizableData& data, UnseenKind kind, std::ptrdiff_t count,
                           std::uint64_t seed) {
  const RealizableOptions& options = data.options;
  if (count < 0) throw bad_input(fmt::format("count is {}: expected 0 or more", count));
  if (kind == UnseenKind::non_comparable && options.order != OrderKind::three_class)
    throw bad_input("order is linear: unseen sentences with non-comparable tokens are of three classes only");
  std::vector<Token> successors, queries;
  for (Token x = 0; x < options.vocabulary; ++x) successors.push_back(data.collocations.successor(x));
  for (Token q = 0; q < std::min(options.vocabulary, options.sentences); ++q) queries.push_back(q);
  std::unordered_set<std::string_view> seen;
  for (std::ptrdiff_t i = 0; i < data.sentences.count(); ++i) seen.insert(bytes_of(data.sentences.tokens(i)));

  const CounterRandom random(seed, RandomStream::unseen_sentences);
  // Sentences of tokens that were never compared show as many of them as they can.
  SentenceMaker maker(options.vocabulary, successors,
                      kind == UnseenKind::non_comparable ? Repetition::avoided : options.repetition);
  std::optional<NonComparableMaker> non_comparable;
  if (kind == UnseenKind::non_comparable && count > 0) non_comparable.emplace(data, queries);

  Sentences result(options.vocabulary);
  // A training sentence that comes up again is drawn anew with the next query; where new ones are rare or there are
  // none, so many draws find out.
  const std::int64_t most_draws = 100 * count + 10'000;
  for (std::int64_t number = 0; result.count() < count; ++number) {
    if (number == most_draws)
      throw bad_input(fmt::format(
          "only {} of {} {} sentences are new in {} draws: the training set has most of the sentences that there are",
          result.count(), count, to_string(kind), most_draws));
    Draws draws(random, number);
    if (non_comparable) {
      if (!non_comparable->make(maker, number, draws)) continue;
    } else {
      const Token q = queries[at(number) % queries.size()];
      const bool longer = kind == UnseenKind::longer;
      make_sentence(maker, options, data.rankings[at(q)], q,
                    longer ? options.max_length + 1 : options.min_length,
                    longer ? 2 * options.max_length : options.max_length, draws);
    }
    if (!seen.contains(bytes_of(maker.tokens()))) result.add(maker.tokens(), maker.label());
  }
  return result;
}

}  // namespace attmirror

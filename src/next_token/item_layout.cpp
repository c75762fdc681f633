#include "next_token/item_layout.hpp"

#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

namespace attmirror {

ItemLayout::ItemLayout(const NextTokenModel& model) {
  begins.push_back(0);
  if (model.stage() != Stage::collocation) {
    if (model.sentences().total_tokens() > std::numeric_limits<std::int32_t>::max())
      throw bad_input(fmt::format("the sentences have {} tokens together: expected at most {}",
                                  model.sentences().total_tokens(),
                                  std::numeric_limits<std::int32_t>::max()));
    add_sentences(model.sentences());
    number_pairs();
  }
  if (model.stage() != Stage::attention) add_collocations(model.collocations());
  items = static_cast<std::ptrdiff_t>(labels.size());
  log_weights.resize(weights.size());
  std::ranges::transform(weights, log_weights.begin(), [](double w) { return std::log(w); });
  if (model.readout() == Readout::attention) count_votes(model.collocations());
}

void ItemLayout::add_sentences(const Sentences& from) {
  sentences = from.count();
  std::vector<std::int64_t> order(static_cast<std::size_t>(sentences));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::int64_t i) { return from.query(i); });
  begins.reserve(order.size() + 1);
  tokens.reserve(static_cast<std::size_t>(from.total_tokens()));
  labels.reserve(order.size());
  weights.reserve(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::int64_t i = order[k];
    if (k == 0 || from.query(i) != queries.back()) {
      queries.push_back(from.query(i));
      query_items.push_back(static_cast<std::int64_t>(k));
    }
    tokens.insert(tokens.end(), from.tokens(i).begin(), from.tokens(i).end());
    begins.push_back(static_cast<std::int64_t>(tokens.size()));
    labels.push_back(from.label(i));
    weights.push_back(from.weight(i) / from.total_weight());
  }
  query_items.push_back(sentences);
}

void ItemLayout::number_pairs() {
  pairs.resize(tokens.size());
  std::vector<std::int32_t> own;
  query_pairs.push_back(0);
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const std::int64_t from = begins[static_cast<std::size_t>(query_items[q])],
                       to = begins[static_cast<std::size_t>(query_items[q + 1])];
    own.assign(tokens.begin() + from, tokens.begin() + to);
    std::ranges::sort(own);
    own.erase(std::unique(own.begin(), own.end()), own.end());
    for (std::int64_t j = from; j < to; ++j) {
      const auto place = std::ranges::lower_bound(own, tokens[static_cast<std::size_t>(j)]) - own.begin();
      pairs[static_cast<std::size_t>(j)] = static_cast<std::int32_t>(query_pairs.back() + place);
    }
    pair_tokens.insert(pair_tokens.end(), own.begin(), own.end());
    pair_queries.insert(pair_queries.end(), own.size(), static_cast<std::int32_t>(q));
    query_pairs.push_back(static_cast<std::int64_t>(pair_tokens.size()));
  }
}

void ItemLayout::add_collocations(const Collocations& collocations) {
  const auto count = static_cast<double>(collocations.count());
  for (Token x = 0; x < collocations.vocabulary_size(); ++x) {
    double total = 0;
    for (const auto& successor : collocations.successors(x)) total += successor.weight;
    for (const auto& successor : collocations.successors(x)) {
      tokens.push_back(x);
      begins.push_back(static_cast<std::int64_t>(tokens.size()));
      labels.push_back(successor.token);
      weights.push_back(successor.weight / total / count);
    }
  }
}

void ItemLayout::count_votes(const Collocations& collocations) {
  std::vector<Token> named;
  vote_begins.push_back(0);
  followed.assign(tokens.size(), 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(sentences); ++i) {
    named.assign(1, labels[i]);
    for (std::int64_t j = begins[i]; j < begins[i + 1]; ++j)
      for (const auto& next : collocations.successors(tokens[static_cast<std::size_t>(j)]))
        named.push_back(next.token);
    std::sort(named.begin() + 1, named.end());
    named.erase(std::unique(named.begin() + 1, named.end()), named.end());
    named.erase(std::remove(named.begin() + 1, named.end(), labels[i]), named.end());
    for (std::int64_t j = begins[i]; j < begins[i + 1]; ++j)
      for (const auto& next : collocations.successors(tokens[static_cast<std::size_t>(j)])) {
        const auto slot = next.token == labels[i]
                              ? 0
                              : std::lower_bound(named.begin() + 1, named.end(), next.token) - named.begin();
        vote_positions.push_back(static_cast<std::int32_t>(j));
        vote_slots.push_back(static_cast<std::int32_t>(slot));
        if (slot == 0) followed[static_cast<std::size_t>(j)] = 1;
      }
    vote_begins.push_back(static_cast<std::int64_t>(vote_slots.size()));
    slot_counts.push_back(static_cast<std::int32_t>(named.size()));
  }
}

}  // namespace attmirror

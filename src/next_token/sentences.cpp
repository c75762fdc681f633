#include <attmirror/base/error.hpp>
#include <attmirror/base/fingerprint.hpp>
#include <attmirror/next_token/sentences.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {
namespace {

bool is_token(Token token, std::ptrdiff_t vocabulary_size) { return token >= 0 && token < vocabulary_size; }

std::string out_of_vocabulary(Token token, std::ptrdiff_t vocabulary_size) {
  if (vocabulary_size == 0) return fmt::format("{}: the vocabulary is empty", token);
  return fmt::format("{}: expected 0 to {}, a token of the vocabulary", token, vocabulary_size - 1);
}

bool is_weight(double weight) { return std::isfinite(weight) && weight > 0; }

std::uint64_t pair_key(Token token, Token successor) {
  return (std::uint64_t{static_cast<std::uint32_t>(token)} << 32) | static_cast<std::uint32_t>(successor);
}

}  // namespace

void Sentences::add(std::span<const Token> tokens, Token label, double weight) {
  const std::ptrdiff_t sentence = count();
  if (tokens.empty())
    throw bad_input(fmt::format("sentence {} has no token: expected one or more", sentence));
  for (std::size_t t = 0; t < tokens.size(); ++t)
    if (!is_token(tokens[t], vocabulary_size_))
      throw bad_input(fmt::format("sentence {}: token {} is {}", sentence, t,
                                  out_of_vocabulary(tokens[t], vocabulary_size_)));
  if (!is_token(label, vocabulary_size_))
    throw bad_input(
        fmt::format("sentence {}: the label is {}", sentence, out_of_vocabulary(label, vocabulary_size_)));
  if (!is_weight(weight))
    throw bad_input(fmt::format("sentence {}: the weight is {}: expected a finite number greater than 0",
                                sentence, weight));
  if (!std::isfinite(total_weight_ + weight))
    throw bad_input(fmt::format(
        "sentence {}: the weight is {}: the sum of all weights is not a finite number", sentence, weight));
  // Room for everything first: what follows cannot fail, and a failure leaves the sentences as they were.
  const auto make_room = [](auto& array, std::size_t more) {
    if (array.size() + more > array.capacity())
      array.reserve(std::max(array.size() + more, 2 * array.capacity()));
  };
  make_room(tokens_, tokens.size());
  make_room(offsets_, 1);
  make_room(labels_, 1);
  make_room(weights_, 1);
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  offsets_.push_back(static_cast<std::int64_t>(tokens_.size()));
  labels_.push_back(label);
  weights_.push_back(weight);
  max_length_ = std::max(max_length_, static_cast<std::ptrdiff_t>(tokens.size()));
  total_weight_ += weight;
}

std::uint64_t Sentences::fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(vocabulary_size_);
  fingerprint.add(count());
  for (std::ptrdiff_t i = 0; i < count(); ++i) {
    fingerprint.add(static_cast<std::ptrdiff_t>(tokens(i).size()));
    for (const Token token : tokens(i)) fingerprint.add(static_cast<std::ptrdiff_t>(token));
    fingerprint.add(static_cast<std::ptrdiff_t>(label(i)));
    fingerprint.add(weight(i));
  }
  return fingerprint.value();
}

Collocations Collocations::hard(std::span<const Token> successor) {
  Collocations result(static_cast<std::ptrdiff_t>(successor.size()));
  for (std::size_t x = 0; x < successor.size(); ++x)
    if (successor[x] != no_token) result.add(static_cast<Token>(x), successor[x]);
  return result;
}

Collocations Collocations::identity(std::ptrdiff_t vocabulary_size) {
  Collocations result(vocabulary_size);
  for (Token x = 0; x < vocabulary_size; ++x) result.add(x, x);
  return result;
}

void Collocations::add(Token token, Token successor, double weight) {
  const std::ptrdiff_t size = vocabulary_size();
  if (!is_token(token, size))
    throw bad_input(fmt::format("a collocation's token is {}", out_of_vocabulary(token, size)));
  if (!is_token(successor, size))
    throw bad_input(fmt::format("token {}: the successor is {}", token, out_of_vocabulary(successor, size)));
  if (!is_weight(weight))
    throw bad_input(
        fmt::format("token {}: the weight of successor {} is {}: expected a finite number greater than 0",
                    token, successor, weight));
  std::vector<Successor>& list = successors_[static_cast<std::size_t>(token)];
  const auto known = positions_.find(pair_key(token, successor));
  if (known == positions_.end()) {
    list.push_back({successor, weight});
    positions_.emplace(pair_key(token, successor), static_cast<std::uint32_t>(list.size() - 1));
    return;
  }
  double& sum = list[known->second].weight;
  if (!std::isfinite(sum + weight))
    throw bad_input(
        fmt::format("token {}: the weight of successor {} is {} and {} more: the sum is not a finite number",
                    token, successor, sum, weight));
  sum += weight;
}

bool Collocations::is_hard() const {
  return std::all_of(successors_.begin(), successors_.end(),
                     [](const std::vector<Successor>& list) { return list.size() <= 1; });
}

bool Collocations::follows(Token successor, Token token) const {
  const std::vector<Successor>& list = successors_[static_cast<std::size_t>(token)];
  if (list.size() <= 1) return !list.empty() && list.front().token == successor;
  return positions_.contains(pair_key(token, successor));
}

Token Collocations::successor(Token token) const {
  const std::vector<Successor>& list = successors_[static_cast<std::size_t>(token)];
  const auto heaviest = std::max_element(
      list.begin(), list.end(), [](const Successor& a, const Successor& b) { return a.weight < b.weight; });
  return heaviest == list.end() ? no_token : heaviest->token;
}

std::ptrdiff_t Collocations::count() const {
  return std::count_if(successors_.begin(), successors_.end(),
                       [](const std::vector<Successor>& list) { return !list.empty(); });
}

std::uint64_t Collocations::fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(vocabulary_size());
  for (const std::vector<Successor>& list : successors_) {
    fingerprint.add(static_cast<std::ptrdiff_t>(list.size()));
    for (const Successor& successor : list) {
      fingerprint.add(static_cast<std::ptrdiff_t>(successor.token));
      fingerprint.add(successor.weight);
    }
  }
  return fingerprint.value();
}

}  // namespace attmirror

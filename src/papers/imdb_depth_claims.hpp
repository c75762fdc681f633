// What P1 shows of l1.1 mirror descent and of gradient descent by one network each, at 6 blocks: token selection and
// large weights. Beside it are our means over seeds, at every size, and what P1 does not have: scores on reviews, and
// weights at equal training accuracy. Internal.
#pragma once

#include "papers/imdb_depth.hpp"
#include "papers/imdb_depth_weights.hpp"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace attmirror {

// One number, of l1.1 mirror descent and of gradient descent, in this order.
struct DepthClaim {
  std::string quantity;                                 // "token-selection score"
  std::optional<std::array<double, 2>> published = {};  // nothing: P1 does not have it
  double reading = 0;                                   // of the published numbers
  std::array<SampleSummary, 2> ours = {};
  int decimals = 3;

  // Nothing unless both have two trainings.
  std::optional<WelchComparison> comparison() const;
};

struct WeightClaims {
  std::array<DepthClaim, 3> above, largest;  // of K, Q and V
  DepthClaim sparsity;                       // mean of the three
};

struct DepthClaims {
  int blocks;
  DepthClaim score;
  std::array<DepthClaim, 3> reviews;  // score, lift, and share with such a word on top, in percent
  WeightClaims at_end;
  double accuracy = 0;                   // the equal training accuracy, as a share
  std::optional<WeightClaims> at_equal;  // weights there

  DepthClaims(const DepthStudy& study, int size);
  std::vector<const DepthClaim*> all() const;
};

Table depth_claims_table(const DepthClaims& claims);

// A network that attends to more than this share of a sentence's tokens, on average, selects nothing.
inline constexpr double even_share = 0.95;
// How many networks of a row do, and of how many it is known.
std::pair<std::ptrdiff_t, std::ptrdiff_t> even_networks(const DepthStudy& study, const char* row, int blocks);

// The conclusion on token selection, by seeds, by sentences and by reviews; and that on large weights.
std::string selection_sentence(const DepthStudy& study, const DepthClaims& claims);
std::string sparsity_sentence(const DepthStudy& study, const DepthClaims& claims);
// The verdict on large weights at every size, the largest first: "holds at 6 blocks and is contradicted at 3 blocks".
// Empty: nothing can be compared yet.
std::string sparsity_verdicts(const DepthStudy& study);

}  // namespace attmirror

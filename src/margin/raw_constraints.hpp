// The constraints of a max-margin problem as the verifier reads them: group by group, in extended precision, straight
// from the user's arrays or dataset. The solvers do not use this, and the verifier uses nothing of theirs.
#pragma once

#include <attmirror/margin/constraints.hpp>
#include <attmirror/margin/problems.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace attmirror {

using Real = long double;  // no product of a few doubles leaves its range

// The constraints of one group.
struct RawGroup {
  std::ptrdiff_t count = 0;
  std::vector<Real> left;    // count x rows of W: the a_k
  std::vector<Real> sizes;   // of the terms that were added up to form `left`; empty: its absolute values
  std::vector<Real> bounds;  // count
  std::vector<Relation> relations;
  const double* right = nullptr;  // z, as many as W has columns

  void start(const double* z) {
    count = 0;
    left.clear();
    sizes.clear();
    bounds.clear();
    relations.clear();
    right = z;
  }
  void add(Real bound, Relation relation) {
    ++count;
    bounds.push_back(bound);
    relations.push_back(relation);
  }
};

class RawConstraints {
 public:
  virtual ~RawConstraints() = default;
  virtual std::ptrdiff_t rows() const = 0;  // of W
  virtual std::ptrdiff_t cols() const = 0;
  virtual std::ptrdiff_t groups() const = 0;
  // How often rounding may have changed an entry of `left`, each time by at most 2^-64 of its `sizes`.
  virtual std::ptrdiff_t roundings() const = 0;
  // Replaces what is in `group`, and reuses its memory.
  virtual void load(std::ptrdiff_t g, RawGroup& group) const = 0;
};

// Both hold references to what they are given. The second throws Error (bad input) where the problem does not fit.
std::unique_ptr<RawConstraints> read_raw(const MarginConstraints& constraints);
std::unique_ptr<RawConstraints> read_raw(const Dataset& data, const MarginProblem& problem);

}  // namespace attmirror

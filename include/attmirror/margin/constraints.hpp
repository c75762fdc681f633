// What a max-margin problem demands from W: m linear constraints whose matrices have rank one.
//
//   <a_k z_g^T, W> = a_k^T W z_g  >= c_k  or  = c_k,      k = 1..m, g the group of k
//
// In attention, a_k = x_alpha - x_t is the difference between the selected token and another one, and z_g is
// the query that sees both: all constraints of one query form a group and share its z. For a vector (a
// prompt, a decoder), W has one column and z = 1. The m matrices of d x d numbers are never formed:
// everything that a solver needs comes from the a's and the z's.
#pragma once

#include <attmirror/base/matrix.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace attmirror {

// Whether a constraint is an inequality or an equality.
enum class Relation : std::uint8_t { at_least, equal };

// Where a constraint comes from, from 0; the query is counted within its sequence. For a problem of your own,
// any numbers.
struct ConstraintOrigin {
  std::int64_t sequence = 0, query = 0, token = 0;
  friend bool operator==(const ConstraintOrigin&, const ConstraintOrigin&) = default;
};

// Plain arrays, as users have them. Constraints of one group are next to each other.
struct ConstraintArrays {
  Matrix left;                            // (m, rows of W): a_k
  Matrix right;                           // (groups, columns of W): z_g
  std::vector<std::int64_t> group_sizes;  // how many constraints each group has; may be 0
  std::vector<double> bounds;             // m: c_k; >= 0 where the relation is at_least
  std::vector<Relation> relations{};      // m; empty: all at_least
  std::vector<ConstraintOrigin>
      origins{};  // m; empty: sequence = group, query 0, token = position within the group
};

// The constraints of a max-margin problem, each of rank one.
class MarginConstraints {
 public:
  // Checks all arrays, then copies them; throws Error (bad input) that names the first wrong entry.
  explicit MarginConstraints(const ConstraintArrays& arrays);

  std::ptrdiff_t count() const { return left_.view().rows; }
  std::ptrdiff_t rows() const { return left_.view().cols; }  // of W
  std::ptrdiff_t cols() const { return right_.view().cols; }
  std::ptrdiff_t groups() const { return right_.view().rows; }

  // Group g holds the constraints first(g) to first(g + 1) - 1.
  std::ptrdiff_t first(std::ptrdiff_t g) const { return offsets_[static_cast<std::size_t>(g)]; }
  std::ptrdiff_t group_of(std::ptrdiff_t k) const { return group_of_[static_cast<std::size_t>(k)]; }

  ConstMatrixView left() const { return left_.view(); }    // (m, rows)
  ConstMatrixView right() const { return right_.view(); }  // (groups, cols)
  std::span<const double> bounds() const { return bounds_; }
  std::span<const Relation> relations() const { return relations_; }
  std::span<const ConstraintOrigin> origins() const { return origins_; }
  bool is_equality(std::ptrdiff_t k) const {
    return relations_[static_cast<std::size_t>(k)] == Relation::equal;
  }

 private:
  PaddedMatrix left_, right_;
  std::vector<std::ptrdiff_t> offsets_, group_of_;
  std::vector<double> bounds_;
  std::vector<Relation> relations_;
  std::vector<ConstraintOrigin> origins_;
};

}  // namespace attmirror

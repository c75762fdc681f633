#include <attmirror/base/error.hpp>
#include <attmirror/mirror/direction.hpp>
#include <attmirror/mirror/lp_map.hpp>
#include <attmirror/mirror/norm.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

// w / ||w||_p, by way of the largest entry, so that neither very large nor very small weights matter.
PaddedMatrix unit_copy(const Matrix& w, const LpMap& geometry, const char* name) {
  const double largest = w.size() == 0 ? 0.0 : w.cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
  if (largest == 0) throw bad_input(fmt::format("{} is zero: it has no direction", name));
  if (!std::isfinite(largest)) throw bad_input(fmt::format("{} has an entry that is not finite", name));
  PaddedMatrix copy = PaddedMatrix(Matrix(w / largest));
  copy.view().eigen() /= geometry.norm(copy.view());
  return copy;
}

void check_shapes(const Matrix& a, const Matrix& b) {
  if (a.rows() != b.rows() || a.cols() != b.cols())
    throw bad_input(
        fmt::format("shapes differ: ({}, {}) and ({}, {})", a.rows(), a.cols(), b.rows(), b.cols()));
}

}  // namespace

double directional_bregman(const Matrix& solution, const Matrix& iterate, double p) {
  check_shapes(solution, iterate);
  // An entry's power p has p times its rounding error: beyond this, nothing would be left of the divergence.
  if (p > 1e9) throw bad_input(fmt::format("p is {}: expected at most 1e9 for a divergence", p));
  const LpMap geometry(p);
  const PaddedMatrix a = unit_copy(solution, geometry, "the solution"),
                     b = unit_copy(iterate, geometry, "the iterate");
  return geometry.bregman(a.view(), b.view());
}

double correlation(const Matrix& a, const Matrix& b) {
  check_shapes(a, b);
  const LpMap euclid(2);
  const PaddedMatrix u = unit_copy(a, euclid, "the first matrix"),
                     v = unit_copy(b, euclid, "the second matrix");
  return std::clamp(u.view().eigen().cwiseProduct(v.view().eigen()).sum(), -1.0, 1.0);
}

double lp_norm(const Matrix& w, double p) { return norm(w, Norm::l(p)); }

}  // namespace attmirror

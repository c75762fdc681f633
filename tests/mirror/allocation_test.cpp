// Geometry at work allocates nothing: decompositions, directions and steps use memory of their objects. Sanitizers
// have a malloc of their own, so this file is empty under them.
#include "mirror/hyperbolic_entropy_map.hpp"
#include "mirror/matrices.hpp"
#include "mirror/schatten_map.hpp"
#include "mirror/steepest.hpp"
#include "support/count_allocations.hpp"

#include <limits>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#if defined(ATTMIRROR_COUNTS_ALLOCATIONS)

namespace attmirror {
namespace {

using test::allocations;

template <class Action>
long allocations_of(Action action) {
  const long before = allocations.load();
  action();
  return allocations.load() - before;
}

TEST(Allocation, SteepestDirectionsMakeNone) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const double p : {1.0, 1.1, 1.6, 2.0, 3.0, inf})
    for (const Norm& which : {Norm::l(p), Norm::schatten(p)})
      for (const auto how : {Orthogonalization::exact, Orthogonalization::newton_schulz})
        for (const auto& shape : {std::pair(1, 9), std::pair(40, 150), std::pair(150, 40)})
          for (const double scale : {1.0, 0.0, 1e-315, 1e300}) {
            const auto rows = shape.first, cols = shape.second;
            const PaddedMatrix g(Matrix(scale * test::low_rank_matrix(rows, cols, 5, 1)));
            PaddedMatrix d(rows, cols);
            std::unique_ptr<SteepestDirection> steepest;
            EXPECT_GT(allocations_of(
                          [&] { steepest = std::make_unique<SteepestDirection>(which, rows, cols, how); }),
                      0);  // the count counts
            EXPECT_EQ(allocations_of([&] { steepest->find(g.view(), d.view()); }), 0) << to_string(which);
          }
}

void expect_none(const MirrorMap& map, double scale) {
  const PaddedMatrix g(Matrix(scale * test::normal_matrix(30, 140, 1)));
  PaddedMatrix y(Matrix(scale * test::normal_matrix(30, 140, 2))), w = y;
  map.map(w.view(), y.view());  // the first call for a shape may
  EXPECT_EQ(allocations_of([&] {
              map.map(w.view(), y.view());
              map.step(g.view(), 0.1, y.view(), w.view());
              map.inverse(y.view(), w.view());
              map.norm(w.view());
              map.dual_norm(g.view());
              map.potential(w.view());
              map.steepest(g.view(), w.view());
            }),
            0)
      << map.name() << " " << scale;
}

TEST(Allocation, MirrorMapsMakeNone) {
  for (const double scale : {1.0, 1e-315, 1e300}) {
    for (const double p : {1.1, 1.6, 2.0, 3.0}) {
      expect_none(LpMap(p), scale);
      expect_none(SchattenMap(p), scale);
    }
    expect_none(HyperbolicEntropyMap(0.1), scale);
  }
}

}  // namespace
}  // namespace attmirror

#endif

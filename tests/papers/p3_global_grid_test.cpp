// The grid of global convergence: its record, and two of its cells computed anew.
#include "papers/global_grid_record.hpp"
#include "papers/recorded_studies.hpp"
#include "papers/result_of.hpp"
#include <attmirror/base/error.hpp>

namespace attmirror {
namespace {

TEST(P3GlobalGrid, HasAWholeRecord) {
  const std::vector<GridCell> grid = parse_global_grid(global_grid_csv());
  ASSERT_EQ(grid.size(), 45u);
  for (const GridCell& cell : grid)
    for (const GridCell::Ends& ends : {cell.W, cell.KQ}) {
      EXPECT_EQ(ends.runs, 1000) << cell.n << ' ' << cell.T << ' ' << cell.d;
      EXPECT_LE(ends.global + ends.local, ends.saturated);
    }
}

TEST(P3GlobalGrid, RefusesADamagedRecord) {
  const std::string head = "params,samples,tokens,dim,runs,saturated,global,local,certified,infeasible\n";
  const std::string whole = head + "W,5,5,2,10,9,6,3,10,0\nKQ,5,5,2,10,10,7,3,10,0\n";
  EXPECT_EQ(parse_global_grid(whole).front().KQ.global, 7);
  for (const std::string& broken :
       {std::string("n,T\n"), head + "W,5,5,2,10,9,6,3,10,0\n", head + "V,5,5,2,10,9,6,3,10,0\n",
        head + "W,5,5,2,10,9,6,3,10\n", head + "W,5,5,2,10,9,6,3,10,0,1\n", head + "W,5,5,2,10,9,6,x,10,0\n",
        head + "W,5,5,2,10,9,6,4,10,0\nKQ,5,5,2,10,10,7,3,10,0\n"})
    EXPECT_THROW(parse_global_grid(broken), Error) << broken;
}

TEST(P3GlobalGrid, RecomputesCellsOfTheRecord) {
  const ExperimentResult result = test::quick_result("p3-global-grid");
  test::expect_sound(result);
  const double W = test::named(result, "n = 5, T = 20, d = 10: global share of W, uniform").ours,
               KQ = test::named(result, "n = 5, T = 20, d = 10: global share of (K, Q), uniform").ours;
  EXPECT_GT(KQ, W + .1);  // of 30 data sets
  EXPECT_EQ(test::named(result, "neither solved nor proved infeasible").ours, 0);
}

}  // namespace
}  // namespace attmirror

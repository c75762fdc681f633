#include "support/files.hpp"
#include <attmirror/base/figure.hpp>

#include <limits>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

Figure curve() {
  Figure figure;
  figure.id = "loss-2";
  figure.title = "Loss";
  figure.description = "It falls.";
  figure.series = {{.name = "a", .x = {1, 2}, .y = {3, 4}}};
  return figure;
}

Figure map() {
  Figure figure = curve();
  figure.series.clear();
  figure.heatmap = Heatmap{.rows = {"a", "b"}, .columns = {"c"}, .values = {{1}, {2}}};
  return figure;
}

template <class Change>
void refused(Figure figure, std::initializer_list<std::string_view> words, Change change) {
  change(figure);
  test::expect_bad_input(words, [&] { figure.validate(); });
}

TEST(Figure, CurvesAndMapsAreAccepted) {
  EXPECT_NO_THROW(curve().validate());
  EXPECT_NO_THROW(map().validate());
  Figure odd = curve();
  odd.series[0].y = {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()};
  odd.y.scale = Axis::Scale::log;
  odd.series.push_back({});
  EXPECT_NO_THROW(odd.validate());
  Figure empty = map();
  empty.heatmap = Heatmap{};
  EXPECT_NO_THROW(empty.validate());
}

TEST(Figure, NeedsAFileNameAndWords) {
  for (const char* id : {"", "a b", "a/b", "..", "ä", "a.svg"})
    refused(curve(), {"id is \"", id}, [&](Figure& f) { f.id = id; });
  refused(curve(), {"loss-2", "no title"}, [](Figure& f) { f.title.clear(); });
  refused(curve(), {"loss-2", "no description"}, [](Figure& f) { f.description.clear(); });
}

TEST(Figure, HasSeriesOrAMap) {
  refused(curve(), {"neither"}, [](Figure& f) { f.series.clear(); });
  refused(map(), {"both"}, [](Figure& f) { f.series = curve().series; });
}

TEST(Figure, ListsOfASeriesAreAsLong) {
  refused(curve(), {"series 0 (\"a\")", "y has 1", "x has 2"}, [](Figure& f) { f.series[0].y.pop_back(); });
  refused(curve(), {"labels has 1"}, [](Figure& f) { f.series[0].labels = {"only"}; });
  refused(curve(), {"low has 1"}, [](Figure& f) { f.series[0].low = {1}; });
  refused(curve(), {"a band needs low and high"}, [](Figure& f) { f.series[0].high = {1, 2}; });
}

TEST(Figure, RowsOfAMapFit) {
  refused(map(), {"1 rows of values, 2 names"}, [](Figure& f) { f.heatmap->values.pop_back(); });
  refused(map(), {"values[1] has 2 numbers"}, [](Figure& f) { f.heatmap->values[1] = {1, 2}; });
  refused(map(), {"no cell (2, 0)"}, [](Figure& f) { f.heatmap->marked = {{2, 0}}; });
}

TEST(Figure, RangesIncrease) {
  const double infinity = std::numeric_limits<double>::infinity();
  refused(curve(), {"range of x", "2 to 1"}, [](Figure& f) { f.x.range = {2, 1}; });
  refused(curve(), {"range of y", "inf"}, [&](Figure& f) { f.y.range = {0, infinity}; });
  refused(curve(), {"range of y", "positive"}, [](Figure& f) {
    f.y = {.scale = Axis::Scale::log, .range = std::pair{0.0, 1.0}};
  });
}

}  // namespace
}  // namespace attmirror

// Static drawings: what is drawn, what is left out, and that any figure gives a well-formed file.
#include "report/example_page.hpp"
#include "report/markup_checker.hpp"
#include "report/page_html.hpp"
#include "support/files.hpp"
#include "support/special_numbers.hpp"
#include <attmirror/report/svg.hpp>

#include <algorithm>
#include <limits>
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace attmirror {
namespace {

using test::infinity;
using test::nan;

Figure figure(std::vector<Series> series) {
  Figure f;
  f.id = "f";
  f.title = "A title";
  f.description = "What is drawn.";
  f.series = std::move(series);
  return f;
}

test::MarkupCheck parsed_svg(const std::string& svg) {
  const auto check = test::check_markup(svg, test::Markup::svg);
  EXPECT_EQ(check.error, "");
  return check;
}

// How many elements of this name carry this class.
std::ptrdiff_t count(const test::MarkupCheck& check, const std::string& name, const std::string& kind) {
  return std::ranges::count_if(check.elements, [&](const test::Element& element) {
    return element.name == name &&
           std::ranges::find(element.attributes, std::pair<std::string, std::string>{"class", kind}) !=
               element.attributes.end();
  });
}

TEST(Svg, HasTitleDescriptionAxesAndLegend) {
  Figure f = figure(
      {{.name = "first", .x = {0, 1, 2}, .y = {1, 2, 3}}, {.name = "second", .x = {0, 2}, .y = {3, 1}}});
  f.x.label = "steps";
  f.y.label = "loss";
  const std::string svg = to_svg(f);
  const auto check = parsed_svg(svg);
  EXPECT_EQ(check.elements.front().name, "svg");
  EXPECT_NE(svg.find("<title id=\"svg_f_title\">A title</title>"), std::string::npos);
  EXPECT_NE(svg.find("<desc id=\"svg_f_desc\">What is drawn.</desc>"), std::string::npos);
  for (const char* word : {"steps", "loss", "first", "second"})
    EXPECT_NE(check.text.find(word), std::string::npos) << word;
  EXPECT_EQ(count(check, "path", "stroke-0"), 2);  // the curve and its sample in the legend
  EXPECT_EQ(count(check, "path", "stroke-1"), 2);
  EXPECT_EQ(svg, to_svg(f));
}

TEST(Svg, GapsBreakTheLineAndLonePointsAreDots) {
  Figure f = figure({{.x = {1, 2, 3, 4, 5, 6, 7}, .y = {1, 2, nan, 4, infinity, 6, 7}}});
  auto check = parsed_svg(to_svg(f));
  EXPECT_EQ(count(check, "path", "stroke-0"), 2);
  EXPECT_EQ(count(check, "circle", "fill-0"), 1);
  f.y.scale = Axis::Scale::log;
  f.series[0].y = {1, 2, 0, 4, -3, 6, 7};
  check = parsed_svg(to_svg(f));
  EXPECT_EQ(count(check, "path", "stroke-0"), 2);
  EXPECT_EQ(count(check, "circle", "fill-0"), 1);
}

TEST(Svg, BandsAreAreasAndBarsOfPoints) {
  Figure f = figure({{.x = {1, 2, 3}, .y = {1, 2, 3}, .low = {0, 1, 2}, .high = {2, 3, nan}}});
  EXPECT_EQ(count(parsed_svg(to_svg(f)), "path", "fill-0"), 1);
  f.series[0].mark = Series::Mark::points;
  const auto check = parsed_svg(to_svg(f));
  EXPECT_EQ(count(check, "path", "fill-0"), 0);
  EXPECT_EQ(count(check, "path", "stroke-0"), 2);  // bars: the third has no upper end
  EXPECT_EQ(count(check, "circle", "fill-0"), 3);
}

TEST(Svg, ColorsAreGivenOrTheNextFreeOne) {
  Figure f = figure({});
  for (const int color : {2, -1, -1, 0, -1, 9})
    f.series.push_back({.x = {1, 2}, .y = {1, 2}, .color = color});
  const auto check = parsed_svg(to_svg(f));
  const std::map<int, std::ptrdiff_t> expected{{0, 1}, {1, 2}, {2, 1}, {3, 1}, {4, 1}};  // 9 is color 1 again
  for (const auto& [color, times] : expected)
    EXPECT_EQ(count(check, "path", "stroke-" + std::to_string(color)), times) << color;
}

TEST(Svg, WhereColorsBeginAnewPointsAreHollow) {
  std::vector<Series> nine;
  for (int i = 0; i < 9; ++i)
    nine.push_back({.name = "one", .x = {double(i)}, .y = {1}, .mark = Series::Mark::points});
  const auto check = parsed_svg(to_svg(figure(nine)));
  // Each is a point and a sample in the legend.
  EXPECT_EQ(count(check, "circle", "fill-0"), 2);
  EXPECT_EQ(count(check, "circle", "stroke-0"), 2);
  EXPECT_EQ(count(check, "circle", "fill-4"), 2);
}

TEST(Svg, EqualAxesHaveEqualUnits) {
  Figure f = figure({{.x = {0, 0, 10}, .y = {0, 1, 1}, .mark = Series::Mark::points}});
  f.equal_axes = true;
  std::vector<std::pair<double, double>> centres;
  for (const auto& element : parsed_svg(to_svg(f)).elements)
    if (element.name == "circle") {
      std::map<std::string, std::string> a(element.attributes.begin(), element.attributes.end());
      centres.emplace_back(std::stod(a.at("cx")), std::stod(a.at("cy")));
    }
  ASSERT_EQ(centres.size(), 3u);
  EXPECT_NEAR((centres[2].first - centres[1].first) / 10, centres[0].second - centres[1].second, 0.02);
}

TEST(Svg, HeatmapWritesItsNumbersAndFrames) {
  Figure f = figure({});
  f.heatmap = Heatmap{.rows = {"a", "b"},
                      .columns = {"c", "d"},
                      .values = {{0.1234, 1e-7}, {nan, 2e8}},
                      .digits = 2,
                      .marked = {{0, 1}}};
  const auto check = parsed_svg(to_svg(f));
  for (const char* number : {"0.12", "1.0e-07", "2.00e+08"})
    EXPECT_NE(check.text.find(number), std::string::npos) << number;
  EXPECT_EQ(check.text.find("nan"), std::string::npos);
  EXPECT_EQ(count(check, "rect", "mark"), 1);
  EXPECT_EQ(count(check, "rect", "empty-cell"), 1);
  EXPECT_EQ(count(check, "rect", "heat-15"), 1);
}

TEST(Svg, SizesThatCannotBeAreRefused) {
  const Figure f = figure({{.x = {1}, .y = {1}}});
  test::expect_bad_input({"width", "199"}, [&] { to_svg(f, {.width = 199}); });
  test::expect_bad_input({"height", "-5"}, [&] { to_svg(f, {.height = -5}); });
  test::expect_bad_input({"neither"}, [] { to_svg(figure({})); });
  EXPECT_EQ(test::check_markup(to_svg(f, {.width = 200, .height = 200}), test::Markup::svg).error, "");
}

TEST(Svg, ExamplesAreWellFormedInBothForms) {
  int figures = 0;
  for_each_item(test::example_page(), [&](const auto& item) {
    if constexpr (std::is_same_v<std::decay_t<decltype(item)>, Figure>) {
      for (const auto colors : {SvgOptions::Colors::standalone, SvgOptions::Colors::page}) {
        const std::string svg = to_svg(item, {.colors = colors});
        parsed_svg(svg);
        for (const char* bad : {"nan", "inf ", "alert(1)<"})
          EXPECT_EQ(svg.find(bad), std::string::npos) << bad;
        EXPECT_EQ(svg.find("<style>") != std::string::npos, colors == SvgOptions::Colors::standalone);
      }
      ++figures;
    }
  });
  EXPECT_EQ(figures, 5);
}

TEST(Svg, AnyFigureIsWellFormedAndHasNoNumberThatIsNone) {
  EXPECT_TRUE(rc::check("svg of any series", [](const std::vector<std::vector<double>>& lists,
                                                const std::string& words, bool log, bool equal, int mark) {
    Figure f = figure({});
    f.x.label = f.y.label = words;
    f.title += words;
    f.y.scale = log ? Axis::Scale::log : Axis::Scale::linear;
    f.equal_axes = equal;
    f.series.push_back({.name = words});
    for (const auto& list : lists) {
      Series s{.name = words, .x = {}, .y = list, .low = list, .high = list};
      s.mark = static_cast<Series::Mark>(std::abs(mark % 3));
      for (std::size_t i = 0; i < list.size(); ++i)
        s.x.push_back(list[list.size() - 1 - i] * (i % 3 ? 1 : nan));
      f.series.push_back(s);
    }
    const std::string svg = to_svg(f);
    const auto check = test::check_markup(svg, test::Markup::svg);
    RC_ASSERT(check.error == "");
    for (const auto& element : check.elements)
      for (const auto& [name, value] : element.attributes)
        if (name == "d" || name == "cx" || name == "x" || name == "y" || name == "height")
          RC_ASSERT(value.find_first_not_of("0123456789.- MLZ") == std::string::npos);
  }));
}

}  // namespace
}  // namespace attmirror

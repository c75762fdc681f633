// Colors can be seen and told apart.
#include "report/palette.hpp"

#include "support/special_numbers.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

TEST(Palette, StandsOutFromTheBackground) {
  EXPECT_NEAR(contrast({0, 0, 0}, {255, 255, 255}), 21, 1e-9);
  EXPECT_EQ(contrast({9, 9, 9}, {9, 9, 9}), 1);
  for (const Theme theme : {Theme::light, Theme::dark}) {
    const Surface& on = surface(theme);
    EXPECT_GE(contrast(on.text, on.background), 7);
    EXPECT_GE(contrast(on.quiet_text, on.background), 4.5);
    EXPECT_GE(contrast(on.frame, on.background), 3);
    for (int i = 0; i < series_color_count; ++i)
      EXPECT_GE(contrast(series_color(i, theme), on.background), 3) << i;
    for (const int step : {0, heat_steps - 1})
      EXPECT_GE(contrast(series_color(mark_color, theme), heat_color(step, theme)), 1.5) << step;
    for (int i = 0; i < heat_steps; ++i)
      EXPECT_GE(contrast(heat_color(i, theme), heat_text_color(i, theme)), 4.5) << i;
  }
}

TEST(Palette, HeatRunsOneWay) {
  for (const Theme theme : {Theme::light, Theme::dark})
    for (int i = 1; i < heat_steps; ++i)
      EXPECT_GT(contrast(heat_color(i, theme), surface(theme).background),
                contrast(heat_color(i - 1, theme), surface(theme).background));
}

TEST(Palette, StepsOfNumbers) {
  using test::infinity, test::nan;
  using Steps = std::vector<std::vector<int>>;
  EXPECT_EQ(heat_steps_of({.values = {{0, 1}, {0.5, nan}}}), (Steps{{0, 15}, {8, -1}}));
  EXPECT_EQ(heat_steps_of({.values = {{3, 3}, {infinity, nan}}}), (Steps{{4, 4}, {-1, -1}}));
  EXPECT_EQ(heat_steps_of({.values = {{-1.7e308, 1.7e308}}}), (Steps{{0, 15}}));
  EXPECT_EQ(heat_steps_of({.values = {{0, 1e-300}}}), (Steps{{0, 15}}));
  EXPECT_EQ(heat_steps_of({.values = {{0.99, 1}}}), (Steps{{15, 15}}));
  EXPECT_EQ(heat_number(-0.0001, 1), "-1.0e-04");
  EXPECT_EQ(heat_number(-0.0, 2), "0.00");
  EXPECT_EQ(heat_number(infinity, 2), "∞");
}

TEST(Palette, SameColorForWhatBelongsTogether) {
  EXPECT_EQ(resolve_colors({{.color = 1}, {}, {}, {.color = 1}, {.color = 0}, {}}),
            (std::vector{1, 2, 3, 1, 0, 4}));
}

}  // namespace
}  // namespace attmirror

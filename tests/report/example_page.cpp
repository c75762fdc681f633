#include "report/example_page.hpp"

#include <cmath>
#include <limits>

namespace attmirror::test {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

Figure figure(const std::string& id, const std::string& title) {
  Figure f;
  f.id = id;
  f.title = title;
  f.caption = "What to see in `" + id + "`: see [the tables](#tables).";
  f.description = "An example figure, " + id + ".";
  f.x.label = "steps";
  f.y.label = "divergence D(W*, W)";
  return f;
}

Figure rates() {
  Figure f = figure("rates", "Divergence from the max-margin direction");
  f.x.scale = f.y.scale = Axis::Scale::log;
  for (const double p : {1.75, 2.0, 3.0}) {
    Series s;
    s.name = "p = " + std::to_string(p).substr(0, 4);
    for (int i = 0; i < 120; ++i) {
      const double k = std::pow(10.0, i / 20.0);
      s.x.push_back(k);
      s.y.push_back(std::pow(1 + std::log(k), -p) * (1 + 0.1 * std::sin(i)));
      s.low.push_back(s.y.back() * 0.7);
      s.high.push_back(s.y.back() * 1.4);
      s.labels.push_back("record " + std::to_string(i));
    }
    f.series.push_back(s);
    Series law;
    law.name = s.name + ", law";
    law.dash = Series::Dash::dashed;
    law.color = static_cast<int>(f.series.size() / 2);
    f.series.back().color = law.color;
    for (const double k : s.x) {
      law.x.push_back(k);
      law.y.push_back(std::pow(1 + std::log(k), -p));
    }
    f.series.push_back(law);
  }
  return f;
}

Figure points() {
  Figure f = figure("points", "Means with standard errors");
  f.x.label = "dimension d";
  f.y.label = "share of runs";
  for (int s = 0; s < 4; ++s) {
    Series one{.name = "n = " + std::to_string(4 << s),
               .mark = s % 2 ? Series::Mark::both : Series::Mark::points};
    one.dash = s > 1 ? Series::Dash::dotted : Series::Dash::solid;
    for (int d = 1; d <= 10; ++d) {
      one.x.push_back(10 * d);
      one.y.push_back(1 / (1 + std::exp(s - 0.5 * d)));
      one.low.push_back(one.y.back() - 0.04);
      one.high.push_back(one.y.back() + 0.04);
    }
    f.series.push_back(one);
  }
  return f;
}

Figure plane() {
  Figure f = figure("plane", "Paths in a plane");
  f.equal_axes = true;
  f.x.label = "W[0]";
  f.y.label = "W[1]";
  for (int s = 0; s < 3; ++s) {
    Series path{.name = "start " + std::to_string(s + 1)};
    for (int i = 0; i < 60; ++i) {
      path.x.push_back(i / 20.0 * std::cos(0.4 + s));
      path.y.push_back(i / 20.0 * std::sin(0.4 + s + i / 200.0));
    }
    f.series.push_back(path);
  }
  return f;
}

Figure odd() {
  Figure f = figure("odd", "Gaps, one point, nothing, and " + hostile);
  f.x.whole = true;
  f.y.scale = Axis::Scale::log;
  f.series.push_back({.name = "gaps", .x = {1, 2, 3, 4, 5, 6, 7}, .y = {1, 10, nan, -3, 100, infinity, 5}});
  f.series.push_back({.name = "one point", .x = {4}, .y = {50}});
  f.series.push_back({.name = "nothing"});
  f.series.push_back({.name = hostile, .x = {2, 6}, .y = {3, 3}, .labels = {hostile, "b"}});
  return f;
}

Figure heat() {
  Figure f = figure("heat", "Divergence of each run from each solution");
  f.x.label = "solution";
  f.y.label = "training";
  f.heatmap = Heatmap{
      .rows = {"p = 1.75", "p = 2", "p = 3", hostile},
      .columns = {"q = 1.75", "q = 2", "q = 3"},
      .values = {{0.0012, 0.051, 0.19}, {0.048, 0.00001, 0.097}, {0.22, 0.11, 0.0021}, {nan, 0.3, infinity}},
      .digits = 3,
      .marked = {{0, 0}, {1, 1}, {2, 2}}};
  return f;
}

}  // namespace

Page example_page() {
  Page page;
  page.title = "An example report";
  page.subtitle = "All kinds of blocks on one page, see `attmirror report`";
  page.footer = "attmirror, [code](https://example.org/attmirror)";

  Section first{.id = "figures",
                .title = "Figures",
                .badge = "2 reproduced, 1 artefact",
                .badge_tone = Tone::good,
                .blocks = {}};
  first.blocks.push_back(Paragraph{"A paragraph with `code`, a [link](#tables) and " + hostile});
  first.blocks.push_back(rates());
  first.blocks.push_back(points());
  first.blocks.push_back(plane());
  page.sections.push_back(first);

  Section second{
      .id = "tables", .title = "Tables", .badge = "1 differs", .badge_tone = Tone::bad, .blocks = {}};
  TableBlock verdicts{.id = "verdicts",
                      .table = {},
                      .tones = {Tone::good, Tone::caution, Tone::bad, Tone::neutral},
                      .tone_column = 5};
  verdicts.table.title = "Published and ours";
  verdicts.table.columns = {
      {"quantity", Align::left}, {"published"},        {"source", Align::left}, {"ours"}, {"tolerance"},
      {"verdict", Align::left},  {"note", Align::left}};
  verdicts.table.rows = {
      {"mean divergence of p = 3 from q = 2 at step 20,000", "0.185", "figure", "0.1842 ± 0.0012",
       "3 standard errors", "reproduced", ""},
      {"the same, other tokens", "0.185", "figure", "0.0512 ± 0.001", "3 standard errors", "artefact",
       "the original's way gives 0.19: it compares runs that selected different tokens, which no direction "
       "can match"},
      {"‖W‖ℓ₁ of the solution", "2.6601", "printed", "2.7", "± 10⁻⁴", "differs", hostile},
      {"rate of the flow", "–", "", "−0.98", "", "new", ""}};
  second.blocks.push_back(verdicts);
  second.blocks.push_back(CodeBlock{"attmirror reproduce p1-setting-a --quick -o out/ && echo '<done>'"});
  second.blocks.push_back(
      Facts{"Configuration", {{"seed", "1"}, {"optimizer", "mirror descent, `p = 3`"}, {hostile, hostile}}});
  page.sections.push_back(second);

  Section third{.id = "details", .title = "Details", .blocks = {}};
  third.blocks.push_back(heat());
  third.blocks.push_back(Folded{"Odd figures", {Paragraph{"Hidden until asked for."}, odd()}});
  page.sections.push_back(third);
  return page;
}

}  // namespace attmirror::test

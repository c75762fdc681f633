// Mathematics in texts, numbers for people, and the papers that a page cites.
#include "report/typeset.hpp"

#include "report/cited_papers.hpp"
#include "report/markup.hpp"
#include "report/plotly.hpp"
#include "report/short_numbers.hpp"
#include <attmirror/report/svg.hpp>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

TEST(Typeset, SubscriptsAndSuperscripts) {
  EXPECT_EQ(typeset_html("W_mm and W_kq*"), "W<sub>mm</sub> and W<sub>kq</sub>*");
  EXPECT_EQ(typeset_html("D ~ (log k)^-a, K Q^T, d^2"),
            "D ~ (log k)<sup>−a</sup>, K Q<sup>T</sup>, d<sup>2</sup>");
  EXPECT_EQ(typeset_html("(lr k)^(1/(p−1))"), "(lr k)<sup>1/(p−1)</sup>");
  EXPECT_EQ(typeset_html("‖W‖_1.75, ‖W‖_spectral, |p^mm|_p"),
            "‖W‖<sub>1.75</sub>, ‖W‖<sub>spectral</sub>, |p<sup>mm</sup>|<sub>p</sub>");
  EXPECT_EQ(typeset_html("10^-12. W^mm[1,2] t^-1.5."),
            "10<sup>−12</sup>. W<sup>mm</sup>[1,2] t<sup>−1.5</sup>.");
}

TEST(Typeset, NamesStayAsTheyAre) {
  for (const char* name :
       {"max_softmax", "run_1", "x_train", "W_mm.npz", "a/b_c/d", "_x", "^x", "2 ^ n", "W_", "W^", "p_"})
    EXPECT_EQ(typeset_html(name), name);
  EXPECT_EQ(typeset_html("<W_mm>"), "&lt;W<sub>mm</sub>&gt;");
  EXPECT_EQ(inline_markup("`W_mm` is W_mm"), "<code>W_mm</code> is W<sub>mm</sub>");
  EXPECT_EQ(inline_markup("`W_mm` is not"), "<code>W_mm</code> is not");
}

TEST(Typeset, NegativeNumbersHaveAMinus) {
  EXPECT_EQ(typeset_html("0.16 (95 % interval -0.08 to 0.43)"), "0.16 (95 % interval −0.08 to 0.43)");
  EXPECT_EQ(typeset_html("-9227 to -8773"), "−9227 to −8773");
  EXPECT_EQ(typeset_html("(-1, 2.5), [0,-3], y=-.5, |-2| > -1. Or -1/2, -4 %, -inf"),
            "(−1, 2.5), [0,−3], y=−.5, |−2| &gt; −1. Or −1/2, −4 %, −inf");
  EXPECT_EQ(typeset_html("-1.5e-07"), "−1.5e-07");
  EXPECT_EQ(typeset_html("-0.5×10⁻⁷"), "−0.5×10⁻⁷");
  EXPECT_EQ(typeset_html("1 - cos(W_kq, W_dir), max(T - 1, n), W - W_fin"),
            "1 − cos(W<sub>kq</sub>, W<sub>dir</sub>), max(T − 1, n), W − W<sub>fin</sub>");
  EXPECT_EQ(inline_markup("[-1 to 2](#a) and `-1`"), "<a href=\"#a\">−1 to 2</a> and <code>-1</code>");
  for (const char* name :
       {"md-1.1-s1", "2026-01-02", "1e-05", "--seed", "-o", "-j4", "-1.npz", "run -3d", "3-5",
        "adam-1e-4-6blocks", "-1-2", "word - word", "é - 1", "-", "a -", "- 1", "-1/a"})
    EXPECT_EQ(typeset_html(name), name);
}

TEST(Typeset, FiguresHaveItToo) {
  Figure figure{.id = "f", .title = "W_mm", .description = "d"};
  figure.x.label = "10^3 steps";
  figure.series = {{.name = "K Q^T <i>", .x = {1, 2}, .y = {1, 2}}};
  const std::string svg = to_svg(figure), plotly = plotly_json(figure);
  EXPECT_NE(svg.find("W<tspan dy=\""), std::string::npos) << svg;
  EXPECT_EQ(svg.find(">W_mm</text>"), std::string::npos);
  EXPECT_NE(plotly.find("10<sup>3</sup> steps"), std::string::npos) << plotly;
  EXPECT_NE(plotly.find("K Q<sup>T</sup> &lt;i&gt;"), std::string::npos) << plotly;
  figure.series[0] = {.name = "s", .x = {1, 2}, .y = {-1, 1}, .low = {-2, 0}, .high = {-1, 2}};
  EXPECT_NE(to_svg(figure).find(">−1</text>"), std::string::npos) << to_svg(figure);
  EXPECT_NE(plotly_json(figure).find("\"−2 to −1\""), std::string::npos) << plotly_json(figure);
  Figure heat{.id = "h", .title = "h", .description = "d"};
  heat.heatmap = Heatmap{.rows = {"r"}, .columns = {"c"}, .values = {{-0.25}}, .digits = 2};
  EXPECT_NE(to_svg(heat).find(">−0.25</text>"), std::string::npos) << to_svg(heat);
  EXPECT_NE(plotly_json(heat).find("\"−0.25\""), std::string::npos) << plotly_json(heat);
  EXPECT_EQ(plotly_json(heat).find("-0.25"), std::string::npos) << plotly_json(heat);
  // What is lowered is followed by what is on the line again.
  EXPECT_EQ(typeset_svg("W_mm x", 10),
            "W<tspan dy=\"2.2\" font-size=\"7.8\">mm</tspan><tspan dy=\"-2.2\"> x</tspan>");
}

TEST(ShortNumbers, DigitsThatMeanSomething) {
  EXPECT_EQ(with_short_numbers("lr 0.044721359549995794, p 1.75"), "lr 0.04472, p 1.75");
  EXPECT_EQ(with_short_numbers("2.2204460492503131e-16"), "2.22e-16");
  EXPECT_EQ(with_short_numbers("0.1 1234567890 12.25"), "0.1 1234567890 12.25");
  for (const char* text : {"1.2.345678901", "v0.123456789a", "x0.123456789"})
    EXPECT_EQ(with_short_numbers(text), text);
  EXPECT_EQ(with_short_numbers(""), "");
}

TEST(CitedPapers, ThoseThatThePageMentions) {
  Page page{.title = "t"};
  page.sections.push_back({.id = "a", .title = "A", .blocks = {Paragraph{"P10, MP1 and p2 are others"}}});
  EXPECT_TRUE(papers_cited_by(page).empty());
  EXPECT_EQ(to_html(page).find("class=\"papers\""), std::string::npos);
  page.sections[0].blocks.push_back(Folded{"more", {Facts{"", {{"as in P4", "1"}}}}});
  page.conclusion = "As P1 says.";
  const std::vector<CitedPaper> papers = papers_cited_by(page);
  ASSERT_EQ(papers.size(), 2u);
  EXPECT_EQ(papers[0].id, "P1");
  EXPECT_EQ(papers[1].id, "P4");
  const std::string html = to_html(page);
  const std::size_t conclusion = html.find("<p class=\"conclusion\">As P1 says.</p>"),
                    list = html.find("class=\"papers\""), section = html.find("<section");
  EXPECT_LT(conclusion, list);
  EXPECT_LT(list, section);
  EXPECT_NE(html.find("https://arxiv.org/abs/2409.17335"), std::string::npos);
}

}  // namespace
}  // namespace attmirror

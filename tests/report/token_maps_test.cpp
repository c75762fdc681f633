// Attention on texts in a page: what is refused, what the first view shows, and that the page stays well formed.
#include "report/markup_checker.hpp"
#include "support/files.hpp"
#include <attmirror/report/page.hpp>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

TokenMaps example() {
  TokenMaps maps;
  maps.id = "maps";
  maps.title = "Attention <b>";
  maps.marked_name = "pivotal \"word\"";
  maps.models = {"a & b", "second"};
  TokenText text;
  text.title = "A <script>alert(1)</script> & more";
  text.tokens = {"[CLS]", "</script>", "##ly", "\"'&"};
  text.marked = {1, 2};
  TokenAttention all{.blocks = 2, .heads = 2, .rows = 4};
  all.probabilities.assign(2 * 2 * 4 * 4, 0.25f);
  // Last block, first row: heads (0.1 0.2 0.3 0.4) and (0.5 0.2 0.1 0.2).
  const float rows[2][4] = {{0.1f, 0.2f, 0.3f, 0.4f}, {0.5f, 0.2f, 0.1f, 0.2f}};
  for (std::size_t h = 0; h < 2; ++h)
    for (std::size_t t = 0; t < 4; ++t) all.probabilities[(2 + h) * 16 + t] = rows[h][t];
  all.answer = "positive <0.9>";
  all.verdict = TokenAttention::Verdict::right;
  all.note = "score <1>";
  TokenAttention few{.blocks = 1, .heads = 1, .rows = 1};
  few.probabilities = {1, 0, 0, 0};
  text.models = {all, few};
  maps.texts = {text};
  return maps;
}

Page page_with(const TokenMaps& maps) {
  Page page;
  page.title = "Page";
  page.sections.push_back({.id = "one", .title = "One", .blocks = {maps}});
  return page;
}

TEST(TokenMaps, FirstViewIsTheLastBlocksMeanRow) {
  const TokenMaps maps = example();
  const std::vector<double> row = first_row(maps.texts[0].models[0], 4);
  const double expected[] = {0.3, 0.2, 0.2, 0.3};
  for (std::size_t t = 0; t < 4; ++t) EXPECT_NEAR(row[t], expected[t], 1e-7);
  EXPECT_EQ(min_max({1, 5, 3}), (std::vector<double>{0, 1, 0.5}));
  EXPECT_EQ(min_max({3, 3}), (std::vector<double>{0, 0}));
  EXPECT_TRUE(min_max({}).empty());
}

TEST(TokenMaps, ThePageIsWellFormedAndEscaped) {
  const std::string html = to_html(page_with(example()));
  EXPECT_EQ(test::check_markup(html, test::Markup::html).error, "");
  EXPECT_EQ(html.find("<script>alert"), std::string::npos);
  EXPECT_NE(html.find("A &lt;script&gt;alert"), std::string::npos);
  EXPECT_NE(html.find("class=\"token heat-15"), std::string::npos);
  EXPECT_NE(html.find("continues marked"), std::string::npos);
  EXPECT_NE(html.find("a &amp; b: score &lt;1&gt; <span class=\"verdict"), std::string::npos);
  EXPECT_NE(html.find("<p class=\"model-name\">second</p>"), std::string::npos);
  // 1, 0, 0, 0 in 16 bits: ff ff 00 00 00 00 00 00.
  EXPECT_NE(html.find("\"p\":\"//8AAAAAAAA=\""), std::string::npos);
  // Pages without maps do not carry their script.
  Page plain = page_with(example());
  plain.sections[0].blocks = {Paragraph{"Nothing to see."}};
  EXPECT_EQ(to_html(plain).find("maps-data"), std::string::npos);
}

TEST(TokenMaps, Refusals) {
  const auto refused = [](std::initializer_list<std::string_view> words, auto change) {
    TokenMaps maps = example();
    change(maps);
    test::expect_bad_input(words, [&] { page_with(maps).validate(); });
  };
  refused({"id", "a b"}, [](TokenMaps& maps) { maps.id = "a b"; });
  refused({"no title"}, [](TokenMaps& maps) { maps.title.clear(); });
  refused({"no models"}, [](TokenMaps& maps) { maps.models.clear(); });
  refused({"no texts"}, [](TokenMaps& maps) { maps.texts.clear(); });
  refused({"texts[0]", "no tokens"}, [](TokenMaps& maps) { maps.texts[0].tokens.clear(); });
  refused({"texts[0]", "1 models", "2"}, [](TokenMaps& maps) { maps.texts[0].models.pop_back(); });
  refused({"marks token 4"}, [](TokenMaps& maps) { maps.texts[0].marked = {4}; });
  refused({"2 rows", "a & b"}, [](TokenMaps& maps) { maps.texts[0].models[0].rows = 2; });
  refused({"63 probabilities", "64"},
          [](TokenMaps& maps) { maps.texts[0].models[0].probabilities.pop_back(); });
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -0.1f, 1.5f})
    refused({"texts[0]", "second", "at 2"},
            [&](TokenMaps& maps) { maps.texts[0].models[1].probabilities[2] = bad; });
  Page twice = page_with(example());
  twice.sections[0].blocks.push_back(example());
  test::expect_bad_input({"maps", "twice"}, [&] { twice.validate(); });
}

}  // namespace
}  // namespace attmirror

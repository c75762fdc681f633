// Attention on images in a page: rows and their spread, what is refused, and that the page stays well formed.
#include "report/markup_checker.hpp"
#include "report/page_data.hpp"
#include "support/files.hpp"
#include <attmirror/report/page.hpp>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

PatchMaps example_patches() {
  PatchMaps maps;
  maps.id = "maps";
  maps.title = "Attention <b>";
  maps.models = {"a & b", "second"};
  PatchImage image;
  image.title = "Image 3: <script>alert(1)</script>";
  image.height = 2;
  image.width = 3;
  image.pixels.assign(3 * 2 * 3, 128);
  // Last block: heads (0.1; 0.2 0.3 0.4 0) and (0.5; 0.1 0.1 0.1 0.2), first block even.
  PatchAttention two{.blocks = 2, .heads = 2, .side = 2};
  two.probabilities.assign(10, 0.2f);
  for (const float p : {0.1f, 0.2f, 0.3f, 0.4f, 0.0f, 0.5f, 0.1f, 0.1f, 0.1f, 0.2f})
    two.probabilities.push_back(p);
  two.answer = "cat <0.9>";
  two.verdict = TokenAttention::Verdict::wrong;
  PatchAttention one{.blocks = 1, .heads = 1, .side = 1};
  one.probabilities = {1, 0};
  image.models = {two, one};
  maps.images = {image};
  return maps;
}

Page page_with(const PatchMaps& maps) {
  Page page;
  page.title = "Page";
  page.sections.push_back({.id = "one", .title = "One", .blocks = {maps}});
  return page;
}

TEST(PatchMaps, RowsOfHeadsAndTheirMean) {
  const PatchMaps maps = example_patches();
  const PatchAttention& two = maps.images[0].models[0];
  const double head[] = {0.5, 0.1, 0.1, 0.1, 0.2}, mean[] = {0.3, 0.15, 0.2, 0.25, 0.1};
  for (std::size_t t = 0; t < 5; ++t) {
    EXPECT_NEAR(two.row(1, 1)[t], head[t], 1e-7);
    EXPECT_NEAR(two.row(1, -1)[t], mean[t], 1e-7);
    EXPECT_NEAR(two.row(0, -1)[t], 0.2, 1e-7);
  }
  test::expect_bad_input({"block 2", "0 to 1"}, [&] { two.row(2, 0); });
  test::expect_bad_input({"head 2"}, [&] { two.row(0, 2); });
  test::expect_bad_input({"head -2"}, [&] { two.row(0, -2); });
}

TEST(PatchMaps, SpreadLeavesTheClassTokenAside) {
  const PatchSpread one = patch_spread(std::vector<double>{0.6, 0, 0.3, 0.1, 0});
  EXPECT_DOUBLE_EQ(one.class_token, 0.6);
  EXPECT_EQ(one.top_patch, 1u);
  EXPECT_NEAR(one.top_share, 0.75, 1e-15);
  EXPECT_NEAR(one.patches, 1 / (0.75 * 0.75 + 0.25 * 0.25), 1e-14);
  EXPECT_NEAR(one.entropy, -0.75 * std::log(0.75) - 0.25 * std::log(0.25), 1e-15);
  const PatchSpread even = patch_spread(std::vector<double>(10, 0.1));
  EXPECT_NEAR(even.patches, 9, 1e-13);
  EXPECT_NEAR(even.entropy, std::log(9.0), 1e-14);
  EXPECT_NEAR(even.top_share, 1.0 / 9, 1e-15);
  const PatchSpread none = patch_spread(std::vector<double>{1, 0, 0});
  EXPECT_EQ(none.class_token, 1);
  EXPECT_EQ(none.patches, 0);
  EXPECT_EQ(none.top_share, 0);
}

TEST(PatchMaps, ThePageIsWellFormedAndEscaped) {
  const std::string html = to_html(page_with(example_patches()));
  EXPECT_EQ(test::check_markup(html, test::Markup::html).error, "");
  EXPECT_EQ(html.find("<script>alert"), std::string::npos);
  EXPECT_NE(html.find("Image 3: &lt;script&gt;"), std::string::npos);
  EXPECT_NE(html.find("cat &lt;0.9&gt;"), std::string::npos);
  EXPECT_NE(html.find("a &amp; b"), std::string::npos);
  // The top patch of the last block's mean is the third of 2 x 2: it gets 0.25 of the 0.7 that patches get.
  EXPECT_NE(html.find("Top patch (row 2, column 1): 36 % of the attention to patches; 25 % would be even."),
            std::string::npos);
  EXPECT_NE(html.find("left:0%;top:50%;width:50%;height:50%"), std::string::npos);
  EXPECT_NE(html.find("block 2, head 1: top patch row 2, column 1 with 44 %"), std::string::npos);
  // A map for each block and head and for the means: 6 and 2.
  std::size_t small = 0;
  for (std::size_t at = html.find("class=\"patch-map\""); at != std::string::npos;
       at = html.find("class=\"patch-map\"", at + 1))
    ++small;
  EXPECT_EQ(small, 8u);
  // 1, 0 in 16 bits: ff ff 00 00.
  EXPECT_NE(html.find("\"p\":\"//8AAA==\""), std::string::npos);
  // 0.25 is the most of the mean, 0.15, 0.2 and 0.1 are darker by 0.4, 0.2 and 0.6 of 204.
  const std::vector<std::uint8_t> shade{0, 82, 0, 41, 0, 0, 0, 122};
  EXPECT_NE(html.find(picture_url(2, 2, PngPixels::gray_alpha, shade)), std::string::npos);
  Page plain = page_with(example_patches());
  plain.sections[0].blocks = {Paragraph{"Nothing to see."}};
  EXPECT_EQ(to_html(plain).find("maps-data"), std::string::npos);
}

TEST(PatchMaps, Refusals) {
  const auto refused = [](std::initializer_list<std::string_view> words, auto change) {
    PatchMaps maps = example_patches();
    change(maps);
    test::expect_bad_input(words, [&] { page_with(maps).validate(); });
  };
  refused({"id", "a b"}, [](PatchMaps& maps) { maps.id = "a b"; });
  refused({"no title"}, [](PatchMaps& maps) { maps.title.clear(); });
  refused({"no models"}, [](PatchMaps& maps) { maps.models.clear(); });
  refused({"no images"}, [](PatchMaps& maps) { maps.images.clear(); });
  refused({"images[0]", "0 x 2"}, [](PatchMaps& maps) { maps.images[0].width = 0; });
  refused({"images[0]", "17 bytes", "18"}, [](PatchMaps& maps) { maps.images[0].pixels.pop_back(); });
  refused({"images[0]", "1 models", "2"}, [](PatchMaps& maps) { maps.images[0].models.pop_back(); });
  refused({"0 patches along a side", "a & b"}, [](PatchMaps& maps) { maps.images[0].models[0].side = 0; });
  refused({"19 probabilities", "20"},
          [](PatchMaps& maps) { maps.images[0].models[0].probabilities.pop_back(); });
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -0.1f, 1.5f})
    refused({"images[0]", "second", "at 1"},
            [&](PatchMaps& maps) { maps.images[0].models[1].probabilities[1] = bad; });
  Page twice = page_with(example_patches());
  twice.sections[0].blocks.push_back(example_patches());
  test::expect_bad_input({"maps", "twice"}, [&] { twice.validate(); });
}

// The examples of RFC 4648.
TEST(PageData, Base64) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64(std::string_view("\xff\xfe\x00", 3)), "//4A");
}

}  // namespace
}  // namespace attmirror

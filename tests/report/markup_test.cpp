// Text inside markup and scripts, and the checker that the other tests rely on.
#include "report/markup.hpp"

#include "report/markup_checker.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace attmirror {
namespace {

TEST(Markup, EscapesWhatMeansSomething) {
  EXPECT_EQ(escape_markup("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(escape_markup("ℓ₂ ≤ 1"), "ℓ₂ ≤ 1");
  EXPECT_EQ(escape_markup(std::string_view("a\0b\x1b[1m\xff\xed\xa0\x80", 11)),
            "a\uFFFDb\uFFFD[1m\uFFFD\uFFFD\uFFFD\uFFFD");
}

TEST(Markup, ScriptsCannotEndEarly) {
  EXPECT_EQ(inside_script("a = '</script>' + '</SCRIPT' + '<!--' + '<script>'; if (a < b) c"),
            "a = '<\\/script>' + '<\\/SCRIPT' + '<\\!--' + '<script>'; if (a < b) c");
  EXPECT_EQ(json_inside_script("{\"a\":\"</script><!--\"}"), "{\"a\":\"\\u003c/script>\\u003c!--\"}");
}

TEST(Markup, CodeAndLinksInSentences) {
  EXPECT_EQ(inline_markup("run `a < b` now"), "run <code>a &lt; b</code> now");
  EXPECT_EQ(inline_markup("see [P1](#p1), [code](https://example.org/?a=1&b=2)."),
            "see <a href=\"#p1\">P1</a>, <a href=\"https://example.org/?a=1&amp;b=2\" rel=\"noopener "
            "noreferrer\">code</a>.");
  for (const char* text : {"[x](javascript:alert(1))", "[x](http://example.org)", "[x](//example.org)",
                           "a ` b", "``", "a[0] = [1, 2](", "[](#a)", "[x](#)", "[a [b](#c)"})
    EXPECT_EQ(inline_markup(text).find("href=\"j"), std::string::npos) << text;
  EXPECT_EQ(inline_markup("[x](javascript:alert(1))"), "[x](javascript:alert(1))");
  EXPECT_EQ(inline_markup("a ` b"), "a ` b");
  EXPECT_EQ(inline_markup("W[0] and [P1](#p1)"), "W[0] and <a href=\"#p1\">P1</a>");
}

TEST(Markup, AnyBytesBecomeWellFormed) {
  EXPECT_TRUE(rc::check("escaped text", [](const std::string& text) {
    const auto check = test::check_markup(
        "<p a=\"" + escape_markup(text) + "\">" + inline_markup(text) + "</p>", test::Markup::svg);
    RC_ASSERT(check.error == "");
  }));
}

TEST(MarkupChecker, SeesWhatIsWrong) {
  using test::Markup;
  EXPECT_EQ(test::check_markup("<a b=\"c\"><d/>e</a>", Markup::svg).error, "");
  for (const char* wrong : {"<a>", "<a></b>", "</a>", "<a b=c/>", "<a b=\"1\" b=\"2\"/>", "a & b",
                            "<a b=\"<\"/>", "< a/>", "<a b=\"1\"c=\"2\"/>", "\xff", "a > b", "<a b/>"})
    EXPECT_NE(test::check_markup(wrong, Markup::svg).error, "") << wrong;
}

}  // namespace
}  // namespace attmirror

// The page: well formed whatever the text, complete, safe, and refused where it is not well formed itself.
#include "base/atomic_file.hpp"
#include "report/embedded.hpp"
#include "report/example_page.hpp"
#include "report/markup_checker.hpp"
#include "report/page_html.hpp"
#include "report/plotly.hpp"
#include "support/files.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/report/svg.hpp>
#include <attmirror/report/table_files.hpp>

#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck.h>

namespace attmirror {
namespace {

using test::example_page;

constexpr std::string_view fake_plotly = "window.Plotly = '</script><!--';";

test::MarkupCheck parsed_page(const std::string& html) {
  auto check = test::check_markup(html, test::Markup::html);
  EXPECT_EQ(check.error, "");
  return check;
}

std::size_t occurrences(std::string_view text, std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(Page, IsWellFormedWithAndWithoutPlotly) {
  const Page page = example_page();
  for (const std::string_view plotly : {std::string_view(), fake_plotly}) {
    const std::string html = page_html(page, plotly);
    const auto check = parsed_page(html);
    EXPECT_EQ(occurrences(html, "<svg "), 5u);
    EXPECT_EQ(occurrences(html, "class=\"plotly\""), plotly.empty() ? 0u : 5u);
    EXPECT_EQ(occurrences(html, "built without Plotly"), plotly.empty() ? 1u : 0u);
    EXPECT_EQ(html.find("<script>alert"), std::string::npos);
    EXPECT_NE(check.text.find("&lt;script&gt;alert(1)"), std::string::npos);
    EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
    std::set<std::string> ids;
    for (const auto& element : check.elements)
      for (const auto& [name, value] : element.attributes) {
        if (name == "id" && !ids.insert(value).second) ADD_FAILURE() << value << " twice";
        // Nothing is loaded from anywhere.
        if (name == "src") ADD_FAILURE() << "src=" << value;
        const bool link = element.name == "a" && (value.starts_with("#") || value.starts_with("https://"));
        if (name == "href" && !link && value != "data:,") ADD_FAILURE() << "href=" << value;
        EXPECT_FALSE(name.starts_with("on")) << name;
      }
    for (const auto& element : check.elements)
      for (const auto& [name, value] : element.attributes) {
        const bool one_name = name == "aria-labelledby" && value.find(' ') == std::string::npos;
        if (one_name && !ids.contains(value)) ADD_FAILURE() << "labeled by " << value;
        if (name == "href" && value.starts_with("#") && !ids.contains(value.substr(1)))
          ADD_FAILURE() << value;
      }
  }
  EXPECT_EQ(to_html(page), page_html(page, plotly_source()));
}

TEST(Page, PlotlyIsWhatTheBuildSays) {
  const auto& parts = components();
  EXPECT_EQ(has_plotly(), std::ranges::find(parts, "plotly") != parts.end());
  EXPECT_EQ(plotly_source().size() > 1'000'000u, has_plotly());
}

TEST(Page, MarksDoNotRelyOnColor) {
  const std::string html = page_html(example_page(), "");
  EXPECT_NE(html.find("<span class=\"mark\" role=\"img\" aria-label=\"good\">✓</span>\u00A0reproduced"),
            std::string::npos);
  EXPECT_NE(html.find("aria-label=\"bad\">✗</span>\u00A0differs"), std::string::npos);
  EXPECT_NE(html.find("aria-label=\"caution\">!</span>\u00A0artefact"), std::string::npos);
}

TEST(Page, WritesItsFilesBesideIt) {
  const test::TemporaryFolder folder;
  const Page page = example_page();
  const auto files = write_page(page, folder / "report.html");
  EXPECT_EQ(files, page_files(page, folder / "report.html"));
  ASSERT_EQ(files.size(), 8u);
  EXPECT_EQ(files[0], folder / "report.html");
  for (const auto& file : files) EXPECT_TRUE(std::filesystem::is_regular_file(file)) << file;
  EXPECT_EQ(read_text_file(files[0]), to_html(page));
  const auto& rates = std::get<Figure>(page.sections[0].blocks[1]);
  EXPECT_EQ(read_text_file(folder / "figures/rates.svg"), to_svg(rates));
  const auto& table = std::get<TableBlock>(page.sections[1].blocks[0]).table;
  EXPECT_EQ(read_text_file(folder / "tables/verdicts.csv"), to_csv(table));
  EXPECT_EQ(read_text_file(folder / "tables/verdicts.tex"), to_latex(table));
}

TEST(Page, SaysWhereItCannotWrite) {
  const test::TemporaryFolder folder;
  test::expect_error(ErrorKind::environment, {"missing"},
                     [&] { write_page(example_page(), folder / "missing/report.html"); });
  EXPECT_TRUE(folder.names().empty());
}

TEST(Page, RefusesWhatIsNotWellFormed) {
  const auto refused = [](std::initializer_list<std::string_view> words, auto change) {
    Page page = example_page();
    change(page);
    test::expect_bad_input(words, [&] { page.validate(); });
    test::expect_bad_input(words, [&] { to_html(page); });
  };
  refused({"no title"}, [](Page& page) { page.title.clear(); });
  refused({"section id", "a b"}, [](Page& page) { page.sections[0].id = "a b"; });
  refused({"section id", "twice"}, [](Page& page) { page.sections[0].id = page.sections[1].id; });
  refused({"section tables has no title"}, [](Page& page) { page.sections[1].title.clear(); });
  refused({"figure id rates occurs twice"},
          [](Page& page) { page.sections[2].blocks.push_back(page.sections[0].blocks[1]); });
  refused({"figure id RATES occurs twice"}, [](Page& page) {
    Figure again = std::get<Figure>(page.sections[0].blocks[1]);
    again.id = "RATES";  // the same file on some disks
    page.sections[2].blocks.push_back(Folded{"again", {again}});
  });
  refused({"table id is \"../x\""},
          [](Page& page) { std::get<TableBlock>(page.sections[1].blocks[0]).id = "../x"; });
  refused({"3 tones and 4 rows"},
          [](Page& page) { std::get<TableBlock>(page.sections[1].blocks[0]).tones.pop_back(); });
  refused({"tone_column", "7"},
          [](Page& page) { std::get<TableBlock>(page.sections[1].blocks[0]).tone_column = 7; });
  refused({"description"},
          [](Page& page) { std::get<Figure>(page.sections[0].blocks[1]).description.clear(); });
}

TEST(Page, AnyTextAnywhereIsWellFormed) {
  EXPECT_TRUE(rc::check("any text", [](const std::string& words, int kind) {
    Page page = example_page();
    const std::string text = words + "x";  // titles must not be empty
    page.title = page.subtitle = page.footer = text;
    page.sections[1].title = page.sections[1].badge = text;
    auto& table = std::get<TableBlock>(page.sections[1].blocks[0]);
    table.table.title = table.table.columns[0].name = table.table.rows[1][2] = text;
    page.sections[1].blocks.push_back(CodeBlock{text});
    page.sections[1].blocks.push_back(Paragraph{text});
    page.sections[1].blocks.push_back(Facts{text, {{text, text}}});
    auto& figure = std::get<Figure>(page.sections[0].blocks[1]);
    figure.title = figure.caption = figure.description = figure.x.label = figure.series[0].name = text;
    const std::string html = page_html(page, kind % 2 ? fake_plotly : "");
    RC_ASSERT(test::check_markup(html, test::Markup::html).error == "");
  }));
}

TEST(Page, HugeTablesAreFine) {
  Page page{.title = "t", .sections = {{.id = "s", .title = "s", .blocks = {}}}};
  TableBlock block{.id = "huge", .table = {.columns = {{"a"}, {"b", Align::left}}}};
  for (int i = 0; i < 20000; ++i)
    block.table.rows.push_back({std::to_string(i), "<row & " + std::to_string(i) + ">"});
  page.sections[0].blocks.push_back(block);
  const std::string html = page_html(page, "");
  EXPECT_EQ(parsed_page(html).text.find("<row"), std::string::npos);
  EXPECT_EQ(occurrences(html, "<tr>"), 20001u);
}

TEST(PlotlyFigure, LeavesOutWhatAnAxisCannotShow) {
  using nlohmann::json;
  int figures = 0;
  for_each_item(example_page(), [&](const auto& item) {
    if constexpr (std::is_same_v<std::decay_t<decltype(item)>, Figure>) {
      const json figure = json::parse(plotly_json(item));
      EXPECT_FALSE(figure["data"].empty());
      if (item.id == "odd") {
        EXPECT_EQ(figure["data"][0]["y"], json::parse("[1, 10, null, null, 100, null, 5]"));
        EXPECT_EQ(figure["data"][0]["marker"]["size"], json::parse("[0, 0, 0, 0, 7, 0, 7]"));
        EXPECT_EQ(figure["data"][3]["name"].get<std::string>().find('<'), std::string::npos);
        EXPECT_EQ(figure["data"][3]["name"].get<std::string>().find('%'), std::string::npos);
        EXPECT_EQ(figure["layout"]["yaxis"]["type"], "log");
        EXPECT_EQ(figure["layout"]["xaxis"]["whole"], true);
        EXPECT_FALSE(figure["layout"]["yaxis"].contains("whole"));
      }
      if (item.id == "rates") {
        EXPECT_EQ(figure["data"].size(), 9u);  // three bands below six curves
        EXPECT_EQ(figure["data"][0]["x"].size(), 240u);
        EXPECT_EQ(figure["data"][0]["legendgroup"], figure["data"][3]["legendgroup"]);
        EXPECT_EQ(figure["data"][3]["colorIndex"], figure["data"][4]["colorIndex"]);
      }
      if (item.id == "heat") {
        EXPECT_EQ(figure["data"][0]["z"][3], json::parse("[null, 15, null]"));
        EXPECT_EQ(figure["layout"]["shapes"].size(), 3u);
      }
      EXPECT_EQ(figure["layout"]["yaxis"].value("scaleanchor", ""), item.id == "plane" ? "x" : "");
      ++figures;
    }
  });
  EXPECT_EQ(figures, 5);
}

}  // namespace
}  // namespace attmirror

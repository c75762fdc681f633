#include "support/files.hpp"
#include <attmirror/report/table_files.hpp>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace attmirror {
namespace {

TEST(Csv, FollowsTheStandard) {
  const Table table{.title = "not in the file",
                    .columns = {{"name", Align::left}, {"a,b"}},
                    .rows = {{"say \"hi\"", "1"}, {"two\nlines", " 2"}, {"", "x\xffy"}}};
  EXPECT_EQ(to_csv(table), "name,\"a,b\"\r\n\"say \"\"hi\"\"\",1\r\n\"two\nlines\",\" 2\"\r\n,x\uFFFDy\r\n");
}

// A reader as strict as the standard.
std::vector<std::vector<std::string>> read_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, {""});
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      rows.back().back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      rows.back().emplace_back();
    } else if (!quoted && text.compare(i, 2, "\r\n") == 0) {
      rows.push_back({""});
      ++i;
    } else {
      rows.back().back() += c;
    }
  }
  rows.pop_back();
  return rows;
}

TEST(Csv, ReadsBack) {
  EXPECT_TRUE(rc::check("any cells", [] {
    const auto letter = rc::gen::elementOf(std::string("ab ,\"\r\n;1"));
    const auto cell = rc::gen::container<std::string>(letter);
    Table table{.columns = {{*cell}, {*cell}, {*cell}}};
    const int rows = *rc::gen::inRange(0, 5);
    for (int r = 0; r < rows; ++r) table.rows.push_back({*cell, *cell, *cell});
    const auto read = read_csv(to_csv(table));
    RC_ASSERT(read.size() == table.rows.size() + 1);
    RC_ASSERT(std::vector(read.begin() + 1, read.end()) == table.rows);
  }));
}

TEST(Latex, IsABooktabsTable) {
  const Table table{
      .title = "Norms & gaps of ‖W‖ℓ₁",
      .columns = {{"norm", Align::left}, {"10⁻³ ‖W‖"}},
      .rows = {{"ℓ_1 100%", "2.66 ± 0.1"}, {"[a] {b} ~^\\ #$", "≤ 3²"}, {"two\nlines", "x\xff"}}};
  EXPECT_EQ(to_latex(table),
            "% \\usepackage{booktabs}\n"
            "\\begin{table}\n"
            "  \\centering\n"
            "  \\caption{Norms \\& gaps of $\\|$W$\\|$$\\ell$$_{1}$}\n"
            "  \\begin{tabular}{@{}lr@{}}\n"
            "    \\toprule\n"
            "    norm & 10$^{-3}$ $\\|$W$\\|$ \\\\\n"
            "    \\midrule\n"
            "    $\\ell$\\_1 100\\% & 2.66 $\\pm$ 0.1 \\\\\n"
            "    {}[a] \\{b\\} \\textasciitilde{}\\textasciicircum{}\\textbackslash{} \\#\\$ & $\\le$ "
            "3$^{2}$ \\\\\n"
            "    two lines & x? \\\\\n"
            "    \\bottomrule\n"
            "  \\end{tabular}\n"
            "\\end{table}\n");
}

TEST(Latex, BracesAndDollarsBalanceWhateverIsInACell) {
  EXPECT_TRUE(rc::check("any text", [](const std::string& text) {
    const std::string latex = to_latex({.columns = {{"a"}}, .rows = {{text + "²₃α"}}});
    int depth = 0, dollars = 0;
    for (std::size_t i = 0; i < latex.size(); ++i) {
      if (latex[i] == '\\') {
        ++i;
        continue;
      }
      if (latex[i] == '{') ++depth;
      if (latex[i] == '}') --depth;
      if (latex[i] == '$') ++dollars;
      RC_ASSERT(depth >= 0);
    }
    RC_ASSERT(depth == 0);
    RC_ASSERT(dollars % 2 == 0);
  }));
}

TEST(TableFiles, RefuseRowsThatDoNotFit) {
  const Table table{.columns = {{"a"}, {"b"}}, .rows = {{"1"}}};
  test::expect_bad_input({"rows[0]"}, [&] { to_csv(table); });
  test::expect_bad_input({"rows[0]"}, [&] { to_latex(table); });
}

}  // namespace
}  // namespace attmirror

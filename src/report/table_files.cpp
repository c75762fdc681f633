#include "base/csv.hpp"
#include "base/utf8.hpp"
#include <attmirror/report/table_files.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace attmirror {

namespace {

struct Replacement {
  char32_t letter;
  std::string_view latex;  // in math where it starts with $: neighbors then share one formula
};

// What stands in our tables and LaTeX's text fonts lack, or take for an order. In the order of the code points.
constexpr std::array replacements = std::to_array<Replacement>({
    {'#', "\\#"},
    {'$', "\\$"},
    {'%', "\\%"},
    {'&', "\\&"},
    {'<', "$<$"},
    {'>', "$>$"},
    {'\\', "\\textbackslash{}"},
    {'^', "\\textasciicircum{}"},
    {'_', "\\_"},
    {'{', "\\{"},
    {'|', "$|$"},
    {'}', "\\}"},
    {'~', "\\textasciitilde{}"},
    {U'\u00A0', "~"},
    {U'°', "$^\\circ$"},
    {U'±', "$\\pm$"},
    {U'²', "$^2$"},
    {U'³', "$^3$"},
    {U'µ', "$\\mu$"},
    {U'·', "$\\cdot$"},
    {U'¹', "$^1$"},
    {U'×', "$\\times$"},
    {U'Γ', "$\\Gamma$"},
    {U'Δ', "$\\Delta$"},
    {U'Θ', "$\\Theta$"},
    {U'Λ', "$\\Lambda$"},
    {U'Π', "$\\Pi$"},
    {U'Σ', "$\\Sigma$"},
    {U'Φ', "$\\Phi$"},
    {U'Ψ', "$\\Psi$"},
    {U'Ω', "$\\Omega$"},
    {U'α', "$\\alpha$"},
    {U'β', "$\\beta$"},
    {U'γ', "$\\gamma$"},
    {U'δ', "$\\delta$"},
    {U'ε', "$\\varepsilon$"},
    {U'ζ', "$\\zeta$"},
    {U'η', "$\\eta$"},
    {U'θ', "$\\theta$"},
    {U'ι', "$\\iota$"},
    {U'κ', "$\\kappa$"},
    {U'λ', "$\\lambda$"},
    {U'μ', "$\\mu$"},
    {U'ν', "$\\nu$"},
    {U'ξ', "$\\xi$"},
    {U'π', "$\\pi$"},
    {U'ρ', "$\\rho$"},
    {U'σ', "$\\sigma$"},
    {U'τ', "$\\tau$"},
    {U'υ', "$\\upsilon$"},
    {U'φ', "$\\varphi$"},
    {U'χ', "$\\chi$"},
    {U'ψ', "$\\psi$"},
    {U'ω', "$\\omega$"},
    {U'–', "--"},
    {U'—', "---"},
    {U'‖', "$\\|$"},
    {U'‘', "`"},
    {U'’', "'"},
    {U'“', "``"},
    {U'”', "''"},
    {U'…', "\\ldots{}"},
    {U'⁰', "$^0$"},
    {U'ⁱ', "$^i$"},
    {U'⁴', "$^4$"},
    {U'⁵', "$^5$"},
    {U'⁶', "$^6$"},
    {U'⁷', "$^7$"},
    {U'⁸', "$^8$"},
    {U'⁹', "$^9$"},
    {U'⁺', "$^+$"},
    {U'⁻', "$^-$"},
    {U'ⁿ', "$^n$"},
    {U'₀', "$_0$"},
    {U'₁', "$_1$"},
    {U'₂', "$_2$"},
    {U'₃', "$_3$"},
    {U'₄', "$_4$"},
    {U'₅', "$_5$"},
    {U'₆', "$_6$"},
    {U'₇', "$_7$"},
    {U'₈', "$_8$"},
    {U'₉', "$_9$"},
    {U'ₚ', "$_p$"},
    {U'ℓ', "$\\ell$"},
    {U'ᵀ', "$^\\top$"},
    {U'→', "$\\to$"},
    {U'∂', "$\\partial$"},
    {U'∇', "$\\nabla$"},
    {U'∈', "$\\in$"},
    {U'∑', "$\\sum$"},
    {U'−', "$-$"},
    {U'√', "$\\surd$"},
    {U'∞', "$\\infty$"},
    {U'≈', "$\\approx$"},
    {U'≠', "$\\ne$"},
    {U'≡', "$\\equiv$"},
    {U'≤', "$\\le$"},
    {U'≥', "$\\ge$"},
    {U'≪', "$\\ll$"},
    {U'≫', "$\\gg$"},
    {U'⊤', "$\\top$"},
});

bool is_script(std::string_view math) { return math.size() > 2 && (math[1] == '^' || math[1] == '_'); }

// "10⁻³" is $10^{-3}$'s own picture only if the raised letters are raised together: $^-$$^3$ would leave a gap.
std::string latex_text(std::string_view text) {
  std::string latex;
  char script = 0;  // '^' or '_' while raised or lowered letters follow each other
  const auto end_script = [&] {
    if (script != 0) latex += "}$";
    script = 0;
  };
  while (!text.empty()) {
    const Letter letter = first_letter(text);
    const auto found =
        std::ranges::find_if(replacements, [&](const Replacement& one) { return one.letter == letter.code; });
    if (found != replacements.end() && is_script(found->latex)) {
      if (script != found->latex[1]) {
        end_script();
        script = found->latex[1];
        latex += {'$', script, '{'};
      }
      latex += found->latex.substr(2, found->latex.size() - 3);
    } else {
      end_script();
      if (found != replacements.end())
        latex += found->latex;
      else if (letter.code < 0x20 || letter.code == 0x7F)
        latex += ' ';  // a cell is one line
      else if (letter.code == replacement_letter)
        latex += '?';
      else
        latex += text.substr(0, letter.bytes);
    }
    text.remove_prefix(letter.bytes);
  }
  end_script();
  return latex;
}

// A cell that begins with [ would be taken for the optional argument of the \\ before it.
std::string latex_cell(std::string_view text) {
  const std::string cell = latex_text(text);
  return cell.starts_with('[') ? "{}" + cell : cell;
}

}  // namespace

std::string to_csv(const Table& table) {
  table.validate();
  std::string csv;
  const auto end_line = [&csv] { csv += "\r\n"; };
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (c > 0) csv += ',';
    append_csv_cell(csv, valid_utf8(table.columns[c].name));
  }
  end_line();
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c > 0) csv += ',';
      append_csv_cell(csv, valid_utf8(row[c]));
    }
    end_line();
  }
  return csv;
}

std::string to_latex(const Table& table) {
  table.validate();
  std::string latex = "% \\usepackage{booktabs}\n\\begin{table}\n  \\centering\n";
  if (!table.title.empty()) latex += "  \\caption{" + latex_text(table.title) + "}\n";
  latex += "  \\begin{tabular}{@{}";
  for (const Column& column : table.columns) latex += column.align == Align::left ? 'l' : 'r';
  latex += "@{}}\n    \\toprule\n";
  const auto add_line = [&latex](const auto& cells, auto text_of) {
    latex += "    ";
    for (std::size_t c = 0; c < cells.size(); ++c)
      latex += (c > 0 ? " & " : "") + latex_cell(text_of(cells[c]));
    latex += " \\\\\n";
  };
  add_line(table.columns, [](const Column& column) { return column.name; });
  latex += "    \\midrule\n";
  for (const auto& row : table.rows) add_line(row, [](const std::string& cell) { return cell; });
  latex += "    \\bottomrule\n  \\end{tabular}\n\\end{table}\n";
  return latex;
}

}  // namespace attmirror

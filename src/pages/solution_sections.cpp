// What a reader wants to know of max-margin solutions: is the answer proved, how large is the margin, and which tokens
// decide it.
#include "margin/solution_summary.hpp"
#include "pages/run_sections.hpp"
#include "pages/shown_names.hpp"
#include "pages/sources.hpp"
#include <attmirror/data/npz.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

namespace fs = std::filesystem;

struct ReportedSolution {
  std::string name;
  fs::path file;
  SolutionSummary summary;
};

std::string nine_digits(double value) { return std::isfinite(value) ? fmt::format("{:.9g}", value) : "–"; }
std::string gap_digits(double value) { return std::isfinite(value) ? fmt::format("{:.1e}", value) : "–"; }

// The worse of the two halves of a Gen-SVM, as GeneralSolution::status() has it.
std::string whole_status(const SolutionSummary& summary) {
  const std::string& first = summary.solution.status;
  if (!summary.finite || first == "infeasible") return first;
  const std::string& second = summary.finite->status;
  return second == "certified" ? first : second == "infeasible" || first == "certified" ? second : first;
}

// One half in a sentence; `what` is its subject.
std::string half_conclusion(const SolutionHalf& half, const char* what) {
  if (half.status == "infeasible")
    return fmt::format("{} does not exist: the multipliers prove that no weights satisfy the constraints.",
                       what);
  if (half.status != "certified")
    return fmt::format(
        "{} is not proved optimal: the solver stopped at norm {}, and the optimum is at least {}.", what,
        short_number(half.norm), short_number(half.dual));
  if (half.norm == 0) return fmt::format("{} is 0, which satisfies all constraints.", what);
  return fmt::format(
      "{} is proved optimal to a relative gap of {:.0e}: its norm is {}, its margin {}, and {} of {} constraints hold with "
      "equality.",
      what, half.gap, short_number(half.norm), short_number(1 / half.norm), half.support.size(),
      half.constraints);
}

std::string solution_conclusion(const SolutionSummary& summary) {
  if (!summary.finite) return half_conclusion(summary.solution, "The max-margin solution");
  return half_conclusion(summary.solution, "The direction") + " " +
         half_conclusion(*summary.finite, "The finite part");
}

Facts half_facts(const std::string& title, const SolutionSummary& summary, const SolutionHalf& half) {
  Facts facts{title, {}};
  const auto add = [&](const char* name, std::string value) {
    facts.entries.emplace_back(name, std::move(value));
  };
  add("problem", summary.problem);
  add("norm that is minimized", summary.kind);
  add("its value", nine_digits(half.norm));
  if (std::isfinite(half.norm) && half.norm > 0) add("margin, 1 / norm", nine_digits(1 / half.norm));
  add("lower bound on every norm", nine_digits(half.dual));
  add("relative gap between the two", gap_digits(half.gap));
  add("status", half.status);
  add("constraints", fmt::format("{}", half.constraints));
  add("support tokens", fmt::format("{}", half.support.size()));
  if (!half.singular_values.empty()) {
    const double largest = half.singular_values.front();
    const auto rank =
        std::ranges::count_if(half.singular_values, [&](double value) { return value > 1e-6 * largest; });
    add("rank",
        fmt::format("{} of {} singular values above 1e-6 of the largest", rank, half.singular_values.size()));
  }
  add("solved by",
      fmt::format("{}, {} iteration{}", half.method, half.iterations, half.iterations == 1 ? "" : "s"));
  return facts;
}

constexpr std::size_t most_support_rows = 200;

Table support_table(const SolutionHalf& half) {
  Table table;
  table.title = "Support tokens: the constraints that hold with equality";
  table.columns = {{"sequence"}, {"query"}, {"token"}, {"multiplier"}};
  for (std::size_t k = 0; k < std::min(half.support.size(), most_support_rows); ++k) {
    const SupportToken& one = half.support[k];
    table.rows.push_back({fmt::format("{}", one.origin.sequence), fmt::format("{}", one.origin.query),
                          fmt::format("{}", one.origin.token), fmt::format("{:.6g}", one.multiplier)});
  }
  return table;
}

Table solutions_table(const std::vector<ReportedSolution>& solutions) {
  Table table;
  table.title = "Norms, gaps and support tokens";
  table.columns = {
      {"file", Align::left}, {"problem", Align::left}, {"norm", Align::left}, {"its value"}, {"gap"},
      {"support tokens"},    {"status", Align::left}};
  for (const ReportedSolution& one : solutions) {
    const SolutionHalf& half = one.summary.solution;
    table.rows.push_back({one.name, one.summary.problem, one.summary.kind, nine_digits(half.norm),
                          gap_digits(half.gap), fmt::format("{}", half.support.size()),
                          whole_status(one.summary)});
  }
  return table;
}

Tone solution_tone(const std::string& status) {
  return status == "certified" ? Tone::good : status == "infeasible" ? Tone::bad : Tone::caution;
}

Section section_of(const ReportedSolution& solution, const std::string& id, bool several) {
  const SolutionSummary& summary = solution.summary;
  Section section{.id = id,
                  .title = "Max-margin solution " + solution.name,
                  .badge = whole_status(summary),
                  .badge_tone = solution_tone(whole_status(summary)),
                  .blocks = {}};
  if (several) section.blocks.push_back(Paragraph{solution_conclusion(summary)});
  section.blocks.push_back(half_facts(summary.finite ? "Direction" : "Solution", summary, summary.solution));
  if (summary.finite) {
    section.blocks.push_back(half_facts("Finite part", summary, *summary.finite));
    if (summary.R) section.blocks.push_back(Paragraph{fmt::format("R = {}.", nine_digits(*summary.R))});
  }
  if (!summary.finite)
    section.blocks.push_back(Paragraph{fmt::format(
        "The file holds both halves of the certificate. `attmirror margin DATA --check {}` verifies it against the data, "
        "whose fingerprint is {:016x}.",
        solution.file.filename().string(), summary.data_fingerprint)});
  if (!summary.solution.support.empty()) {
    Folded folded{"Support tokens",
                  {TableBlock{.id = id + "-support", .table = support_table(summary.solution)}}};
    if (summary.solution.support.size() > most_support_rows)
      folded.blocks.push_back(Paragraph{fmt::format("The {} with the largest multipliers of {}.",
                                                    most_support_rows, summary.solution.support.size())});
    section.blocks.push_back(std::move(folded));
  }
  return section;
}

}  // namespace

PagePart solution_sections(const std::vector<fs::path>& files) {
  const std::vector<std::string> names = short_names(files);
  std::vector<ReportedSolution> solutions;
  for (std::size_t r = 0; r < files.size(); ++r)
    solutions.push_back({names[r], files[r], summarize_solution(load_npz(files[r]), files[r].string())});
  std::vector<Section> sections;
  if (solutions.size() > 1) {
    TableBlock all{.id = "solutions", .table = solutions_table(solutions)};
    for (const ReportedSolution& one : solutions)
      all.tones.push_back(solution_tone(whole_status(one.summary)));
    all.tone_column = 6;
    all.legend = {
        {Tone::good, "proved optimal"}, {Tone::bad, "proved infeasible"}, {Tone::caution, "not decided"}};
    sections.push_back(
        Section{.id = "solutions", .title = "Max-margin solutions", .blocks = {std::move(all)}});
  }
  for (std::size_t r = 0; r < solutions.size(); ++r)
    sections.push_back(section_of(solutions[r], fmt::format("solution-{}", r + 1), solutions.size() > 1));
  if (solutions.size() == 1) return {solution_conclusion(solutions.front().summary), std::move(sections)};
  std::string open;
  std::size_t certified = 0;
  for (const ReportedSolution& one : solutions)
    if (const std::string status = whole_status(one.summary); status == "certified")
      ++certified;
    else
      open += fmt::format("{}{} ({})", open.empty() ? "" : ", ", one.name, status);
  return {open.empty() ? fmt::format("All {} max-margin solutions are proved optimal.", solutions.size())
                       : fmt::format("{} of {} max-margin solutions are proved optimal; the others are {}.",
                                     certified, solutions.size(), open),
          std::move(sections)};
}

}  // namespace attmirror

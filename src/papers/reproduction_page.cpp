// The page of a reproduction: an overview of all experiments, then a section for each: what was done, published beside
// ours, figures, tables, the configuration, and the command that makes it again.
#include <attmirror/base/build_info.hpp>
#include <attmirror/papers/reproduce.hpp>

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace attmirror {

namespace {

Tone tone_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::reproduced:
      return Tone::good;
    case Verdict::artefact:
      return Tone::caution;
    case Verdict::differs:
      return Tone::bad;
    case Verdict::unpublished:
      return Tone::neutral;
  }
  return Tone::none;
}

Tone tone_of(const ExperimentReport& report) {
  if (report.outcome == ExperimentOutcome::out_of_scope) return Tone::neutral;
  if (report.outcome != ExperimentOutcome::done || report.count(Verdict::differs) > 0) return Tone::bad;
  if (report.count(Verdict::artefact) > 0) return Tone::caution;
  return report.count(Verdict::reproduced) > 0 ? Tone::good : Tone::neutral;
}

// "12 reproduced, 1 artefact"
std::string verdict_text(const ExperimentReport& report) {
  if (report.outcome != ExperimentOutcome::done) return std::string(to_string(report.outcome));
  std::string text;
  for (const Verdict verdict :
       {Verdict::reproduced, Verdict::artefact, Verdict::differs, Verdict::unpublished})
    if (const std::ptrdiff_t count = report.count(verdict); count > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, to_string(verdict));
  return text;
}

std::string command_of(const ExperimentReport& report) {
  return fmt::format("attmirror reproduce {}{} -o out/", report.info.id,
                     report.extent == Extent::quick ? " --quick" : "");
}

Section section_of(const ExperimentReport& report) {
  const ExperimentInfo& info = report.info;
  Section section;
  section.id = info.id;
  section.title = fmt::format("{}: {}", info.paper == "ours" ? "Beyond the papers" : info.paper, info.title);
  section.badge = verdict_text(report);
  section.badge_tone = tone_of(report);
  section.blocks.push_back(Paragraph{fmt::format("{} ({})", info.summary, info.item)});
  if (!info.out_of_scope.empty()) section.blocks.push_back(Paragraph{info.out_of_scope});
  if (!report.error.empty()) section.blocks.push_back(Paragraph{"It failed: " + report.error});
  const ExperimentResult& result = report.result;
  for (const std::string& remark : result.remarks) section.blocks.push_back(Paragraph{remark});
  for (Figure figure : result.figures) {
    figure.id = fmt::format("{}-{}", info.id, figure.id);
    section.blocks.push_back(std::move(figure));
  }
  if (!result.findings.empty()) {
    TableBlock block{.id = info.id + "-findings",
                     .table = findings_table("Published and ours", result.findings)};
    for (const Finding& finding : result.findings) block.tones.push_back(tone_of(judge(finding)));
    block.tone_column = 5;
    section.blocks.push_back(std::move(block));
  }
  for (const NamedTable& named : result.tables)
    section.blocks.push_back(TableBlock{.id = fmt::format("{}-{}", info.id, named.id), .table = named.table});
  if (report.outcome == ExperimentOutcome::done) {
    Facts facts{.title = "Configuration", .entries = result.configuration};
    facts.entries.emplace_back("extent", to_string(report.extent));
    facts.entries.emplace_back("seconds", fmt::format("{:.2f}", report.seconds));
    facts.entries.emplace_back(
        "made by", fmt::format("attmirror {} ({}), {}", report.version, report.commit, report.isa));
    section.blocks.push_back(Folded{.title = "Configuration and seeds", .blocks = {std::move(facts)}});
    section.blocks.push_back(CodeBlock{command_of(report)});
  }
  return section;
}

constexpr std::array verdicts{Verdict::reproduced, Verdict::artefact, Verdict::differs};

// What was compared with what, and how it came out.
Table sources_table(const std::vector<ExperimentReport>& reports) {
  Table table;
  table.title = "What ours is compared with";
  table.columns = {{"source", Align::left}, {"reproduced"}, {"artefact"}, {"differs"}};
  const std::pair<ReferenceSource, const char*> sources[] = {
      {ReferenceSource::figure, "a published figure"},
      {ReferenceSource::printed, "printed by the paper or its code"},
      {ReferenceSource::recomputed, "recomputed by independent code"},
      {ReferenceSource::theory, "a theorem or closed form"}};
  for (const auto& named : sources) {
    std::vector<std::string> row{named.second};
    for (const Verdict verdict : verdicts) {
      std::ptrdiff_t count = 0;
      for (const ExperimentReport& report : reports)
        count += std::ranges::count_if(report.result.findings, [&](const Finding& finding) {
          return finding.source == named.first && judge(finding) == verdict;
        });
      row.push_back(std::to_string(count));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Section overview(const std::vector<ExperimentReport>& reports) {
  Section section{.id = "overview", .title = "Overview", .blocks = {}};
  section.blocks.push_back(Paragraph{verdict_summary(reports)});
  section.blocks.push_back(Paragraph{
      "A number is reproduced if ours is within the tolerance that its row states. It is an artefact if it "
      "is "
      "not, and the original's own procedure, repeated here with its defect, does give that number; "
      "where the source is a recomputation, the defect is the recomputation's. The column "
      "source says what ours is compared with: a number read off a published figure, one printed by the "
      "paper or "
      "its code, one that independent code recomputed from the published settings (where the paper has "
      "none), or "
      "what a theorem states."});
  TableBlock block{.id = "overview-table", .table = overview_table(reports)};
  for (const ExperimentReport& report : reports) block.tones.push_back(tone_of(report));
  block.tone_column = 3;
  section.blocks.push_back(std::move(block));
  section.blocks.push_back(TableBlock{.id = "sources-table", .table = sources_table(reports)});
  return section;
}

}  // namespace

std::string verdict_summary(const std::vector<ExperimentReport>& reports) {
  std::ptrdiff_t counts[4] = {};
  for (const ExperimentReport& report : reports)
    for (const Finding& finding : report.result.findings) ++counts[static_cast<int>(judge(finding))];
  return fmt::format("{} numbers compared: {} reproduced, {} artefact{}, {} differ{}; {} new.",
                     counts[0] + counts[1] + counts[2], counts[0], counts[1], counts[1] == 1 ? "" : "s",
                     counts[2], counts[2] == 1 ? "s" : "", counts[3]);
}

Table overview_table(const std::vector<ExperimentReport>& reports) {
  Table table;
  table.title = "Experiments";
  table.columns = {{"experiment", Align::left},
                   {"paper", Align::left},
                   {"what", Align::left},
                   {"verdicts", Align::left},
                   {"seconds"}};
  for (const ExperimentReport& report : reports)
    table.rows.push_back(
        {report.info.id, report.info.paper, report.info.title, verdict_text(report),
         report.outcome == ExperimentOutcome::out_of_scope ? "–" : fmt::format("{:.2f}", report.seconds)});
  return table;
}

Table findings_table(const std::vector<ExperimentReport>& reports) {
  Table table = findings_table(std::string(), {});
  table.columns.insert(table.columns.begin(), Column{"experiment", Align::left});
  for (const ExperimentReport& report : reports)
    for (const Finding& finding : report.result.findings) {
      table.rows.push_back(finding_cells(finding));
      table.rows.back().insert(table.rows.back().begin(), report.info.id);
    }
  return table;
}

Page make_page(const std::vector<ExperimentReport>& reports) {
  Page page;
  page.title = reproduction_title;
  const bool quick =
      std::ranges::any_of(reports, [](const auto& report) { return report.extent == Extent::quick; });
  page.subtitle =
      "Published numbers beside ours, each with a verdict that follows from a stated tolerance; every "
      "max-margin "
      "solution certified.";
  if (quick) page.subtitle += " This is the quick version, with fewer seeds.";
  page.sections.push_back(overview(reports));
  for (const ExperimentReport& report : reports) page.sections.push_back(section_of(report));
  page.sections.push_back(Section{
      .id = "papers",
      .title = "The papers",
      .blocks = {
          Paragraph{"P1: [Optimizing Attention with Mirror Descent: Generalized Max-Margin Token "
                    "Selection](https://arxiv.org/abs/2410.14581)"},
          Paragraph{"P2: [Max-Margin Token Selection in Attention "
                    "Mechanism](https://arxiv.org/abs/2306.13596)"},
          Paragraph{"P3: [Transformers as Support Vector Machines](https://arxiv.org/abs/2308.16898)"}}});
  page.footer = fmt::format("attmirror {} ({})", version(), commit());
  return page;
}

}  // namespace attmirror

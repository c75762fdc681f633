// The page of a reproduction: an overview of all experiments, then a section for each: what was done, published beside
// ours, figures, tables, the configuration, and the command that makes it again.
#include "report/short_numbers.hpp"
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
    case Verdict::inconclusive:
      return Tone::open;
  }
  return Tone::none;
}

Tone tone_of(const ExperimentReport& report) {
  if (report.outcome == ExperimentOutcome::out_of_scope) return Tone::neutral;
  if (report.outcome != ExperimentOutcome::done || report.count(Verdict::differs) > 0) return Tone::bad;
  if (report.count(Verdict::artefact) > 0) return Tone::caution;
  if (report.count(Verdict::inconclusive) > 0) return Tone::open;
  return report.count(Verdict::reproduced) > 0 ? Tone::good : Tone::neutral;
}

// What a reader must see first comes first.
constexpr std::array by_urgency{Verdict::differs, Verdict::artefact, Verdict::inconclusive,
                                Verdict::reproduced, Verdict::unpublished};

std::ptrdiff_t urgency(Verdict verdict) {
  return std::ranges::find(by_urgency, verdict) - by_urgency.begin();
}

// 0 for the worst: failed, then by its most urgent verdict.
std::ptrdiff_t urgency(const ExperimentReport& report) {
  if (report.outcome == ExperimentOutcome::out_of_scope) return std::ssize(by_urgency) + 1;
  if (report.outcome != ExperimentOutcome::done) return 0;
  const auto found =
      std::ranges::find_if(by_urgency, [&](Verdict verdict) { return report.count(verdict) > 0; });
  return found - by_urgency.begin() + 1;
}

const std::vector<std::pair<Tone, std::string>>& verdict_legend() {
  static const std::vector<std::pair<Tone, std::string>> all{
      {Tone::bad, "differs: ours is outside the tolerance of the row"},
      {Tone::caution,
       "artefact of the original: ours is outside the tolerance, but the original procedure, repeated here with "
       "its defect, gives the published number"},
      {Tone::open, "inconclusive: the sample behind ours is too small to tell"},
      {Tone::good, "reproduced: ours is within the tolerance of the row"},
      {Tone::neutral, "new: nothing was published to compare with"}};
  return all;
}

std::string artefacts_text(std::ptrdiff_t count) {
  return fmt::format("{} artefact{}", count, count == 1 ? "" : "s");
}

// "12 reproduced, 1 artefact"
std::string verdict_text(const ExperimentReport& report) {
  if (report.outcome != ExperimentOutcome::done) return std::string(to_string(report.outcome));
  std::string text;
  for (const Verdict verdict : by_urgency)
    if (const std::ptrdiff_t count = report.count(verdict); count > 0)
      text += fmt::format(
          "{}{}", text.empty() ? "" : ", ",
          verdict == Verdict::artefact
              ? artefacts_text(count)
              : fmt::format("{} {}", count,
                            verdict == Verdict::differs && count > 1 ? "differ" : to_string(verdict)));
  return text;
}

// What was sampled, and what that means for a quick version.
std::string sample_text(const ExperimentReport& report) {
  const std::string& sample = report.result.sample;
  if (!report.is_quick_version()) return sample.empty() ? sample : fmt::format("Sample: {}.", sample);
  if (sample.empty()) return "Nothing here is random: the quick version is the full one.";
  return fmt::format(
      "Smoke test: this quick version ran with {}. It shows that the experiment works; for the numbers run the full "
      "version.",
      sample);
}

struct Counts {
  std::ptrdiff_t reproduced = 0, artefact = 0, differs = 0, unpublished = 0, inconclusive = 0;
  std::ptrdiff_t compared() const { return reproduced + artefact + differs + inconclusive; }
};

Counts counts_of(const std::vector<ExperimentReport>& reports) {
  Counts counts;
  for (const ExperimentReport& report : reports) {
    counts.reproduced += report.count(Verdict::reproduced);
    counts.artefact += report.count(Verdict::artefact);
    counts.differs += report.count(Verdict::differs);
    counts.unpublished += report.count(Verdict::unpublished);
    counts.inconclusive += report.count(Verdict::inconclusive);
  }
  return counts;
}

// "669 of 711 known numbers are reproduced; 2 differ, ..."
std::string counts_sentence(const Counts& counts) {
  if (counts.compared() == 0)
    return fmt::format("Nothing was published to compare with: {} number{} new.", counts.unpublished,
                       counts.unpublished == 1 ? " is" : "s are");
  if (counts.reproduced == counts.compared())
    return counts.compared() == 1
               ? "The one number to compare with is reproduced."
               : fmt::format("All {} numbers to compare with are reproduced.", counts.compared());
  std::vector<std::string> rest;
  if (counts.differs > 0)
    rest.push_back(fmt::format("{} differ{}", counts.differs, counts.differs == 1 ? "s" : ""));
  if (counts.artefact > 0)
    rest.push_back(fmt::format("{} {} of the original, whose procedure gives {} when its defect is repeated",
                               counts.artefact, counts.artefact == 1 ? "is an artefact" : "are artefacts",
                               counts.artefact == 1 ? "the published number" : "the published numbers"));
  if (counts.inconclusive > 0)
    rest.push_back(fmt::format("{} cannot be decided by a sample of this size", counts.inconclusive));
  std::string text = fmt::format("{} of {} numbers {} reproduced", counts.reproduced, counts.compared(),
                                 counts.reproduced == 1 ? "is" : "are");
  for (std::size_t i = 0; i < rest.size(); ++i)
    text += (i == 0 ? "; " : i + 1 == rest.size() ? ", and " : ", ") + rest[i];
  return text + ".";
}

std::string page_conclusion(const std::vector<ExperimentReport>& reports) {
  const std::string counts = counts_sentence(counts_of(reports));
  if (reports.size() == 1 && !reports.front().result.conclusion.empty())
    return reports.front().result.conclusion;
  return counts;
}

std::string command_of(const ExperimentReport& report) {
  return fmt::format("attmirror reproduce {}{} -o out/", report.info.id,
                     report.is_quick_version() ? " --quick" : "");
}

Section section_of(const ExperimentReport& report) {
  const ExperimentInfo& info = report.info;
  Section section;
  section.id = info.id;
  section.title = fmt::format("{}: {}", info.paper == "ours" ? "Beyond the papers" : info.paper, info.title);
  section.badge = verdict_text(report);
  section.badge_tone = tone_of(report);
  const ExperimentResult& result = report.result;
  if (!result.conclusion.empty()) section.blocks.push_back(Paragraph{result.conclusion});
  for (const std::string& detail : result.details) section.blocks.push_back(Paragraph{detail});
  section.blocks.push_back(Paragraph{fmt::format("{} ({})", info.summary, info.item)});
  if (!info.out_of_scope.empty())
    section.blocks.push_back(Paragraph{fmt::format("Out of scope: {}.", info.out_of_scope)});
  if (!report.error.empty()) section.blocks.push_back(Paragraph{"The experiment failed: " + report.error});
  if (report.outcome == ExperimentOutcome::done)
    if (const std::string sample = sample_text(report); !sample.empty())
      section.blocks.push_back(Paragraph{sample});
  for (Figure figure : result.figures) {
    figure.id = fmt::format("{}-{}", info.id, figure.id);
    section.blocks.push_back(std::move(figure));
  }
  if (!result.findings.empty()) {
    std::vector<Finding> findings = result.findings;
    std::ranges::stable_sort(findings, {}, [](const Finding& finding) { return urgency(judge(finding)); });
    TableBlock block{.id = info.id + "-findings",
                     .table = findings_table("Published numbers and ours", findings),
                     .tones = {},
                     .tone_column = verdict_cell,
                     .legend = verdict_legend(),
                     .cards = true};
    for (const Finding& finding : findings) block.tones.push_back(tone_of(judge(finding)));
    section.blocks.push_back(std::move(block));
  }
  for (const std::string& remark : result.remarks) section.blocks.push_back(Paragraph{remark});
  for (const NamedTable& named : result.tables)
    section.blocks.push_back(TableBlock{.id = fmt::format("{}-{}", info.id, named.id), .table = named.table});
  if (report.outcome == ExperimentOutcome::done) {
    Facts facts{.title = "Configuration", .entries = result.configuration};
    for (auto& [name, value] : facts.entries) value = with_short_numbers(value);
    facts.entries.emplace_back("extent", to_string(report.extent));
    facts.entries.emplace_back("seconds", fmt::format("{:.2f}", report.seconds));
    facts.entries.emplace_back(
        "made by", fmt::format("attmirror {} ({}), {}", report.version, report.commit, report.isa));
    section.blocks.push_back(Folded{.title = "Configuration and seeds", .blocks = {std::move(facts)}});
    section.blocks.push_back(CodeBlock{command_of(report)});
  }
  return section;
}

constexpr std::array verdicts{Verdict::reproduced, Verdict::inconclusive, Verdict::artefact,
                              Verdict::differs};

// What was compared with what, and how it came out.
Table sources_table(const std::vector<ExperimentReport>& reports) {
  Table table;
  table.title = "What our numbers are compared with";
  table.columns = {{"source", Align::left}, {"reproduced"}, {"inconclusive"}, {"artefact"}, {"differs"}};
  const std::pair<ReferenceSource, const char*> named_sources[] = {
      {ReferenceSource::figure, "figure: read off a published figure"},
      {ReferenceSource::printed, "printed: by the paper or its code"},
      {ReferenceSource::recomputed,
       "recomputed: by independent NumPy and PyTorch code from the published settings"},
      {ReferenceSource::theory, "theory: a theorem or a closed form"}};
  for (const auto& named : named_sources) {
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
  std::vector<ExperimentReport> sorted = reports;
  std::ranges::stable_sort(sorted, {}, [](const ExperimentReport& report) { return urgency(report); });
  section.blocks.push_back(Paragraph{
      "Every row of a table states its tolerance, and its verdict follows from that tolerance alone. Experiments and "
      "rows with something to look at come first."});
  TableBlock block{.id = "overview-table",
                   .table = overview_table(sorted),
                   .tones = {},
                   .tone_column = 3,
                   .legend = verdict_legend(),
                   .cards = true};
  // On a screen there is no room for it.
  block.table.columns.push_back({"sample", Align::left});
  for (std::size_t r = 0; r < sorted.size(); ++r) {
    block.table.rows[r].push_back(sorted[r].result.sample);
    block.tones.push_back(tone_of(sorted[r]));
  }
  section.blocks.push_back(std::move(block));
  section.blocks.push_back(Paragraph{
      "An artefact of a recomputed number is a defect of the recomputation. What a sample of runs cannot decide is "
      "inconclusive: where the tolerance counts standard errors, if three of them are more than half of the published "
      "number (for a share, more than 0.2); otherwise, if ours ± 2 standard errors is partly inside and partly outside "
      "the tolerance."});
  section.blocks.push_back(TableBlock{.id = "sources-table", .table = sources_table(reports)});
  return section;
}

}  // namespace

std::string verdict_summary(const std::vector<ExperimentReport>& reports) {
  const Counts counts = counts_of(reports);
  return fmt::format("{} numbers compared: {} reproduced, {} inconclusive, {}, {} differ{}; {} new.",
                     counts.compared(), counts.reproduced, counts.inconclusive,
                     artefacts_text(counts.artefact), counts.differs, counts.differs == 1 ? "s" : "",
                     counts.unpublished);
}

Table overview_table(const std::vector<ExperimentReport>& reports) {
  Table table;
  table.title = "Experiments";
  table.columns = {{"experiment", Align::left},
                   {"paper", Align::left},
                   {"question", Align::left},
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
  const bool quick = std::ranges::any_of(reports, &ExperimentReport::is_quick_version);
  page.subtitle =
      "Published numbers beside ours, each with a verdict that follows from a stated tolerance. Every max-margin "
      "solution is certified.";
  if (quick)
    page.subtitle +=
        " This is the quick version, a smoke test with few seeds; each section says how many it had.";
  page.conclusion = page_conclusion(reports);
  page.sections.push_back(overview(reports));
  for (const ExperimentReport& report : reports) page.sections.push_back(section_of(report));
  page.footer = fmt::format("attmirror {} ({})", version(), commit());
  return page;
}

}  // namespace attmirror

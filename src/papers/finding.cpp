#include <attmirror/papers/finding.hpp>

#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

bool within(const Finding& finding, double value, double error) {
  const double published = *finding.published, slack = finding.tolerance.value, reading = finding.reading;
  const double distance = std::abs(value - published);
  switch (finding.tolerance.kind) {
    case Tolerance::Kind::absolute:
      return distance <= slack + reading;
    case Tolerance::Kind::relative:
      return distance <= slack * std::abs(published) + reading;
    case Tolerance::Kind::standard_errors:
      return distance <= slack * std::hypot(error, finding.published_error) + reading;
    case Tolerance::Kind::at_least:
      return value >= published - slack - reading;
    case Tolerance::Kind::at_most:
      return value <= published + slack + reading;
  }
  return false;
}

// Whether three standard errors of a sample are less than the deviation that it must be able to detect.
bool resolves(const Finding& finding, double error) {
  const double wanted = finding.resolution > 0 ? finding.resolution : std::abs(*finding.published) / 2;
  return error == 0 || 3 * error < wanted;
}

// Whether the sample behind `value` is too small to say on which side of the tolerance the truth is.
bool undecided(const Finding& finding, double value, double error) {
  if (!(error > 0) || !std::isfinite(value)) return false;
  const bool inside = within(finding, value, error);
  if (finding.tolerance.kind == Tolerance::Kind::standard_errors) return inside && !resolves(finding, error);
  return within(finding, value - 2 * error, error) != inside ||
         within(finding, value + 2 * error, error) != inside;
}

std::string number(double value, int digits) {
  return std::isnan(value) ? "–" : fmt::format("{:.{}g}", value, digits);
}

// " ± 0.054" with two digits; " ± 341", not " ± 3.4e+02".
std::string error_text(double error) {
  return error < 99.5 ? fmt::format(" ± {:.2g}", error) : fmt::format(" ± {:.0f}", error);
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::reproduced:
      return "reproduced";
    case Verdict::artefact:
      return "artefact";
    case Verdict::differs:
      return "differs";
    case Verdict::unpublished:
      return "new";
    case Verdict::inconclusive:
      return "inconclusive";
  }
  return "?";
}

std::string_view to_string(ReferenceSource source) {
  switch (source) {
    case ReferenceSource::figure:
      return "figure";
    case ReferenceSource::printed:
      return "printed";
    case ReferenceSource::recomputed:
      return "recomputed";
    case ReferenceSource::theory:
      return "theory";
  }
  return "?";
}

Verdict judge(const Finding& finding) {
  if (finding.published_text)
    return finding.ours_text == *finding.published_text ? Verdict::reproduced : Verdict::differs;
  if (!finding.published) return Verdict::unpublished;
  if (undecided(finding, finding.ours, finding.standard_error)) return Verdict::inconclusive;
  if (within(finding, finding.ours, finding.standard_error)) return Verdict::reproduced;
  if (finding.imitated && undecided(finding, *finding.imitated, finding.imitated_error))
    return Verdict::inconclusive;
  if (finding.imitated && within(finding, *finding.imitated, finding.imitated_error))
    return Verdict::artefact;
  return Verdict::differs;
}

std::string tolerance_text(const Finding& finding) {
  if (finding.published_text) return "equal";
  if (!finding.published) return "";
  const double value = finding.tolerance.value;
  std::string text;
  switch (finding.tolerance.kind) {
    case Tolerance::Kind::absolute:
      text = fmt::format("± {:.2g}", value + finding.reading);
      return text;
    case Tolerance::Kind::relative:
      text = fmt::format("± {:.2g} %", 100 * value);
      break;
    case Tolerance::Kind::standard_errors:
      text = fmt::format("{:.2g} standard errors", value);
      break;
    case Tolerance::Kind::at_least:
      return fmt::format("at least {}", number(*finding.published - value - finding.reading, finding.digits));
    case Tolerance::Kind::at_most:
      return fmt::format("at most {}", number(*finding.published + value + finding.reading, finding.digits));
  }
  if (finding.reading > 0) text += fmt::format(" + {:.2g}", finding.reading);
  return text;
}

std::vector<std::string> finding_cells(const Finding& finding) {
  std::string published = finding.published_text ? *finding.published_text
                          : finding.published    ? number(*finding.published, finding.digits)
                                                 : "–";
  if (finding.published && finding.published_error > 0) published += error_text(finding.published_error);
  std::string ours = finding.ours_text.empty() ? number(finding.ours, finding.digits) : finding.ours_text;
  if (finding.standard_error > 0) ours += error_text(finding.standard_error);
  std::string note = finding.note;
  if (finding.imitated)
    note = fmt::format("the original procedure gives {}{}{}{}", number(*finding.imitated, finding.digits),
                       finding.imitated_error > 0 ? error_text(finding.imitated_error) : "",
                       note.empty() ? "" : ": ", note);
  return {finding.quantity,
          published,
          finding.published || finding.published_text ? std::string(to_string(finding.source)) : "",
          ours,
          tolerance_text(finding),
          std::string(to_string(judge(finding))),
          note};
}

Table findings_table(const std::string& title, const std::vector<Finding>& findings) {
  Table table;
  table.title = title;
  table.columns = {
      {"quantity", Align::left}, {"published"},        {"source", Align::left}, {"ours"}, {"tolerance"},
      {"verdict", Align::left},  {"note", Align::left}};
  for (const Finding& finding : findings) table.rows.push_back(finding_cells(finding));
  return table;
}

}  // namespace attmirror

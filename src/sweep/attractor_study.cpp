#include "sweep/attractor_study.hpp"

#include "descent/data_scale.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

constexpr std::size_t shown_numbers = 12;  // of a list in a cell

std::string list_text(const std::vector<std::int64_t>& numbers) {
  if (numbers.size() <= shown_numbers) return fmt::format("{}", fmt::join(numbers, " "));
  return fmt::format("{} ...", fmt::join(numbers.begin(), numbers.begin() + shown_numbers, " "));
}

std::string plural(std::int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

// Six digits that show how close to 1 it is; a mark where the descent left the attractor.
std::string confirmation_text(const Confirmation& one) {
  if (!one.finished) return "–";
  return fmt::format("{:.6f}{}", one.correlation, one.stayed ? "" : " left");
}

std::string list_note(const AttractorStudy& study) {
  const Attractors& found = study.found;
  std::string text;
  if (found.complete)
    text = fmt::format("All {} choices of tokens were examined: there are no {}attractors{}.",
                       static_cast<std::int64_t>(found.candidates), found.list.empty() ? "" : "other ",
                       found.norm == Norm::nuclear() ? " of least nuclear norm" : "");
  else if (static_cast<double>(found.examined) >= found.candidates)
    text = fmt::format("All {} choices of tokens were examined.", found.examined);
  else
    text = fmt::format("{} of {:.4g} choices of tokens were examined: there may be other attractors.",
                       found.examined, found.candidates);
  if (found.undecided > 0)
    text += fmt::format(
        " {} undecided: a deficit is 1 to rounding, or a problem was not solved to its tolerance.",
        found.undecided == 1 ? "One is" : fmt::format("{} are", found.undecided));
  if (found.count(AttractorKind::whole) == 0) text += " No weights were found that select all best tokens.";
  return text;
}

std::string starts_note(const AttractorStudy& study) {
  const StartShares& shares = study.shares;
  std::string text = fmt::format(
      "Of {} with entries N(0, {:.3g}^2), normalized descent ends {} on the whole attractor and {} on partial ones",
      plural(shares.starts, "random start", "random starts"), study.start_std,
      plural(shares.total(study.found, AttractorKind::whole), "time", "times"),
      plural(shares.total(study.found, AttractorKind::partial), "time", "times"));
  if (shares.elsewhere > 0)
    text += fmt::format("; {} still on tokens of no attractor",
                        shares.elsewhere == 1 ? "one is" : fmt::format("{} are", shares.elsewhere));
  if (shares.undecided > 0) text += fmt::format("; the attention of {} is not decided", shares.undecided);
  return text + ".";
}

std::string condition_note(const GlobalCondition& condition) {
  if (condition.holds())
    return "No two sequences compete, so gradient flow selects the best tokens from every start.";
  if (!condition.applies) return "The condition that no two sequences compete is about W and prompts.";
  if (!condition.equal_scores || !condition.unique_best)
    return "Scores of tokens other than the best differ, so no condition excludes partial attractors in advance.";
  if (!condition.feasible) return "No weights select the best token of every sequence.";
  return fmt::format(
      "Sequences {} and {} compete (cosine {:.3f}): what favors the best token of one counts against that of the other.",
      condition.first.sequence, condition.second.sequence, condition.least_cosine);
}

}  // namespace

const Fields<AttractorSettings>& attractor_fields() {
  using S = AttractorSettings;
  static const Fields<S> fields{
      field<&S::p>(
          {.name = "p",
           .help =
               "geometry of mirror descent, 1 < p < infinity; 2 is gradient descent, and KQ takes no other",
           .range = Range::above(1)}),
      field<&S::starts>({.name = "starts",
                         .help = "random starts to train from, for the share of each attractor; 0: none",
                         .range = Range::from(0)}),
      field<&S::start_std>({.name = "start_std",
                            .help = "standard deviation of their entries; 0: such that a typical logit is 1",
                            .range = Range::from(0),
                            .shown_default = "by the data's scale"}),
      field<&S::seed>({.name = "seed", .help = "seed of the first start, and of the directions of a search"}),
      field<&S::max_candidates>(
          {.name = "max_candidates",
           .help = "up to so many choices of tokens are all examined; more are searched",
           .range = Range::from(0)}),
      field<&S::search_starts>({.name = "search_starts",
                                .help = "random directions from which to search",
                                .range = Range::from(0)}),
      field<&S::confirm>(
          {.name = "confirm",
           .help = "start plain and normalized descent and the flow to time 1e300 near each attractor",
           .opposite = "no-confirm"}),
  };
  return fields;
}

AttractorStudy study_attractors(const Attention& model, const AttractorSettings& settings,
                                const MarginWork& work) {
  check_ranges(attractor_fields(), settings);
  AttractorStudy study;
  study.condition = global_condition(model);
  study.start_std = settings.start_std > 0 ? settings.start_std : start_deviation(model);
  // The trainings take most of the time.
  const auto part = [&work](double from, double to) {
    MarginWork one = work;
    if (work.on_progress)
      one.on_progress = [&work, from, to](double share) { work.on_progress(from + share * (to - from)); };
    return one;
  };
  study.found = attractors(model, {.p = settings.p,
                                   .max_candidates = settings.max_candidates,
                                   .search_starts = settings.search_starts,
                                   .seed = settings.seed,
                                   .work = part(0, 0.2)});
  study.interrupted = study.found.interrupted;
  if (!study.interrupted && settings.starts > 0) {
    study.shares = train_starts(
        model, study.found,
        {.starts = settings.starts, .std = study.start_std, .seed = settings.seed, .work = part(0.2, 0.7)});
    study.interrupted = study.shares.interrupted;
  }
  if (!study.interrupted && settings.confirm) {
    study.checks = confirm_attractors(model, study.found, part(0.7, 1));
    study.interrupted = work.stop.requested();
  }
  return study;
}

Table attractor_table(const AttractorStudy& study) {
  Table table{.columns = {{"attractor", Align::left},
                          {"tokens", Align::left},
                          {"S", Align::left},
                          {"norm"},
                          {"deficit"},
                          {"gap"}}};
  const bool started = study.shares.starts > 0, checked = !study.checks.empty();
  if (started) table.columns.push_back({"starts"});
  if (checked)
    std::ranges::copy(std::vector<Column>{{"plain"}, {"normalized"}, {"flow"}},
                      std::back_inserter(table.columns));
  for (std::size_t k = 0; k < study.found.list.size(); ++k) {
    const Attractor& one = study.found.list[k];
    const bool whole = one.kind == AttractorKind::whole;
    std::vector<std::string> row{std::string(to_string(one.kind)),
                                 list_text(one.tokens.tokens),
                                 whole ? "all" : list_text(one.held),
                                 fmt::format("{:.6g}", one.solution.norm),
                                 whole ? "–" : fmt::format("{:.6g}", one.certificate.least_deficit),
                                 fmt::format("{:.1e}", std::abs(one.certificate.margin.gap))};
    if (row[2].empty()) row[2] = "none";
    if (started) row.push_back(fmt::format("{}", study.shares.counts[k]));
    if (checked)
      for (const Confirmation& descent :
           {study.checks[k].plain, study.checks[k].normalized, study.checks[k].flow})
        row.push_back(confirmation_text(descent));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string attractor_conclusion(const AttractorStudy& study) {
  const std::int64_t partial = study.found.count(AttractorKind::partial);
  const bool whole = study.found.count(AttractorKind::whole) > 0;
  const std::string where =
      study.shares.starts == 0
          ? std::string()
          : fmt::format(", where {:.3g} % of random starts end",
                        100.0 * static_cast<double>(study.shares.total(study.found, AttractorKind::partial)) /
                            static_cast<double>(study.shares.starts));
  if (partial == 0 && whole)
    return study.found.complete ? "The only attractor is whole: none leads training to wrong tokens."
                                : "No partial attractor was found.";
  if (partial == 0) return "No attractor was found.";
  return fmt::format("Training can end on wrong tokens: there {} {}{}{}.", partial == 1 ? "is" : "are",
                     study.found.complete ? "" : "at least ",
                     plural(partial, "partial attractor", "partial attractors"), where);
}

std::vector<std::string> attractor_notes(const AttractorStudy& study) {
  std::vector<std::string> notes{list_note(study)};
  if (study.shares.starts > 0) notes.push_back(starts_note(study));
  if (!study.checks.empty()) {
    const auto holding = std::ranges::count_if(study.checks, &AttractorCheck::holds);
    notes.push_back(fmt::format(
        "Descent that starts near an attractor stays there for {} of {}: plain and normalized descent, and the flow to time 1e300; the numbers are correlations with its direction.",
        holding, study.checks.size()));
  }
  notes.push_back(condition_note(study.condition));
  return notes;
}

}  // namespace attmirror

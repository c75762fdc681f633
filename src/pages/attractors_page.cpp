#include "pages/attractors_page.hpp"

#include <attmirror/base/build_info.hpp>
#include <attmirror/base/figure.hpp>
#include <attmirror/data/selection.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

// Do attractors with larger margins have more starts? One point for each.
Figure starts_figure(const AttractorStudy& study) {
  Figure figure{.id = "starts",
                .title = "How many random starts end on each attractor",
                .x = {.label = "margin of the attractor, 1 / ‖W‖"},
                .y = {.label = "share of random starts", .range = {{0, 1.02}}}};
  for (const AttractorKind kind : {AttractorKind::whole, AttractorKind::partial}) {
    Series series{.name = std::string(to_string(kind)), .mark = Series::Mark::points};
    for (std::size_t k = 0; k < study.found.list.size(); ++k) {
      const Attractor& one = study.found.list[k];
      if (one.kind != kind) continue;
      series.x.push_back(1 / one.solution.norm);
      series.y.push_back(static_cast<double>(study.shares.counts[k]) /
                         static_cast<double>(study.shares.starts));
      series.labels.push_back(fmt::format("tokens {}", to_string(one.tokens)));
    }
    if (!series.x.empty()) figure.series.push_back(std::move(series));
  }
  const auto reached =
      std::ranges::count_if(study.shares.counts, [](std::int64_t count) { return count > 0; });
  figure.caption = fmt::format("Random starts end on {} of {} attractors.", reached, study.found.list.size());
  figure.description =
      fmt::format("A point for each attractor: its share of {} starts against its margin. {}",
                  study.shares.starts, figure.caption);
  return figure;
}

Table deficit_table(const AttractorStudy& study) {
  Table table{.title = "Better tokens that are left behind",
              .columns = {{"tokens", Align::left}, {"query"}, {"better token"}, {"behind by"}, {"known to"}}};
  for (const Attractor& one : study.found.list)
    for (const Deficit& deficit : one.deficits)
      table.rows.push_back({to_string(one.tokens), fmt::format("{}", deficit.query),
                            fmt::format("{}", deficit.token), fmt::format("{:.8g}", deficit.size),
                            std::isnan(one.certificate.deficit_error)
                                ? "–"
                                : fmt::format("{:.1e}", one.certificate.deficit_error)});
  return table;
}

}  // namespace

Page attractors_page(const AttractorStudy& study, std::vector<std::pair<std::string, std::string>> facts) {
  Page page;
  page.title = "Where can training end?";
  page.conclusion = attractor_conclusion(study);
  page.footer = version_line();
  Section result{.id = "result", .title = "Attractors", .blocks = {}};
  if (study.shares.starts > 0 && !study.found.list.empty()) result.blocks.push_back(starts_figure(study));
  if (!study.found.list.empty()) {
    TableBlock block{.id = "attractors", .table = attractor_table(study)};
    block.table.title = "Attractors with their certificates and starts";
    result.blocks.push_back(std::move(block));
  }
  for (const std::string& note : attractor_notes(study)) result.blocks.push_back(Paragraph{note});
  page.sections.push_back(std::move(result));

  Section how{.id = "how", .title = "What an attractor is", .blocks = {}};
  how.blocks.push_back(Paragraph{
      "For a choice of one token in each query, W is the smallest matrix that gives each chosen token a lead of 1 over the "
      "tokens with lower scores. It attracts training if every token with a higher score is behind by more than 1, its "
      "deficit: far out, the pull of that token decays faster than the pushes that balance in W. S is the set of queries "
      "whose chosen token is a best one; the attractor is whole if that is all of them, and partial otherwise."});
  how.blocks.push_back(Facts{"", std::move(facts)});
  if (study.found.count(AttractorKind::partial) > 0)
    how.blocks.push_back(Folded{"Deficits", {TableBlock{.id = "deficits", .table = deficit_table(study)}}});
  page.sections.push_back(std::move(how));
  return page;
}

}  // namespace attmirror

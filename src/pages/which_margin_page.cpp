#include "pages/which_margin_page.hpp"

#include "base/and_list.hpp"
#include "descent/data_scale.hpp"
#include "descent/optimizer_words.hpp"
#include "papers/share_figure.hpp"
#include <attmirror/base/build_info.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <optional>

#include <fmt/format.h>

namespace attmirror {

namespace {

std::string row_name(const MarginRow& row, Lettering lettering) {
  return lettering == Lettering::plain ? row.name : row.title;
}

std::string column_name(const Norm& norm, Lettering lettering) {
  if (lettering == Lettering::typeset) return norm_symbol(norm);
  const std::string name = to_string(norm);
  return norm.is_entrywise() ? "l" + name : name;
}

// The share in the predicted norm; nothing where that is not known.
std::optional<double> predicted_share(const MarginRow& row, const std::vector<Norm>& norms) {
  const std::optional<std::size_t> column = row.predicted_column(norms);
  if (!column || std::isnan(row.shares[*column].share)) return std::nullopt;
  return row.shares[*column].share;
}

// The row in the words of a sentence that says "gd 0.997 of the largest l2 margin".
std::string other_row(const MarginRow& row, const std::vector<Norm>& norms, Lettering lettering) {
  const std::string name = row_name(row, lettering);
  const std::string still = row.state == RowState::rising        ? ", still rising"
                            : row.state == RowState::unsaturated ? ", its attention not decided"
                                                                 : "";
  if (row.state == RowState::diverged) return name + " (diverged)";
  if (row.state == RowState::infeasible) return name + " (no weights separate its tokens)";
  if (const auto share = predicted_share(row, norms))
    return fmt::format("{} ({:.3f} of the largest {} margin{})", name, *share,
                       column_name(*row.predicted, lettering), still);
  const std::optional<std::size_t> nearest = row.largest_column();
  if (!nearest) return name + " (no certified margin)";
  return fmt::format("{} ({}; nearest to {}, {:.3f}{})", name,
                     row.predicted ? "its own norm is not in the table" : "theory predicts no norm",
                     column_name(norms[*nearest], lettering), row.shares[*nearest].share, still);
}

std::string range_text(std::vector<double> shares) {
  std::ranges::sort(shares);
  const std::string low = fmt::format("{:.3f}", shares.front()), high = fmt::format("{:.3f}", shares.back());
  return low == high ? low : low + " to " + high;
}

const char* certificate_text(MarginStatus status) {
  switch (status) {
    case MarginStatus::certified:
      return "certified";
    case MarginStatus::infeasible:
      return "infeasible";
    case MarginStatus::stopped:
      break;
  }
  return "not certified";
}

// In a terminal the stars stand in a column of their own.
std::string cell_text(const MarginRow& row, std::size_t c, bool predicted, Lettering lettering) {
  const MarginShare& share = row.shares[c];
  if (row.state == RowState::diverged) return "-";
  if (std::isnan(share.share)) return share.status == MarginStatus::infeasible ? "infeasible" : "no proof";
  const bool plain = lettering == Lettering::plain;
  return fmt::format("{:.3f}{}", share.share, predicted ? (plain ? "*" : " *") : plain ? " " : "");
}

TableBlock certificates(const WhichMargin& table) {
  TableBlock block{.id = "certificates", .table = {}};
  block.table.title = "Relative gap of the certificate behind each share";
  block.table.columns.push_back({"optimizer", Align::left});
  for (const Norm& norm : table.norms) block.table.columns.push_back({norm_symbol(norm)});
  for (const MarginRow& row : table.rows) {
    std::vector<std::string> cells{row.title};
    for (const MarginShare& share : row.shares)
      cells.push_back(row.state == RowState::diverged           ? "-"
                      : share.status == MarginStatus::certified ? fmt::format("{:.0e}", std::abs(share.gap))
                                                                : certificate_text(share.status));
    block.table.rows.push_back(std::move(cells));
  }
  return block;
}

TableBlock trainings(const WhichMargin& table) {
  TableBlock block{.id = "trainings", .table = {}};
  block.table.title = "How each row was trained, and how it ended";
  block.table.columns = {
      {"row", Align::left},         {"optimizer", Align::left},  {"learning rate"}, {"steps"},
      {"mean largest probability"}, {"best tokens", Align::left}};
  for (const MarginRow& row : table.rows)
    block.table.rows.push_back({row.name, row.title, fmt::format("{:g}", lr_of(row.optimizer)),
                                fmt::format("{}", row.steps), fmt::format("{:.4f}", row.max_softmax),
                                row.globally_optimal ? "selected" : "not all selected"});
  return block;
}

}  // namespace

std::string which_margin_conclusion(const WhichMargin& table, Lettering lettering) {
  std::vector<std::string> reached, others;
  std::vector<double> shares;
  bool largest_there = true;
  for (const MarginRow& row : table.rows) {
    const std::optional<double> share = predicted_share(row, table.norms);
    if (!share || *share < maximizing_share) {
      others.push_back(other_row(row, table.norms, lettering));
      continue;
    }
    shares.push_back(*share);
    largest_there = largest_there && row.largest_column() == row.predicted_column(table.norms);
    reached.push_back(fmt::format("{} {}the {} margin ({:.3f} of the largest)", row_name(row, lettering),
                                  reached.empty() ? "maximizes " : "", column_name(*row.predicted, lettering),
                                  *share));
  }
  const std::size_t count = table.rows.size();
  // Runs go by the names of their folders; optimizers have titles of their own.
  const bool runs =
      std::ranges::all_of(table.rows, [](const MarginRow& row) { return row.name == row.title; });
  const char* what = runs ? "runs" : "optimizers";
  std::string text;
  if (reached.empty() && count == 1)
    text =
        fmt::format("The {:.{}} does not reach {:g} of the largest margin in the norm that theory predicts",
                    what, std::strlen(what) - 1, maximizing_share);
  else if (reached.empty())
    text =
        fmt::format("None of the {} {} reaches {:g} of the largest margin in the norm that theory predicts",
                    count, what, maximizing_share);
  else if (reached.size() <= 3)
    text = and_list(reached);
  else
    text = fmt::format(
        "{} {} {} maximize the margin in the norm that theory predicts for them: each reaches {} of the largest there{}",
        others.empty() ? "All" : fmt::format("{} of", reached.size()), count, what, range_text(shares),
        largest_there && table.norms.size() > 1 ? ", and less in every other norm" : "");
  if (!others.empty()) text += fmt::format("{} {}", reached.empty() ? ":" : "; not so", and_list(others));
  // A sentence of a page begins with a capital; a word of the command stays as it is typed.
  if (lettering == Lettering::typeset)
    text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text + ".";
}

Table which_margin_table(const WhichMargin& table, Lettering lettering) {
  Table result;
  result.title = "Margin of each row's weights in each norm, as a share of the largest possible";
  result.columns.push_back({"", Align::left});
  for (const Norm& norm : table.norms) result.columns.push_back({column_name(norm, lettering)});
  for (const MarginRow& row : table.rows) {
    std::vector<std::string> cells{row_name(row, lettering) +
                                   (row.state == RowState::near_limit ? "" : " !")};
    const std::optional<std::size_t> predicted = row.predicted_column(table.norms);
    for (std::size_t c = 0; c < table.norms.size(); ++c)
      cells.push_back(cell_text(row, c, predicted == c, lettering));
    result.rows.push_back(std::move(cells));
  }
  return result;
}

std::vector<std::string> which_margin_notes(const WhichMargin& table, Lettering lettering) {
  std::vector<std::string> notes;
  if (std::ranges::any_of(
          table.rows, [&](const MarginRow& row) { return row.predicted_column(table.norms).has_value(); }))
    notes.push_back("* the norm whose margin theory predicts that the optimizer maximizes");
  for (const MarginRow& row : table.rows)
    if (!row.remark.empty())
      notes.push_back(fmt::format("{}{}: {}{}", row.state == RowState::near_limit ? "" : "! ",
                                  row_name(row, lettering), row.remark,
                                  row.state == RowState::rising || row.state == RowState::unsaturated
                                      ? "; train longer, with more steps"
                                      : ""));
  const std::int64_t certified = table.problems - table.uncertified;
  if (certified == 0) {
    notes.push_back(
        fmt::format("Largest margins: none of {} max-margin problems is certified", table.problems));
    return notes;
  }
  notes.push_back(
      table.uncertified == 0
          ? fmt::format(
                "Largest margins: {} max-margin problems, all certified, to a relative gap of at most {:.0e}",
                table.problems, table.worst_gap)
          : fmt::format(
                "Largest margins: {} of {} max-margin problems certified, to a relative gap of at most "
                "{:.0e}; the others are not used",
                certified, table.problems, table.worst_gap));
  return notes;
}

Page which_margin_page(const WhichMargin& table, std::vector<std::pair<std::string, std::string>> facts) {
  ShareTable shares;
  for (const Norm& norm : table.norms) shares.columns.push_back(norm_symbol(norm));
  bool outlined = false;
  for (const MarginRow& row : table.rows) {
    ShareTable::Row& into = shares.rows.emplace_back();
    into.name = row.title + (row.state == RowState::near_limit ? "" : " !");
    for (const MarginShare& share : row.shares) into.shares.push_back(share.share);
    if (predicted_share(row, table.norms)) into.predicted = row.predicted_column(table.norms);
    outlined = outlined || into.predicted;
  }
  std::string caption = "1 is the largest margin that any weights have in the norm. Compare within a row.";
  if (outlined) caption += " The norm that theory predicts for the optimizer is outlined.";
  if (std::ranges::any_of(table.rows, [](const MarginRow& row) { return row.state != RowState::near_limit; }))
    caption += " Rows with a ! are not near their limit; the notes below say why.";

  Page page;
  page.title = "Which margin does your optimizer maximize?";
  page.conclusion = which_margin_conclusion(table, Lettering::typeset);
  page.footer = version_line();
  Section result{.id = "result", .title = "Margins", .blocks = {}};
  result.blocks.push_back(
      share_figure(shares, "Each optimizer's margin in each norm, as a share of the largest", caption));
  for (const std::string& note : which_margin_notes(table, Lettering::typeset))
    result.blocks.push_back(Paragraph{note + "."});
  TableBlock block{.id = "margins", .table = which_margin_table(table, Lettering::typeset)};
  block.table.columns.front().name = "optimizer";
  result.blocks.push_back(std::move(block));
  page.sections.push_back(std::move(result));

  Section how{.id = "how", .title = "How it was measured", .blocks = {}};
  how.blocks.push_back(Paragraph{
      "The weights that a row ends with select one token in each sequence. Their margin is the smallest difference of "
      "logits between a selected token and another one of its sequence, divided by the norm of the weights. It is compared "
      "with the largest margin that any weights have for the same tokens: that of the max-margin solution, which is "
      "certified by a lower bound recomputed from the data."});
  how.blocks.push_back(Facts{"", std::move(facts)});
  how.blocks.push_back(trainings(table));
  how.blocks.push_back(Folded{"Certificates", {certificates(table)}});
  page.sections.push_back(std::move(how));
  return page;
}

}  // namespace attmirror

#include "cli/sweep_report.hpp"

#include "base/progress.hpp"
#include "base/words.hpp"
#include <attmirror/base/isa.hpp>

#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::cli {

namespace {

std::string duration(double seconds) {
  if (seconds < 1) return fmt::format("{:.0f} ms", 1000 * seconds);
  if (seconds < 100) return fmt::format("{:.1f} s", seconds);
  return format_duration(seconds);
}

std::string rate(double value) { return fmt::format("{:.{}f}", value, value < 10 ? 1 : 0); }

std::string count_text(std::int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// How many different values each axis has.
std::string axes_text(const SweepPlan& plan) {
  return plan.axes.empty() ? std::string("none") : fmt::format("{}", fmt::join(plan.axes, ", "));
}

}  // namespace

Json to_json(const SweepPlan& plan, const DryRun& dry) {
  return {{"status", "planned"},
          {"name", plan.name},
          {"axes", plan.axes},
          {"runs", dry.runs},
          {"missing", dry.missing},
          {"steps", static_cast<std::int64_t>(dry.steps)},
          {"estimated_seconds", dry.seconds},
          {"workers", dry.workers},
          {"isa", to_string(active_isa())}};
}

std::string to_text(const SweepPlan& plan, const DryRun& dry, const std::filesystem::path& file) {
  std::string text =
      fmt::format("{}{}\n", one_line(file.string()), plan.name.empty() ? "" : ": " + one_line(plan.name));
  if (!plan.description.empty()) text += plan.description + "\n";
  text += fmt::format("\nruns       {}{}\n", dry.runs,
                      dry.missing == dry.runs ? "" : fmt::format(", {} of them missing", dry.missing));
  text += fmt::format("axes       {}\n", axes_text(plan));
  text += fmt::format("steps      {:.4g}\n", dry.steps);
  text += fmt::format("estimate   {} on {} ({})\n", duration(dry.seconds), count_text(dry.workers, "thread"),
                      to_string(active_isa()));
  return text;
}

Json to_json(const SweepAnswer& answer) {
  const SweepOutcome& outcome = answer.outcome;
  return {{"status", outcome.interrupted ? "interrupted" : "done"},
          {"database", answer.database.string()},
          {"runs", outcome.total},
          {"computed", outcome.computed},
          {"rows", answer.rows},
          {"by_status", outcome.by_status},
          {"seconds", outcome.seconds},
          {"database_seconds", outcome.database_seconds},
          {"threads", answer.threads},
          {"ranks", answer.ranks},
          {"isa", to_string(active_isa())}};
}

std::string to_text(const SweepPlan& plan, const SweepAnswer& answer) {
  const SweepOutcome& outcome = answer.outcome;
  std::string text =
      fmt::format("{}{} of {} computed in {}", plan.name.empty() ? "" : one_line(plan.name) + ": ",
                  outcome.computed, count_text(outcome.total, "run"), duration(outcome.seconds));
  if (outcome.computed > 0 && outcome.seconds > 0)
    text += fmt::format(" ({} runs a second)", rate(static_cast<double>(outcome.computed) / outcome.seconds));
  text += "\n";
  for (const auto& [status, count] : outcome.by_status) text += fmt::format("  {:<12} {}\n", status, count);
  text += fmt::format("results    {} ({})\n", answer.database.string(), count_text(answer.rows, "row"));
  return text;
}

Json to_json(const Table& table) {
  Json rows = Json::array();
  for (const std::vector<std::string>& cells : table.rows) {
    Json row = Json::object();
    for (std::size_t c = 0; c < cells.size(); ++c) {
      std::int64_t count = 0;
      double number = 0;
      const char *begin = cells[c].data(), *end = begin + cells[c].size();
      if (const auto [last, error] = std::from_chars(begin, end, count);
          error == std::errc{} && last == end && !cells[c].empty()) {
        row[table.columns[c].name] = count;
        continue;
      }
      const auto [last, error] = std::from_chars(begin, end, number);
      if (error == std::errc{} && last == end && !cells[c].empty() && std::isfinite(number))
        row[table.columns[c].name] = number;
      else
        row[table.columns[c].name] = cells[c];
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace attmirror::cli

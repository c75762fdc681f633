#include "cli/next_token_report.hpp"

#include <attmirror/base/table.hpp>

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::cli {

namespace {

std::string number(const char* format, double value) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : std::string("-");
}

// A metric of the last record; NaN where there is none.
double metric(const StageOutcome& stage, std::string_view name) {
  for (const Metric& metric : stage.metrics)
    if (metric.name == name) return metric.value;
  return std::numeric_limits<double>::quiet_NaN();
}

double direction(const StageOutcome& stage, const Block& block) {
  return metric(stage, fmt::format("direction_{}", to_string(block)));
}

const Block& main_block(Stage stage) {
  return stage == Stage::collocation ? NextTokenBlock::W_ov : NextTokenBlock::W_kq;
}

std::string counted(std::ptrdiff_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string target_line(const char* name, const std::optional<MarginSolution>& solution) {
  if (!solution) return "";
  if (solution->status == MarginStatus::infeasible) return fmt::format("{:<11} infeasible\n", name);
  return fmt::format("{:<11} norm {:.6g} ({}), {}, gap {:.1e}\n", name, solution->norm,
                     to_string(solution->kind), to_string(solution->status), solution->gap);
}

std::string order_text(const ExtendedOrder& order) {
  if (order.holds) return "optimal > non-comparable > non-optimal for every query";
  return fmt::format(
      "share of pairs: optimal > non-comparable {:.3f}, non-comparable > non-optimal {:.3f}, optimal > "
      "non-optimal {:.3f}",
      order.optimal_above_non_comparable, order.non_comparable_above_non_optimal,
      order.optimal_above_non_optimal);
}

Table stage_table(const NextTokenReport& report) {
  Table table;
  table.columns = {
      {"trained", Align::left},
      {"status", Align::left},
      {"steps"},
      {"loss"},
      {"accuracy"},
      {"1 - cos"},
      {report.stages.front().norm_name.substr(report.stages.front().norm_name.rfind('_')) == "_2" ? "‖W‖_2"
                                                                                                  : "‖W‖"},
      {"‖W‖/(steps lr)"},
      {"seconds"}};
  for (const StageOutcome& stage : report.stages) {
    const RunResult& result = stage.result;
    const double travelled = static_cast<double>(result.steps) * stage.lr;
    table.rows.push_back(
        {std::string(to_string(stage.stage)), std::string(to_string(result.status)),
         fmt::format("{}", result.steps), number("{:.6g}", result.loss),
         number("{:.4f}", metric(stage, "accuracy")),
         number("{:.3g}", direction(stage, main_block(stage.stage))), number("{:.6g}", result.norm),
         stage.norm_grows_by_lr && travelled > 0 ? number("{:.4f}", result.norm / travelled) : "-",
         number("{:.3g}", result.seconds)});
  }
  return table;
}

Json target_json(const std::optional<MarginSolution>& solution) {
  if (!solution) return nullptr;
  return {{"status", to_string(solution->status)},
          {"kind", to_string(solution->kind)},
          {"norm", finite_or_null(solution->norm)},
          {"dual", finite_or_null(solution->dual)},
          {"gap", finite_or_null(solution->gap)},
          {"support", solution->support.size()},
          {"method", solution->method},
          {"seconds", solution->seconds}};
}

Json stage_json(const StageOutcome& stage) {
  const RunResult& result = stage.result;
  const double travelled = static_cast<double>(result.steps) * stage.lr;
  Json json = {{"stage", to_string(stage.stage)},
               {"status", to_string(result.status)},
               {"steps", result.steps},
               {"loss", finite_or_null(result.loss)},
               {"accuracy", finite_or_null(metric(stage, "accuracy"))},
               {"max_softmax", finite_or_null(result.max_softmax)},
               {"norm", finite_or_null(result.norm)},
               {"norm_rate",
                stage.norm_grows_by_lr && travelled > 0 ? finite_or_null(result.norm / travelled) : Json()},
               {"lr", stage.lr},
               {"seconds", finite_or_null(result.seconds)}};
  for (const Metric& metric : stage.metrics)
    if (metric.name != "accuracy") json[metric.name] = finite_or_null(metric.value);
  return json;
}

Json order_json(const std::optional<ExtendedOrder>& order) {
  if (!order) return nullptr;
  return {{"holds", order->holds},
          {"optimal_above_non_comparable", order->optimal_above_non_comparable},
          {"non_comparable_above_non_optimal", order->non_comparable_above_non_optimal},
          {"optimal_above_non_optimal", order->optimal_above_non_optimal}};
}

}  // namespace

std::string to_text(const NextTokenReport& report) {
  const Corpus& corpus = *report.corpus;
  std::string text = fmt::format(
      "{}: {}, {}, {}\n", corpus.source, counted(corpus.sentences.count(), "sentence", "sentences"),
      counted(corpus.vocabulary.size(), "word", "words"), corpus.collocation_source);
  if (corpus.skipped) text += corpus.skipped->text();
  text +=
      fmt::format("orders      {} with {}; {}\n",
                  counted(static_cast<std::ptrdiff_t>(report.orders->queries().size()), "query", "queries"),
                  counted(report.orders->total_preferences(), "comparison", "comparisons"),
                  report.realizable ? "realizable" : "contradictory, trained with --cyclic");
  text += fmt::format("embedding   {}, dimension {}\n", to_string(report.embedding->kind),
                      report.embedding->dim());
  text += target_line("W_ov*", report.targets->W_ov);
  text += target_line(report.options->cyclic ? "W_dir" : "W_kq*", report.targets->W_kq);
  if (report.targets->finite)
    text +=
        fmt::format("W_fin       norm {:.6g}, loss {:.6g}{}\n", report.targets->finite->W.norm(),
                    report.targets->finite->loss, report.targets->finite->converged ? "" : ", not converged");
  for (const std::string& missing : report.targets->left_out)
    text += fmt::format("targets     {}\n", missing);
  text += "\n" + to_text(stage_table(report)) + "\n";
  for (const StageOutcome& stage : report.stages)
    if (stage.stage == Stage::joint && std::isfinite(direction(stage, NextTokenBlock::W_ov)))
      text += fmt::format("1 - cos of W_ov   {:.3g}\n", direction(stage, NextTokenBlock::W_ov));
  if (report.accuracy) {
    text += fmt::format("accuracy          {:.4f} on the training sentences\n", *report.accuracy);
    for (const auto& [name, value] : report.unseen_accuracy)
      text += fmt::format("                  {:.4f} on unseen ones ({})\n", value, name);
  }
  for (const std::string& why : corpus.missing_unseen) text += fmt::format("unseen            {}\n", why);
  if (report.order) text += fmt::format("extended order    {}\n", order_text(*report.order));
  if (!report.options->output.empty() && report.status() != RunStatus::interrupted)
    text += fmt::format(
        "files             {} (sentences.txt, targets.npz, final.npz, result.json, a folder per stage)\n",
        report.options->output.string());
  return text;
}

Json to_json(const NextTokenReport& report) {
  const Corpus& corpus = *report.corpus;
  Json stages = Json::array(), unseen = Json::object();
  double seconds = 0;
  for (const StageOutcome& stage : report.stages) {
    stages.push_back(stage_json(stage));
    seconds += stage.result.seconds;
  }
  for (const auto& [name, value] : report.unseen_accuracy) unseen[name] = value;
  const RunResult& last = report.stages.back().result;
  Json finite;
  if (report.targets->finite)
    finite = {{"norm", report.targets->finite->W.norm()},
              {"loss", report.targets->finite->loss},
              {"converged", report.targets->finite->converged}};
  return {{"status", to_string(report.status())},
          {"steps", last.steps},
          {"loss", finite_or_null(last.loss)},
          {"norm", finite_or_null(last.norm)},
          {"source", corpus.source},
          {"vocabulary", corpus.vocabulary.size()},
          {"sentences", corpus.sentences.count()},
          {"skipped", corpus.skipped ? corpus.skipped->json() : Json()},
          {"queries", report.orders->queries().size()},
          {"comparisons", report.orders->total_preferences()},
          {"realizable", report.realizable},
          {"embedding", to_string(report.embedding->kind)},
          {"dim", report.embedding->dim()},
          {"stages", std::move(stages)},
          {"targets",
           {{"W_ov", target_json(report.targets->W_ov)},
            {"W_kq", target_json(report.targets->W_kq)},
            {"finite", std::move(finite)},
            {"left_out", report.targets->left_out}}},
          {"accuracy", report.accuracy ? Json(*report.accuracy) : Json()},
          {"unseen_accuracy", std::move(unseen)},
          {"extended_order", order_json(report.order)},
          {"seconds", seconds},
          {"output", report.options->output.empty() ? Json() : Json(report.options->output.string())}};
}

}  // namespace attmirror::cli

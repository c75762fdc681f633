// What came out of an experiment, as JSON and back: the file results/ID.json of a reproduction.
//
// Numbers come back to the last bit; those that are not finite are written as texts ("nan", "inf", "-inf"), since
// JSON has none and a curve with a gap must keep it.
#include "base/json_numbers.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/papers/reproduce.hpp>

#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr int format_version = 1;
constexpr int most_digits = 17;  // a double has no more

Json number(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

double to_number(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const std::string text = json.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  throw bad_input(fmt::format("\"{}\" is not a number", text));
}

Json numbers(const std::vector<double>& values) {
  Json json = Json::array();
  for (const double value : values) json.push_back(number(value));
  return json;
}

std::vector<double> to_numbers(const Json& json) {
  std::vector<double> values;
  for (const Json& one : json) values.push_back(to_number(one));
  return values;
}

// Enumerations by the words of this table, in the order of their values.
template <class Enum, std::size_t N>
Json word(Enum value, const std::array<const char*, N>& words) {
  return words.at(static_cast<std::size_t>(value));
}
template <class Enum, std::size_t N>
Enum to_enum(const Json& json, const std::array<const char*, N>& words) {
  const std::string text = json.get<std::string>();
  for (std::size_t i = 0; i < N; ++i)
    if (text == words[i]) return static_cast<Enum>(i);
  throw bad_input(fmt::format("\"{}\" is no word that belongs here", text));
}

constexpr std::array sources{"figure", "printed", "recomputed", "theory"};
constexpr std::array tolerances{"absolute", "relative", "standard_errors", "at_least", "at_most"};
constexpr std::array scales{"linear", "log"};
constexpr std::array marks{"line", "points", "both"};
constexpr std::array dashes{"solid", "dashed", "dotted"};
constexpr std::array aligns{"left", "right"};
constexpr std::array extents{"full", "quick"};
constexpr std::array outcomes{"done", "failed", "interrupted", "out of scope"};

Json json_of(const Finding& f) {
  Json json{{"quantity", f.quantity}};
  if (f.published) json["published"] = number(*f.published);
  json["source"] = word(f.source, sources);
  json["ours"] = number(f.ours);
  json["standard_error"] = number(f.standard_error);
  json["published_error"] = number(f.published_error);
  json["reading"] = number(f.reading);
  json["resolution"] = number(f.resolution);
  json["tolerance"] = {{"kind", word(f.tolerance.kind, tolerances)}, {"value", number(f.tolerance.value)}};
  if (f.imitated) json["imitated"] = number(*f.imitated);
  json["imitated_error"] = number(f.imitated_error);
  if (f.published_text) json["published_text"] = *f.published_text;
  json["ours_text"] = f.ours_text;
  json["note"] = f.note;
  json["digits"] = f.digits;
  json["verdict"] = to_string(judge(f));  // for readers; it is judged again when read
  return json;
}

Finding finding_of(const Json& json) {
  Finding f;
  f.quantity = json.at("quantity");
  if (json.contains("published")) f.published = to_number(json.at("published"));
  f.source = to_enum<ReferenceSource>(json.at("source"), sources);
  f.ours = to_number(json.at("ours"));
  f.standard_error = to_number(json.at("standard_error"));
  f.published_error = to_number(json.at("published_error"));
  f.reading = to_number(json.at("reading"));
  if (json.contains("resolution")) f.resolution = to_number(json.at("resolution"));
  f.tolerance.kind = to_enum<Tolerance::Kind>(json.at("tolerance").at("kind"), tolerances);
  f.tolerance.value = to_number(json.at("tolerance").at("value"));
  if (json.contains("imitated")) f.imitated = to_number(json.at("imitated"));
  f.imitated_error = to_number(json.at("imitated_error"));
  if (json.contains("published_text")) f.published_text = json.at("published_text").get<std::string>();
  f.ours_text = json.at("ours_text");
  f.note = json.at("note");
  f.digits = whole_number(json.at("digits"), 0, most_digits);
  return f;
}

Json json_of(const NamedTable& named) {
  Json columns = Json::array();
  for (const Column& column : named.table.columns)
    columns.push_back({{"name", column.name}, {"align", word(column.align, aligns)}});
  return {{"id", named.id}, {"title", named.table.title}, {"columns", columns}, {"rows", named.table.rows}};
}

NamedTable table_of(const Json& json) {
  NamedTable named;
  named.id = json.at("id");
  named.table.title = json.at("title");
  for (const Json& column : json.at("columns"))
    named.table.columns.push_back({column.at("name"), to_enum<Align>(column.at("align"), aligns)});
  named.table.rows = json.at("rows").get<std::vector<std::vector<std::string>>>();
  named.table.validate();
  return named;
}

Json json_of(const Axis& axis) {
  Json json{{"label", axis.label}, {"scale", word(axis.scale, scales)}};
  if (axis.range) json["range"] = numbers({axis.range->first, axis.range->second});
  if (axis.whole) json["whole"] = true;
  return json;
}

Axis axis_of(const Json& json) {
  Axis axis{.label = json.at("label"), .scale = to_enum<Axis::Scale>(json.at("scale"), scales)};
  if (json.contains("range"))
    axis.range = {to_number(json.at("range").at(0)), to_number(json.at("range").at(1))};
  axis.whole = json.value("whole", false);
  return axis;
}

Json json_of(const Series& series) {
  return {{"name", series.name},
          {"x", numbers(series.x)},
          {"y", numbers(series.y)},
          {"low", numbers(series.low)},
          {"high", numbers(series.high)},
          {"labels", series.labels},
          {"mark", word(series.mark, marks)},
          {"dash", word(series.dash, dashes)},
          {"color", series.color}};
}

Series series_of(const Json& json) {
  Series series;
  series.name = json.at("name");
  series.x = to_numbers(json.at("x"));
  series.y = to_numbers(json.at("y"));
  series.low = to_numbers(json.at("low"));
  series.high = to_numbers(json.at("high"));
  series.labels = json.at("labels").get<std::vector<std::string>>();
  series.mark = to_enum<Series::Mark>(json.at("mark"), marks);
  series.dash = to_enum<Series::Dash>(json.at("dash"), dashes);
  series.color = json.at("color");
  return series;
}

Json json_of(const Heatmap& map) {
  Json values = Json::array();
  for (const std::vector<double>& row : map.values) values.push_back(numbers(row));
  return {{"rows", map.rows},
          {"columns", map.columns},
          {"values", values},
          {"digits", map.digits},
          {"marked", map.marked}};
}

Heatmap heatmap_of(const Json& json) {
  Heatmap map;
  map.rows = json.at("rows").get<std::vector<std::string>>();
  map.columns = json.at("columns").get<std::vector<std::string>>();
  for (const Json& row : json.at("values")) map.values.push_back(to_numbers(row));
  map.digits = whole_number(json.at("digits"), 0, most_digits);
  for (const Json& one : json.at("marked"))
    map.marked.emplace_back(whole_number<std::size_t>(one.at(0)), whole_number<std::size_t>(one.at(1)));
  return map;
}

Json json_of(const Figure& figure) {
  Json series = Json::array();
  for (const Series& one : figure.series) series.push_back(json_of(one));
  Json json{{"id", figure.id},           {"title", figure.title},
            {"caption", figure.caption}, {"description", figure.description},
            {"x", json_of(figure.x)},    {"y", json_of(figure.y)},
            {"series", series},          {"equal_axes", figure.equal_axes}};
  if (figure.heatmap) json["heatmap"] = json_of(*figure.heatmap);
  return json;
}

Figure figure_of(const Json& json) {
  Figure figure;
  figure.id = json.at("id");
  figure.title = json.at("title");
  figure.caption = json.at("caption");
  figure.description = json.at("description");
  figure.x = axis_of(json.at("x"));
  figure.y = axis_of(json.at("y"));
  for (const Json& one : json.at("series")) figure.series.push_back(series_of(one));
  figure.equal_axes = json.at("equal_axes");
  if (json.contains("heatmap")) figure.heatmap = heatmap_of(json.at("heatmap"));
  figure.validate();
  return figure;
}

template <class T>
Json list_of(const std::vector<T>& items) {
  Json json = Json::array();
  for (const T& item : items) json.push_back(json_of(item));
  return json;
}

}  // namespace

std::string to_json(const ExperimentReport& report) {
  const ExperimentInfo& info = report.info;
  Json json{{"format_version", format_version},
            {"id", info.id},
            {"paper", info.paper},
            {"item", info.item},
            {"title", info.title},
            {"summary", info.summary},
            {"typical_seconds", info.seconds},
            {"quick_seconds", info.quick_seconds},
            {"out_of_scope", info.out_of_scope},
            {"extent", word(report.extent, extents)},
            {"outcome", word(report.outcome, outcomes)},
            {"error", report.error},
            {"seconds", report.seconds},
            {"version", report.version},
            {"commit", report.commit},
            {"isa", report.isa},
            {"conclusion", report.result.conclusion},
            {"details", report.result.details},
            {"sample", report.result.sample},
            {"findings", list_of(report.result.findings)},
            {"tables", list_of(report.result.tables)},
            {"figures", list_of(report.result.figures)},
            {"configuration", report.result.configuration},
            {"remarks", report.result.remarks}};
  if (info.recorded) json["recorded"] = true;
  return dump(json, 1) + "\n";
}

ExperimentReport parse_report(std::string_view text) try {
  const Json json = Json::parse(text);
  if (json.at("format_version") != format_version)
    throw bad_input(fmt::format("the result has format_version {}: this version reads {}",
                                dump(json.at("format_version")), format_version));
  ExperimentReport report;
  report.info = {.id = json.at("id"),
                 .paper = json.at("paper"),
                 .item = json.at("item"),
                 .title = json.at("title"),
                 .summary = json.at("summary"),
                 .seconds = json.at("typical_seconds"),
                 .quick_seconds = json.at("quick_seconds"),
                 .out_of_scope = json.at("out_of_scope")};
  report.info.recorded = json.value("recorded", false);
  report.extent = to_enum<Extent>(json.at("extent"), extents);
  report.outcome = to_enum<ExperimentOutcome>(json.at("outcome"), outcomes);
  report.error = json.at("error");
  report.seconds = json.at("seconds");
  report.version = json.at("version");
  report.commit = json.at("commit");
  report.isa = json.at("isa");
  // Results of earlier versions lack these three.
  report.result.conclusion = json.value("conclusion", "");
  report.result.details = json.value("details", std::vector<std::string>{});
  report.result.sample = json.value("sample", "");
  for (const Json& one : json.at("findings")) report.result.findings.push_back(finding_of(one));
  for (const Json& one : json.at("tables")) report.result.tables.push_back(table_of(one));
  for (const Json& one : json.at("figures")) report.result.figures.push_back(figure_of(one));
  report.result.configuration =
      json.at("configuration").get<std::vector<std::pair<std::string, std::string>>>();
  report.result.remarks = json.at("remarks").get<std::vector<std::string>>();
  return report;
} catch (const Json::exception& error) {
  throw bad_input(fmt::format("not the result of an experiment: {}", error.what()));
}

}  // namespace attmirror

// Sweeps: a file or a text as it would stand in one, into a database, and its tables back as columns.
#include "bridge.hpp"
#include <attmirror/sweep/database.hpp>
#include <attmirror/sweep/export.hpp>
#include <attmirror/sweep/plan.hpp>
#include <attmirror/sweep/sweep.hpp>

#include <fmt/format.h>

namespace attmirror::python {

namespace {

SweepDatabase::Mode parse_mode(const std::string& word) {
  if (word == "create") return SweepDatabase::Mode::create;
  if (word == "resume") return SweepDatabase::Mode::resume;
  return SweepDatabase::Mode::overwrite;
}

nb::dict sweep_into(const std::string& text, const std::string& name, const std::string& folder,
                    const std::string& output, const std::string& mode, int threads, nb::object on_pulse) {
  StopOnInterrupt interrupt;
  UserFunction pulse(std::move(on_pulse), interrupt.stop());
  SweepOutcome outcome;
  {
    const nb::gil_scoped_release release;
    const SweepPlan plan = parse_sweep(text, name, folder);
    SweepDatabase results(output, parse_mode(mode), header_of(plan));
    SweepCallbacks callbacks{.stop = interrupt.stop()};
    if (pulse)
      callbacks.on_pulse = [&](const SweepProgress& progress) {
        pulse.call(
            [&] { return nb::make_tuple(progress.done, progress.total, progress.failed, progress.seconds); });
      };
    outcome = run_sweep(plan, results, {.threads = threads}, callbacks);
  }
  pulse.finish();
  StopOnInterrupt::run_handlers();
  nb::dict by_status, result;
  for (const auto& [status, count] : outcome.by_status) by_status[status.c_str()] = count;
  result["total"] = outcome.total;
  result["computed"] = outcome.computed;
  result["by_status"] = by_status;
  result["interrupted"] = outcome.interrupted;
  result["seconds"] = outcome.seconds;
  return result;
}

struct PythonCell {
  nb::object operator()(std::monostate) const { return nb::none(); }
  nb::object operator()(std::int64_t value) const { return nb::cast(value); }
  nb::object operator()(double value) const { return nb::cast(value); }
  nb::object operator()(const std::string& value) const { return nb::cast(value); }
};

// Every column as a list, by name and with its type; what is not there is None.
nb::list sweep_columns(const std::string& path) {
  const SweepDatabase database{std::filesystem::path(path)};
  const SweepDatabase::Snapshot snapshot(database);
  const std::vector<RowColumn> columns = database.columns();
  std::vector<std::string> names;
  for (const RowColumn& column : columns) names.push_back(column.name);
  std::vector<nb::list> values(columns.size());
  database.for_each_run(names, [&](std::span<const Cell> cells) {
    for (std::size_t c = 0; c < cells.size(); ++c) values[c].append(std::visit(PythonCell{}, cells[c]));
  });
  nb::list result;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const char* type = columns[c].type == CellType::integer ? "integer"
                       : columns[c].type == CellType::real  ? "real"
                                                            : "text";
    result.append(nb::make_tuple(columns[c].name, type, values[c]));
  }
  return result;
}

nb::dict sweep_header(const std::string& path) {
  const SweepDatabase database{std::filesystem::path(path)};
  const SweepHeader& header = database.header();
  nb::list settings, metrics, axes;
  for (const RowColumn& column : header.settings) settings.append(column.name);
  for (const RowColumn& column : header.metrics) metrics.append(column.name);
  for (const std::string& axis : header.axes) axes.append(axis);
  nb::dict result;
  result["name"] = header.name;
  result["description"] = header.description;
  result["settings"] = settings;
  result["metrics"] = metrics;
  result["axes"] = axes;
  result["count"] = database.count();
  nb::list arrays;
  for (const auto& [name, shapes] : database.array_shapes()) arrays.append(name);
  result["arrays"] = arrays;
  return result;
}

nb::list sweep_arrays(const std::string& path, const std::string& name) {
  const SweepDatabase database{std::filesystem::path(path)};
  nb::list result;
  database.for_each_array(name, [&](const std::optional<RowArray>& array) {
    result.append(array ? to_numpy(array->values, array->shape) : nb::none());
  });
  return result;
}

nb::tuple table_to_python(const Table& table) {
  nb::list columns;
  for (const Column& column : table.columns) columns.append(column.name);
  return nb::make_tuple(table.title, columns, nb::cast(table.rows));
}

}  // namespace

void bind_sweep(nb::module_& module) {
  module.def("sweep", &sweep_into, nb::arg("text"), nb::arg("name"), nb::arg("folder"), nb::arg("output"),
             nb::arg("mode"), nb::arg("threads"), nb::arg("on_pulse").none());
  module.def("sweep_columns", &sweep_columns);
  module.def("sweep_header", &sweep_header);
  module.def("sweep_arrays", &sweep_arrays);
  module.def("sweep_summary", [](const std::string& path, const std::vector<std::string>& group_by,
                                 const std::vector<std::string>& metrics) {
    const SweepDatabase database{std::filesystem::path(path)};
    return table_to_python(summarize(
        database, {.group_by = group_by, .metrics = metrics, .digits = SummaryOptions::Digits::all}));
  });
}

}  // namespace attmirror::python

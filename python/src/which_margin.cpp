// Which margin optimizers and runs maximize; studies as sweep files, and their pages.
#include "bridge.hpp"
#include "descent/model_fields.hpp"
#include "descent/optimizer_words.hpp"
#include "pages/study_page.hpp"
#include <attmirror/sweep/which_margin.hpp>

#include <fmt/format.h>

namespace attmirror::python {

namespace {

std::vector<MarginOptimizer> optimizers_of(const std::vector<std::string>& words) {
  if (words.empty()) return default_margin_optimizers();
  std::vector<MarginOptimizer> all;
  for (NamedOptimizer& one : parse_optimizer_words(words, {}))
    all.push_back({std::move(one.word), std::move(one.title), std::move(one.optimizer)});
  return all;
}

// Trains optimizers given by words, with step sizes by the data's scale; those of the command without any
// word. Returns (word, title, run) of each.
nb::list train_margin_rows(const DataHandle& data, const std::vector<std::string>& words,
                           std::optional<std::int64_t> steps, int threads, nb::object on_pulse) {
  const std::vector<MarginOptimizer> optimizers = optimizers_of(words);
  const ModelPlan plan = plan_model({});
  WhichMarginOptions options;
  if (steps) options.steps = *steps;
  StopOnInterrupt interrupt;
  UserFunction pulse(std::move(on_pulse), interrupt.stop());
  options.work.threads = threads;
  options.work.stop = interrupt.stop();
  if (pulse) options.work.on_progress = [&](double share) { pulse.call([&] { return nb::float_(share); }); };
  std::vector<RunHandle> handles;
  {
    const nb::gil_scoped_release release;
    const Attention model = make_attention(*data.data, plan);
    for (MarginRun& row : train_margin_runs(model, optimizers, options))
      handles.push_back({data.data, plan, row.optimizer, options.steps, std::move(row.run), data.path, {}});
  }
  pulse.finish();
  StopOnInterrupt::run_handlers();
  nb::list result;
  for (std::size_t i = 0; i < handles.size(); ++i)
    result.append(nb::make_tuple(optimizers[i].name, optimizers[i].title, std::move(handles[i])));
  return result;
}

nb::dict row_to_python(const MarginRow& row) {
  nb::list shares, gaps, certificates;
  for (const MarginShare& share : row.shares) {
    shares.append(share.share);
    gaps.append(share.gap);
    certificates.append(std::string(to_string(share.status)));
  }
  nb::dict result;
  result["predicted"] = row.predicted ? to_python(*row.predicted) : nb::none();
  result["shares"] = shares;
  result["gaps"] = gaps;
  result["certificates"] = certificates;
  result["halfway"] = row.halfway;
  result["state"] = std::string(to_string(row.state));
  result["remark"] = row.remark;
  return result;
}

// Runs are (name, run). The models view the data that the handles hold.
nb::dict measure_margins(const nb::list& runs, const nb::list& norms, int threads) {
  std::vector<Attention> models;
  std::vector<MarginRun> rows;
  std::vector<Norm> columns;
  models.reserve(nb::len(runs));
  for (const nb::handle norm : norms) columns.push_back(to_norm(norm));
  for (const nb::handle entry : runs) {
    const auto& handle = nb::cast<const RunHandle&>(entry[1]);
    models.push_back(handle.model());
    const auto name = nb::cast<std::string>(entry[0]);
    rows.push_back({name, name, &models.back(), handle.optimizer, handle.run});
  }
  const WhichMargin table = unlocked([&](const StopRequest& stop) {
    return which_margin(rows, columns, {.threads = threads, .on_progress = {}, .stop = stop});
  });
  nb::list list;
  for (const MarginRow& row : table.rows) list.append(row_to_python(row));
  nb::dict result;
  result["rows"] = list;
  result["problems"] = table.problems;
  result["uncertified"] = table.uncertified;
  result["worst_gap"] = table.worst_gap;
  result["conclusion"] = which_margin_conclusion(table, Lettering::typeset);
  return result;
}

std::string study_text(const DataHandle& data, const std::string& file, const std::vector<std::string>& words,
                       const std::vector<double>& p, std::int64_t seeds, std::int64_t steps,
                       std::optional<double> lr) {
  StudyOptions options;
  options.file = file;
  options.optimizers = parse_optimizer_words(words, p);
  options.seeds = seeds;
  options.steps = steps;
  options.lr = lr;
  return study_file(*data.data, options);
}

// The page of a study that is in the database. Returns its conclusion.
std::string study_report(const std::string& folder, const std::string& data, const std::string& file) {
  const std::filesystem::path path(folder);
  const Study study = read_study(SweepDatabase(path / "results.db"));
  write_page(study_page(study, data, path, file), path / "report.html");
  return study_conclusion(study, Lettering::typeset);
}

}  // namespace

void bind_which_margin(nb::module_& module) {
  module.def("train_margin_rows", &train_margin_rows, nb::arg("data"), nb::arg("words"),
             nb::arg("steps").none(), nb::arg("threads"), nb::arg("on_pulse").none());
  module.def("measure_margins", &measure_margins, nb::arg("runs"), nb::arg("norms"), nb::arg("threads"));
  module.def("default_margin_norms", [] {
    nb::list list;
    for (const Norm& norm : default_margin_norms()) list.append(to_python(norm));
    return list;
  });
  module.def("norm_symbol", [](const nb::object& norm) { return norm_symbol(to_norm(norm)); });
  module.def("study_file", &study_text, nb::arg("data"), nb::arg("file"), nb::arg("optimizers"), nb::arg("p"),
             nb::arg("seeds"), nb::arg("steps"), nb::arg("lr").none());
  module.def("study_report", &study_report, nb::arg("folder"), nb::arg("data"), nb::arg("file"));
}

}  // namespace attmirror::python

// The published experiments, and pages of results. Reports travel as JSON, which has everything that they hold.
#include "bridge.hpp"
#include <attmirror/pages/run_page.hpp>
#include <attmirror/papers/experiment.hpp>
#include <attmirror/papers/reproduce.hpp>
#include <attmirror/report/page.hpp>

namespace attmirror::python {

namespace {

nb::list list_experiments() {
  nb::list list;
  for (const Experiment* experiment : experiments()) {
    const ExperimentInfo info = experiment->info();
    list.append(nb::make_tuple(info.id, info.paper, info.item, info.title, info.summary, info.seconds,
                               info.quick_seconds, info.out_of_scope));
  }
  return list;
}

// The verdict of a finding follows from its numbers; Python should not work it out again.
nb::tuple report_to_python(const ExperimentReport& report) {
  nb::list verdicts;
  for (const Finding& finding : report.result.findings)
    verdicts.append(std::string(to_string(judge(finding))));
  return nb::make_tuple(to_json(report), verdicts);
}

nb::tuple reproduce_experiments(const std::vector<std::string>& ids, bool quick, int threads,
                                const std::string& folder, bool again, nb::object on_progress) {
  StopOnInterrupt interrupt;
  UserFunction progress(std::move(on_progress), interrupt.stop());
  std::vector<ExperimentReport> reports;
  {
    const nb::gil_scoped_release release;
    std::vector<const Experiment*> chosen;
    for (const std::string& id : ids) chosen.push_back(&find_experiment(id));
    if (ids.empty())
      for (const Experiment* experiment : experiments())
        if (experiment->info().out_of_scope.empty()) chosen.push_back(experiment);
    ReproduceCallbacks callbacks{.stop = interrupt.stop()};
    if (progress)
      callbacks.on_progress = [&](const ReproduceProgress& now) {
        progress.call([&] { return nb::make_tuple(now.id, now.finished, now.total, now.share); });
      };
    reports = reproduce(chosen,
                        {.extent = quick ? Extent::quick : Extent::full,
                         .threads = threads,
                         .folder = folder,
                         .again = again},
                        callbacks);
  }
  progress.finish();
  StopOnInterrupt::run_handlers();
  nb::list list;
  for (const ExperimentReport& report : reports) list.append(report_to_python(report));
  return nb::make_tuple(list, verdict_summary(reports));
}

}  // namespace

void bind_papers(nb::module_& module) {
  module.def("experiments", &list_experiments);
  module.def("reproduce", &reproduce_experiments, nb::arg("ids"), nb::arg("quick"), nb::arg("threads"),
             nb::arg("folder"), nb::arg("again"), nb::arg("on_progress").none());
  module.def("report", [](const std::vector<std::string>& sources, const std::string& output) {
    const nb::gil_scoped_release release;
    write_page(page_of({sources.begin(), sources.end()}), output);
  });
}

}  // namespace attmirror::python

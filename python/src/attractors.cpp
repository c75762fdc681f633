// The tokens on which training can end.
#include "bridge.hpp"
#include "descent/model_fields.hpp"
#include "sweep/attractor_study.hpp"
#include <attmirror/base/error.hpp>

#include <fmt/format.h>

namespace attmirror::python {

namespace {

const std::vector<const FieldInfo*>& attractor_arguments() {
  static const std::vector<const FieldInfo*> all = [] {
    std::vector<const FieldInfo*> list = infos(attractor_fields());
    for (const FieldInfo* field : infos(model_fields(), {"params", "rank", "loss", "mask"}))
      list.push_back(field);
    return list;
  }();
  return all;
}

nb::object confirmation_to_python(const Confirmation& one) {
  if (!one.finished) return nb::none();
  nb::dict result;
  result["stayed"] = one.stayed;
  result["correlation"] = one.correlation;
  result["lead"] = one.lead;
  return result;
}

nb::dict attractor_to_python(const AttractorStudy& study, std::size_t k, const Dataset& data, bool prompt) {
  const Attractor& one = study.found.list[k];
  nb::list deficits;
  for (const Deficit& deficit : one.deficits)
    deficits.append(nb::make_tuple(deficit.query, deficit.token, deficit.size));
  nb::dict result;
  result["kind"] = std::string(to_string(one.kind));
  result["tokens"] = to_numpy(one.tokens, data);
  result["held"] = to_numpy(one.held);
  result["deficits"] = deficits;
  result["W"] = prompt ? to_numpy(Vector(one.solution.W.col(0))) : to_numpy(one.solution.W);
  result["lambda_"] = to_numpy(one.solution.lambda);
  result["norm"] = one.solution.norm;
  result["gap"] = one.certificate.margin.gap;
  result["least_margin"] = one.certificate.least_margin;
  result["least_deficit"] = one.certificate.least_deficit;
  result["deficit_error"] = one.certificate.deficit_error;
  result["certified"] = one.certificate.holds();
  result["locally_optimal"] = one.locally_optimal;
  result["starts"] = study.shares.starts > 0 ? nb::cast(study.shares.counts[k]) : nb::none();
  const bool checked = !study.checks.empty();
  result["confirmed"] = checked ? nb::cast(study.checks[k].holds()) : nb::none();
  result["plain"] = checked ? confirmation_to_python(study.checks[k].plain) : nb::none();
  result["normalized"] = checked ? confirmation_to_python(study.checks[k].normalized) : nb::none();
  result["flow"] = checked ? confirmation_to_python(study.checks[k].flow) : nb::none();
  return result;
}

nb::dict condition_to_python(const GlobalCondition& condition) {
  nb::dict result;
  result["holds"] = condition.holds();
  result["applies"] = condition.applies;
  result["unique_best"] = condition.unique_best;
  result["equal_scores"] = condition.equal_scores;
  result["feasible"] = condition.feasible;
  result["least_cosine"] = condition.least_cosine;
  return result;
}

nb::dict find_attractors(const DataHandle& data, const nb::dict& settings, const nb::object& key_weights,
                         int threads, nb::object on_pulse) {
  const Given given = to_given(settings, attractor_arguments(), "attractors()");
  AttractorSettings options;
  apply(attractor_fields(), given, options);
  ModelPlan plan = plan_model(given);
  auto* prompt = std::get_if<Prompt>(&plan.parameterization);
  if (!key_weights.is_none()) {
    if (prompt == nullptr)
      throw bad_input(fmt::format("{} are given, but {} is {}: only a prompt has them",
                                  field_name("key_weights"), field_name("params"),
                                  to_string(plan.parameterization)));
    prompt->key_weights = matrix_of(nb::cast<Doubles>(key_weights), "key_weights");
  }
  std::shared_ptr<const Dataset> used = data.data;
  if (plan.mask == Mask::causal && used->mask() != Mask::causal)
    used = std::make_shared<const Dataset>(with_causal_mask(*used));
  StopOnInterrupt interrupt;
  UserFunction pulse(std::move(on_pulse), interrupt.stop());
  MarginWork work{.threads = threads, .stop = interrupt.stop()};
  if (pulse) work.on_progress = [&](double share) { pulse.call([&] { return nb::float_(share); }); };
  const AttractorStudy study = [&] {
    const nb::gil_scoped_release release;
    return study_attractors(make_attention(*used, plan), options, work);
  }();
  pulse.finish();
  StopOnInterrupt::run_handlers();
  nb::dict result;
  nb::list list, notes;
  const bool finished = !study.interrupted;
  if (finished) {
    for (std::size_t k = 0; k < study.found.list.size(); ++k)
      list.append(attractor_to_python(study, k, *used, prompt != nullptr));
    for (const std::string& note : attractor_notes(study)) notes.append(note);
  }
  result["interrupted"] = study.interrupted;
  result["list"] = list;
  result["notes"] = notes;
  result["conclusion"] = finished ? attractor_conclusion(study) : "";
  result["norm"] = to_python(study.found.norm);
  result["candidates"] = study.found.candidates;
  result["examined"] = study.found.examined;
  result["complete"] = study.found.complete;
  result["infeasible"] = study.found.infeasible;
  result["undecided"] = study.found.undecided;
  result["starts"] = study.shares.starts;
  result["start_std"] = study.start_std;
  result["ends"] = to_numpy(study.shares.ends);
  result["condition"] = condition_to_python(study.condition);
  return result;
}

}  // namespace

void bind_attractors(nb::module_& module) {
  module.def("attractors", &find_attractors, nb::arg("data"), nb::arg("settings"),
             nb::arg("key_weights").none(), nb::arg("threads"), nb::arg("on_pulse").none());
}

}  // namespace attmirror::python

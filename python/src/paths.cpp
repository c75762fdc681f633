// Regularisation paths and mirror flow, as dicts of arrays.
#include "bridge.hpp"
#include "descent/block_arrays.hpp"
#include "descent/model_fields.hpp"
#include "run_in_folder.hpp"
#include <attmirror/descent/mirror_flow.hpp>
#include <attmirror/descent/path_folder.hpp>
#include <attmirror/descent/regularization_path.hpp>

#include <fmt/format.h>

namespace attmirror::python {

namespace {

// The model of a path or a flow, from the same words as a run's. Keeps the data that it views alive.
struct PlannedModel {
  std::shared_ptr<const Dataset> data;
  ModelPlan plan;
};

PlannedModel plan_for(const DataHandle& data, const nb::dict& settings, const nb::object& key_weights,
                      std::string_view owner) {
  PlannedModel planned{data.data, plan_model(to_given(settings, infos(model_fields()), owner))};
  if (!key_weights.is_none()) {
    auto* prompt = std::get_if<Prompt>(&planned.plan.parameterization);
    if (prompt == nullptr)
      throw bad_input(fmt::format("{} are given, but {} is {}: only a prompt has them",
                                  field_name("key_weights"), field_name("params"),
                                  to_string(planned.plan.parameterization)));
    prompt->key_weights = matrix_of(nb::cast<Doubles>(key_weights), "key_weights");
  }
  planned.plan = load_files(std::move(planned.plan));
  if (planned.plan.mask == Mask::causal && data.data->mask() != Mask::causal)
    planned.data = std::make_shared<const Dataset>(with_causal_mask(*data.data));
  return planned;
}

std::vector<double> to_doubles(const Doubles& values) {
  return {values.data(), values.data() + values.size()};
}

// Stacks the blocks of several parameters by name.
void stack_blocks(nb::dict& into, const std::vector<Parameters>& all) {
  if (all.empty()) return;
  for (const Block& block : block_names(all.front())) {
    std::vector<double> values;
    Shape shape{static_cast<std::int64_t>(all.size())};
    for (const std::int64_t size : block_shape(all.front(), block)) shape.push_back(size);
    for (const Parameters& parameters : all) {
      const auto part = block_values(parameters, block);
      values.insert(values.end(), part.begin(), part.end());
    }
    into[std::string(block.name()).c_str()] = to_numpy(std::move(values), shape);
  }
}

nb::dict path_to_python(const std::vector<PathPoint>& points, const Dataset& data) {
  std::vector<double> radius, decoder_radius, loss, log_loss, max_softmax, gap;
  std::vector<std::int64_t> evaluations, start;
  nb::list status, selected;
  std::vector<Parameters> parameters;
  for (const PathPoint& point : points) {
    radius.push_back(point.radius);
    decoder_radius.push_back(point.decoder_radius);
    loss.push_back(point.loss);
    log_loss.push_back(point.log_loss);
    max_softmax.push_back(point.max_softmax);
    gap.push_back(point.gap);
    evaluations.push_back(point.evaluations);
    start.push_back(point.start);
    status.append(std::string(to_string(point.status)));
    selected.append(to_numpy(point.selected, data));
    parameters.push_back(point.parameters);
  }
  nb::dict result;
  result["radius"] = to_numpy(std::move(radius));
  result["decoder_radius"] = to_numpy(std::move(decoder_radius));
  result["loss"] = to_numpy(std::move(loss));
  result["log_loss"] = to_numpy(std::move(log_loss));
  result["max_softmax"] = to_numpy(std::move(max_softmax));
  result["gap"] = to_numpy(std::move(gap));
  result["evaluations"] = to_numpy(std::move(evaluations));
  result["start"] = to_numpy(std::move(start));
  result["status"] = status;
  result["selected"] = selected;
  nb::dict blocks;
  stack_blocks(blocks, parameters);
  result["blocks"] = blocks;
  return result;
}

// `options` has the members of PathOptions; `given` is a list of dicts of blocks.
nb::dict follow_path(const DataHandle& data, const nb::dict& settings, const nb::object& key_weights,
                     const nb::object& norm, const nb::object& radii, const std::string& kind,
                     double decoder_scale, double decoder_power, int starts, std::uint64_t seed,
                     const nb::list& given, double tol, std::int64_t max_evaluations, int threads,
                     nb::object on_progress, const nb::object& folder) {
  const PlannedModel planned = plan_for(data, settings, key_weights, "path()");
  PathOptions options{.norm = to_norm(norm)};
  if (PyUnicode_Check(radii.ptr()))
    options.radii = parse_radii(nb::cast<std::string>(radii));
  else if (!radii.is_none())
    options.radii = to_doubles(nb::cast<Doubles>(radii));
  if (kind != "global" && kind != "local") throw bad_value("kind", kind, "global or local");
  options.kind = kind == "local" ? PathKind::local : PathKind::global;
  options.decoder_scale = decoder_scale;
  options.decoder_power = decoder_power;
  options.starts = starts;
  options.seed = seed;
  for (const nb::handle blocks : given) options.given.push_back(to_parameters(nb::cast<nb::dict>(blocks)));
  options.tol = tol;
  options.max_evaluations = max_evaluations;
  options.threads = threads;

  StopOnInterrupt interrupt;
  UserFunction progress(std::move(on_progress), interrupt.stop());
  RegularizationPath path;
  {
    const std::optional<std::string> target =
        folder.is_none() ? std::nullopt : std::optional(nb::cast<std::string>(folder[0]));
    const bool overwrite = target && nb::cast<bool>(folder[1]), with_start = given.size() > 0;
    const nb::gil_scoped_release release;
    const Attention model = make_attention(*planned.data, planned.plan);
    std::optional<PathFolder> files;
    if (target) {
      files.emplace(*target);
      if (files->holds_path() && !overwrite)
        throw bad_input(fmt::format(
            "{} holds a path already: give overwrite=True to replace it, or another folder", *target));
    }
    PathCallbacks callbacks{.stop = interrupt.stop()};
    if (progress)
      callbacks.on_progress = [&](double share) { progress.call([&] { return nb::float_(share); }); };
    path = regularization_path(model, options, callbacks);
    if (files && !path.points.empty()) {
      PathSources sources{.data = data.path, .start = with_start ? "given in Python" : ""};
      if (sources.data.empty()) {
        sources.data = std::filesystem::absolute(std::filesystem::path(*target) / "data.npz");
        keep_data(sources.data, *data.data);
      }
      files->save(model, path, sources);
    }
  }
  progress.finish();
  StopOnInterrupt::run_handlers();
  nb::dict result = path_to_python(path.points, *planned.data);
  result["interrupted"] = path.interrupted;
  result["converged"] = path.converged();
  return result;
}

nb::dict follow_flow(const DataHandle& data, const nb::dict& settings, const nb::object& key_weights,
                     const nb::object& init, double p, const std::string& geometry, double entropy_beta,
                     const Doubles& times, double tol, std::int64_t plain_steps, double lr,
                     std::int64_t max_evaluations, int threads) {
  const PlannedModel planned = plan_for(data, settings, key_weights, "mirror_flow()");
  MirrorFlow flow{.p = p,
                  .geometry = parse_geometry(geometry),
                  .beta = entropy_beta,
                  .times = to_doubles(times),
                  .tol = tol,
                  .plain_steps = plain_steps,
                  .lr = lr,
                  .init = planned.plan.init,
                  .max_evaluations = max_evaluations,
                  .threads = threads};
  if (!init.is_none()) {
    flow.init = {};
    flow.init.given = to_parameters(nb::cast<nb::dict>(init));
  }
  const FlowRun run = unlocked([&](const StopRequest& stop) {
    flow.stop = stop;
    const Attention model = make_attention(*planned.data, planned.plan);
    return mirror_flow(model, flow);
  });
  std::vector<double> time, loss, max_softmax, norm;
  std::vector<Parameters> parameters;
  for (const FlowRecord& record : run.records) {
    time.push_back(record.time);
    loss.push_back(record.loss);
    max_softmax.push_back(record.max_softmax);
    norm.push_back(record.norm);
    parameters.push_back(record.parameters);
  }
  nb::dict result, blocks;
  stack_blocks(blocks, parameters);
  result["status"] = std::string(to_string(run.status));
  result["evaluations"] = run.evaluations;
  result["time"] = to_numpy(std::move(time));
  result["loss"] = to_numpy(std::move(loss));
  result["max_softmax"] = to_numpy(std::move(max_softmax));
  result["norm"] = to_numpy(std::move(norm));
  result["blocks"] = blocks;
  result["final"] = to_dict(run.last());
  result["selected"] = to_numpy(run.selected, *planned.data);
  return result;
}

}  // namespace

void bind_paths(nb::module_& module) {
  module.def("path", &follow_path, nb::arg("data"), nb::arg("settings"), nb::arg("key_weights").none(),
             nb::arg("norm"), nb::arg("radii").none(), nb::arg("kind"), nb::arg("decoder_scale"),
             nb::arg("decoder_power"), nb::arg("starts"), nb::arg("seed"), nb::arg("given"), nb::arg("tol"),
             nb::arg("max_evaluations"), nb::arg("threads"), nb::arg("on_progress").none(),
             nb::arg("folder").none());
  module.def("mirror_flow", &follow_flow, nb::arg("data"), nb::arg("settings"), nb::arg("key_weights").none(),
             nb::arg("init").none(), nb::arg("p"), nb::arg("geometry"), nb::arg("entropy_beta"),
             nb::arg("times"), nb::arg("tol"), nb::arg("plain_steps"), nb::arg("lr"),
             nb::arg("max_evaluations"), nb::arg("threads"));
  module.def("log_times", [](double first, double last, int per_decade) {
    return to_numpy(log_times(first, last, per_decade));
  });
}

}  // namespace attmirror::python

// Training: one run, in memory or in a folder, and many at once.
#include "base/numbers.hpp"
#include "base/stopwatch.hpp"
#include "bridge.hpp"
#include "data/dataset_arrays.hpp"
#include "descent/block_arrays.hpp"
#include "descent/model_fields.hpp"
#include "descent/optimizer_fields.hpp"
#include "descent/saved_model.hpp"
#include "run_in_folder.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/descent/comparison.hpp>
#include <attmirror/descent/run_folder.hpp>
#include <attmirror/mirror/direction.hpp>
#include <attmirror/sweep/many.hpp>

#include <fmt/format.h>

namespace attmirror::python {

namespace {

const std::vector<const FieldInfo*>& descend_fields() {
  static const std::vector<const FieldInfo*> all = [] {
    std::vector<const FieldInfo*> list = infos(model_fields());
    for (const FieldInfo* field : infos(descent_fields())) list.push_back(field);
    return list;
  }();
  return all;
}

// What one training needs, from a user's words and arrays.
struct Request {
  std::shared_ptr<const Dataset> data;
  std::filesystem::path data_path;
  ModelPlan plan;
  Optimizer optimizer;
  DescentOptions options;
};

// `init` is None or a dict of blocks; `key_weights` None or a matrix.
Request read_request(const DataHandle& data, const OptimizerHandle& optimizer, const nb::dict& settings,
                     const nb::object& init, const nb::object& key_weights, int threads) {
  const Given given = to_given(settings, descend_fields(), "descend()");
  Request request{data.data, data.path, plan_model(given), optimizer.optimizer, {}};
  apply(descent_fields(), given, request.options);
  request.options.threads = threads;
  request.options.validate();
  if (!key_weights.is_none()) {
    auto* prompt = std::get_if<Prompt>(&request.plan.parameterization);
    if (prompt == nullptr)
      throw bad_input(fmt::format("{} are given, but {} is {}: only a prompt has them",
                                  field_name("key_weights"), field_name("params"),
                                  to_string(request.plan.parameterization)));
    prompt->key_weights = matrix_of(nb::cast<Doubles>(key_weights), "key_weights");
  }
  if (!init.is_none()) {
    request.plan.init = {};
    request.plan.init.given = to_parameters(nb::cast<nb::dict>(init));
  }
  request.plan = load_files(std::move(request.plan));
  request.options.init = request.plan.init;
  if (request.plan.mask == Mask::causal && data.data->mask() != Mask::causal)
    request.data = std::make_shared<const Dataset>(with_causal_mask(*data.data));
  return request;
}

RunHandle handle_of(Request request, DescentRun run, std::filesystem::path folder = {}) {
  const std::int64_t asked = request.options.steps;
  return {std::move(request.data),
          std::move(request.plan),
          std::move(request.optimizer),
          asked,
          std::move(run),
          std::move(request.data_path),
          std::move(folder)};
}

nb::object record_to_python(const Record& record) {
  nb::dict metrics;
  for (const Metric& metric : record.metrics) metrics[metric.name.c_str()] = metric.value;
  return nb::make_tuple(record.step, record.loss, record.max_softmax, record.norm, to_dict(record.parameters),
                        metrics);
}

RunHandle descend_once(const DataHandle& data, const OptimizerHandle& optimizer, const nb::dict& settings,
                       const nb::object& init, const nb::object& key_weights, int threads,
                       nb::object on_record, nb::object on_pulse, const nb::object& folder_options) {
  Request request = read_request(data, optimizer, settings, init, key_weights, threads);
  const std::optional<FolderOptions> folder = read_folder_options(folder_options);
  StopOnInterrupt interrupt;
  Watchers watchers(std::move(on_record), std::move(on_pulse), interrupt.stop());
  std::optional<RunHandle> handle;
  {
    const nb::gil_scoped_release release;
    const Attention model = make_attention(*request.data, request.plan);
    if (folder) {
      RunSources sources{.data = request.data_path,
                         .key_weights = request.plan.key_weights_path,
                         .init = request.plan.init_path};
      DescentRun run = descend_in_folder(model, request.optimizer, request.options, sources, *folder,
                                         watchers, [&](const std::filesystem::path& file) {
                                           keep_data(file, *data.data);
                                           request.data_path = file;
                                         });
      handle.emplace(handle_of(std::move(request), std::move(run), folder->path));
    } else {
      Descent descent(model, request.optimizer, request.options);
      DescentRun run = descent.run(watchers.callbacks());
      handle.emplace(handle_of(std::move(request), std::move(run)));
    }
  }
  watchers.finish();
  StopOnInterrupt::run_handlers();
  return std::move(*handle);
}

// Tasks are tuples (data, optimizer, settings, init, key_weights).
std::vector<RunHandle> descend_all(const nb::list& tasks, int threads, nb::object on_pulse) {
  std::vector<Request> requests;
  for (const nb::handle task : tasks)
    requests.push_back(read_request(nb::cast<const DataHandle&>(task[0]),
                                    nb::cast<const OptimizerHandle&>(task[1]), nb::cast<nb::dict>(task[2]),
                                    nb::borrow(task[3]), nb::borrow(task[4]), 1));
  StopOnInterrupt interrupt;
  UserFunction pulse(std::move(on_pulse), interrupt.stop());
  std::vector<RunHandle> handles;
  {
    const nb::gil_scoped_release release;
    std::vector<Attention> models;
    models.reserve(requests.size());
    for (const Request& request : requests) models.push_back(make_attention(*request.data, request.plan));
    std::vector<DescentTask> list;
    for (std::size_t i = 0; i < requests.size(); ++i)
      list.push_back(
          {.model = &models[i], .optimizer = requests[i].optimizer, .options = requests[i].options});
    ManyOptions many{.threads = threads, .stop = interrupt.stop()};
    if (pulse) many.on_pulse = [&](double share) { pulse.call([&] { return nb::float_(share); }); };
    std::vector<DescentRun> runs = descend_many(list, many);
    for (std::size_t i = 0; i < runs.size(); ++i)
      handles.push_back(handle_of(std::move(requests[i]), std::move(runs[i])));
  }
  pulse.finish();
  StopOnInterrupt::run_handlers();
  return handles;
}

// ---- a run and its parts

nb::dict trace_of(const DescentRun& run) {
  NamedArrays arrays;
  std::vector<std::int64_t> steps;
  std::vector<double> loss, max_softmax, norm;
  std::vector<const Record*> kept;
  for (const Record& record : run.records) {
    steps.push_back(record.step);
    loss.push_back(record.loss);
    max_softmax.push_back(record.max_softmax);
    norm.push_back(record.norm);
    if (has_weights(record.parameters)) kept.push_back(&record);
  }
  put_metrics(arrays, "", run.records);
  if (!kept.empty() && kept.size() == run.records.size())
    put_stacked(arrays, "", kept, kept.front()->parameters, block_names(kept.front()->parameters));
  nb::dict result;
  result["step"] = to_numpy(std::move(steps));
  result["loss"] = to_numpy(std::move(loss));
  result["max_softmax"] = to_numpy(std::move(max_softmax));
  result["norm"] = to_numpy(std::move(norm));
  for (const auto& [name, array] : arrays) result[name.c_str()] = to_numpy(array);
  return result;
}

RunHandle load_saved_run(const std::string& path, const DataHandle* data) {
  const nb::gil_scoped_release release;
  SavedRun saved = load_run(path);
  if (!is_attention_run(saved.config))
    throw bad_input(
        fmt::format("{} is a run of kind {}: expected one of attention", path, saved.config.kind));
  RunHandle handle;
  if (data != nullptr) {
    handle.data = data->data;
    if (saved.config.mask == "causal" && data->data->mask() != Mask::causal)
      handle.data = std::make_shared<const Dataset>(with_causal_mask(*data->data));
    if (handle.data->fingerprint() != saved.config.data_fingerprint)
      throw bad_input(fmt::format("{}: the data that were given are not those of the run", path));
    handle.data_path = data->path;
  } else {
    handle.data = std::make_shared<const Dataset>(load_run_data(saved.config, saved.config.data_path));
    handle.data_path = saved.config.data_path;
  }
  handle.plan.parameterization = parameterization_of(saved);
  handle.plan.loss = parse_loss(saved.config.loss);
  handle.plan.attention = attention_options(saved.config);
  handle.plan.mask = saved.config.mask == "causal" ? Mask::causal : Mask::none;
  handle.plan.init = {
      .kind = saved.config.init_kind, .std = saved.config.init_std, .seed = saved.config.init_seed};
  handle.optimizer = saved.config.optimizer;
  handle.asked = saved.config.steps;
  handle.folder = path;
  DescentRun& run = handle.run;
  run.steps = saved.step;
  run.records = std::move(saved.records);
  run.final_parameters = std::move(saved.parameters);
  run.status = RunStatus::interrupted;
  if (!run.records.empty()) {
    run.loss = run.records.back().loss;
    run.max_softmax = run.records.back().max_softmax;
    run.norm = run.records.back().norm;
  }
  if (saved.result) {
    run.status = saved.result->status;
    run.loss = saved.result->loss;
    run.max_softmax = saved.result->max_softmax;
    run.norm = saved.result->norm;
    run.seconds = saved.result->seconds;
    run.selected = saved.result->selected;
  } else if (has_weights(run.final_parameters)) {
    run.selected = selected_tokens(handle.model(), run.final_parameters);
  }
  return handle;
}

// ---- pickling

nb::tuple state_of(const RunHandle& self) {
  NamedArrays init;
  put_blocks(init, "", self.plan.init.given);
  const auto* prompt = std::get_if<Prompt>(&self.plan.parameterization);
  nb::list records;
  for (const Record& record : self.run.records)
    records.append(nb::make_tuple(record_to_python(record), record.scheduled));
  ModelPlan plan = self.plan;
  plan.init_path.clear();
  plan.key_weights_path.clear();
  DataHandle data{self.data, self.data_path};
  return nb::make_tuple(nb::cast(std::move(data)), to_dict(given_of(plan)), to_dict(init),
                        prompt != nullptr ? to_numpy(prompt->key_weights) : nb::none(),
                        to_dict(given_of(self.optimizer, method_of(self.optimizer))), self.asked,
                        nb::make_tuple(static_cast<int>(self.run.status), self.run.steps, self.run.loss,
                                       self.run.max_softmax, self.run.norm, self.run.seconds),
                        to_numpy(self.run.selected.tokens), records, to_dict(self.run.final_parameters),
                        self.folder.string());
}

RunHandle run_of_state(const nb::tuple& state) {
  const auto& data = nb::cast<const DataHandle&>(state[0]);
  RunHandle handle;
  handle.data = data.data;
  handle.data_path = data.path;
  handle.plan = plan_model(to_given(nb::cast<nb::dict>(state[1]), descend_fields(), "descend()"));
  handle.plan.init.given = to_parameters(nb::cast<nb::dict>(state[2]));
  if (auto* prompt = std::get_if<Prompt>(&handle.plan.parameterization))
    prompt->key_weights = matrix_of(nb::cast<Doubles>(state[3]), "key_weights");
  handle.optimizer =
      make_optimizer(to_given(nb::cast<nb::dict>(state[4]), optimizer_fields(), "the optimizer"));
  handle.asked = nb::cast<std::int64_t>(state[5]);
  DescentRun& run = handle.run;
  run.status = static_cast<RunStatus>(nb::cast<int>(state[6][0]));
  run.steps = nb::cast<std::int64_t>(state[6][1]);
  run.loss = nb::cast<double>(state[6][2]);
  run.max_softmax = nb::cast<double>(state[6][3]);
  run.norm = nb::cast<double>(state[6][4]);
  run.seconds = nb::cast<double>(state[6][5]);
  run.selected = to_selection(nb::cast<Integers>(state[7]));
  for (const nb::handle entry : nb::cast<nb::list>(state[8])) {
    const nb::object record = nb::borrow(entry[0]);
    Record& into = run.records.emplace_back();
    into.step = nb::cast<std::int64_t>(record[0]);
    into.loss = nb::cast<double>(record[1]);
    into.max_softmax = nb::cast<double>(record[2]);
    into.norm = nb::cast<double>(record[3]);
    into.parameters = to_parameters(nb::cast<nb::dict>(record[4]));
    for (const auto& [name, value] : nb::cast<nb::dict>(record[5]))
      into.metrics.push_back({nb::cast<std::string>(name), nb::cast<double>(value)});
    into.scheduled = nb::cast<bool>(entry[1]);
  }
  run.final_parameters = to_parameters(nb::cast<nb::dict>(state[9]));
  handle.folder = nb::cast<std::string>(state[10]);
  return handle;
}

// ---- held against a solution

// One row per set of weights: divergence, correlation, margin ratio. `weights` is (k, rows, cols).
nb::object compare_weights(const RunHandle& self, const Doubles& solution, const Integers& tokens,
                           const std::optional<double>& p, const nb::object& norm, bool along_trace) {
  const Matrix target = matrix_of(solution, "the solution");
  const Selection selection = to_selection(tokens);
  Measure measure{geometry_p(self.optimizer), measuring_norm(self.optimizer)};
  if (p) measure = {*p, Norm::l(*p)};
  if (!norm.is_none()) measure.norm = to_norm(norm);
  const Attention model = self.model();
  selection.validate(*self.data);
  std::vector<double> values;
  const auto add = [&](const Parameters& parameters) {
    const Comparison c = compare(model, target, attention_weights(parameters), selection, measure);
    values.insert(values.end(), {c.directional_bregman, c.correlation, c.margin_ratio});
  };
  if (along_trace)
    for (const Record& record : self.run.records) {
      if (!has_weights(record.parameters))
        throw bad_input(fmt::format("the run kept metrics only: expected {} parameters", field_name("keep")));
      add(record.parameters);
    }
  else
    add(self.run.last());
  const auto rows = static_cast<std::int64_t>(values.size() / 3);
  return to_numpy(std::move(values), {rows, 3});
}

// The tokens, probabilities and logits of given weights on the run's data or other data of the same kind.
Attention model_on(const RunHandle& self, const Dataset& data) { return make_attention(data, self.plan); }

// What descend() takes in C++, for bench/python_overhead.py: seconds of each of `repeat` calls.
std::vector<double> time_descend(const DataHandle& data, const OptimizerHandle& optimizer, std::int64_t steps,
                                 int repeat) {
  const nb::gil_scoped_release release;
  std::vector<double> seconds;
  for (int i = 0; i < repeat; ++i) {
    const Clock::time_point begin = Clock::now();
    const Attention model(*data.data);
    const DescentRun run = descend(model, optimizer.optimizer, {.steps = steps});
    seconds.push_back(seconds_since(begin));
  }
  return seconds;
}

}  // namespace

void bind_descent(nb::module_& module) {
  nb::class_<RunHandle>(module, "Run")
      .def("__getstate__", &state_of)
      .def("__setstate__",
           [](RunHandle& self, const nb::tuple& state) { new (&self) RunHandle(run_of_state(state)); })
      .def_prop_ro("status", [](const RunHandle& self) { return std::string(to_string(self.run.status)); })
      .def_prop_ro("steps", [](const RunHandle& self) { return self.run.steps; })
      .def_prop_ro("asked", [](const RunHandle& self) { return self.asked; })
      .def_prop_ro("loss", [](const RunHandle& self) { return self.run.loss; })
      .def_prop_ro("max_softmax", [](const RunHandle& self) { return self.run.max_softmax; })
      .def_prop_ro("norm", [](const RunHandle& self) { return self.run.norm; })
      .def_prop_ro("seconds", [](const RunHandle& self) { return self.run.seconds; })
      .def_prop_ro("folder", [](const RunHandle& self) { return self.folder.string(); })
      .def_prop_ro("data",
                   [](const RunHandle& self) {
                     return DataHandle{self.data, self.data_path};
                   })
      .def_prop_ro("optimizer",
                   [](const RunHandle& self) {
                     return OptimizerHandle{std::string(method_name(self.optimizer)), self.optimizer};
                   })
      .def_prop_ro("params",
                   [](const RunHandle& self) { return std::string(to_string(self.plan.parameterization)); })
      .def_prop_ro("settings", [](const RunHandle& self) { return to_dict(given_of(self.plan)); })
      .def_prop_ro("key_weights",
                   [](const RunHandle& self) -> nb::object {
                     const auto* prompt = std::get_if<Prompt>(&self.plan.parameterization);
                     if (prompt == nullptr || prompt->key_weights.size() == 0) return nb::none();
                     return to_numpy(prompt->key_weights);
                   })
      .def("parameters", [](const RunHandle& self) { return to_dict(self.run.last()); })
      .def("W", [](const RunHandle& self) { return to_numpy(combined_weights(self.run.last())); })
      .def("weights", [](const RunHandle& self) { return to_numpy(attention_weights(self.run.last())); })
      .def("selected", [](const RunHandle& self) { return to_numpy(self.run.selected, *self.data); })
      .def("optimal",
           [](const RunHandle& self) {
             return to_numpy(optimal_tokens(self.model(), self.run.last()), *self.data);
           })
      .def("trace", [](const RunHandle& self) { return trace_of(self.run); })
      .def(
          "probabilities",
          [](const RunHandle& self, const DataHandle* data) {
            const Dataset& on = data == nullptr ? *self.data : *data->data;
            return rows_to_numpy(attention_probabilities(model_on(self, on), self.run.last()));
          },
          nb::arg().none())
      .def("selected_on",
           [](const RunHandle& self, const DataHandle& data) {
             return to_numpy(selected_tokens(model_on(self, *data.data), self.run.last()), *data.data);
           })
      .def("scores",
           [](const RunHandle& self) { return rows_to_numpy(token_scores(self.model(), self.run.last())); })
      .def("margin",
           [](const RunHandle& self, const Integers& tokens) {
             return selection_margin(self.model(), to_selection(tokens), attention_weights(self.run.last()));
           })
      .def("compare", &compare_weights, nb::arg("solution"), nb::arg("tokens"), nb::arg("p").none(),
           nb::arg("norm").none(), nb::arg("along_trace"))
      .def("measuring_norm", [](const RunHandle& self) { return to_python(measuring_norm(self.optimizer)); })
      .def("trace_weights",
           [](const RunHandle& self) {
             nb::list list;
             for (const Record& record : self.run.records)
               list.append(to_numpy(attention_weights(record.parameters)));
             return list;
           })
      .def("summary", [](const RunHandle& self) { return summary(self.run); });
  module.def("descend", &descend_once, nb::arg("data"), nb::arg("optimizer"), nb::arg("settings"),
             nb::arg("init").none(), nb::arg("key_weights").none(), nb::arg("threads"),
             nb::arg("on_record").none(), nb::arg("on_pulse").none(), nb::arg("folder").none());
  module.def("descend_many", &descend_all, nb::arg("tasks"), nb::arg("threads"), nb::arg("on_pulse").none());
  module.def("time_descend", &time_descend);
  module.def("load_run", &load_saved_run, nb::arg("path"), nb::arg("data").none());
  module.def("descend_fields", [] {
    nb::list list;
    const auto add = [&](const auto& fields) {
      for (const auto& field : fields)
        list.append(nb::make_tuple(field.name, default_text(field), field.help,
                                   field.choices.empty() ? expected(field) : field.choices));
    };
    add(model_fields());
    add(descent_fields());
    return list;
  });
  module.def("matrix_norm", [](const Doubles& w, const nb::object& kind) {
    return norm(w.ndim() == 1 ? Matrix(vector_of(w, "W")) : matrix_of(w, "W"), to_norm(kind));
  });
  module.def("directional_bregman", [](const Doubles& solution, const Doubles& iterate, double p) {
    return directional_bregman(matrix_of(solution, "solution"), matrix_of(iterate, "iterate"), p);
  });
  module.def("correlation", [](const Doubles& a, const Doubles& b) {
    return correlation(matrix_of(a, "a"), matrix_of(b, "b"));
  });
  module.def("selection_margin", [](const DataHandle& data, const Integers& tokens, const Doubles& W) {
    const Selection selection = to_selection(tokens);
    selection.validate(*data.data);
    return selection_margin(*data.data, selection, matrix_of(W, "W"));
  });
  module.def("attention_of", [](const DataHandle& data, const Doubles& W) {
    const Attention model(*data.data);
    Parameters parameters = model.zero_parameters();
    parameters.W = matrix_of(W, "W");
    return nb::make_tuple(rows_to_numpy(attention_probabilities(model, parameters)),
                          to_numpy(selected_tokens(model, parameters), *data.data));
  });
}

}  // namespace attmirror::python

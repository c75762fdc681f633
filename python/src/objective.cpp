// Models of the user's own: a loss and its gradient, written in Python on NumPy arrays.
#include "base/numbers.hpp"
#include "bridge.hpp"
#include "descent/model_fields.hpp"
#include "descent/optimizer_fields.hpp"
#include "run_in_folder.hpp"
#include <attmirror/base/fingerprint.hpp>
#include <attmirror/descent/objective.hpp>

#include <fmt/format.h>

namespace attmirror::python {

namespace {

// function(blocks) -> (loss, gradients): dicts of arrays by name. Called with the interpreter's lock, which everything
// here takes for itself; so several threads may train it, one step at a time.
class PythonObjective final : public Objective {
 public:
  PythonObjective(nb::object function, std::vector<BlockShape> shapes, std::string kind, NamedArrays data,
                  bool bounded)
      : function_(std::move(function)),
        shapes_(std::move(shapes)),
        kind_(std::move(kind)),
        data_(std::move(data)),
        bounded_(bounded) {}

  std::vector<BlockShape> blocks() const override { return shapes_; }
  ModelFacts facts() const override { return {.kind = kind_}; }
  bool has_lower_bound() const override { return bounded_; }

  std::uint64_t data_fingerprint() const override {
    Fingerprint print;
    for (const auto& [name, array] : data_) {
      print.add(std::string_view(name));
      for (const std::int64_t size : array.shape()) print.add(static_cast<std::ptrdiff_t>(size));
      for (const double value : array.to_doubles(name)) print.add(value);
    }
    return print.value();
  }

  Evaluation evaluate(const ParameterBlocks& weights, Gradient& gradient) const override {
    const nb::gil_scoped_acquire lock;
    nb::dict blocks;
    for (std::ptrdiff_t b = 0; b < weights.count(); ++b)
      blocks[std::string(weights.shape(b).name.name()).c_str()] =
          array_of_block(weights.view(b), weights.shape(b));
    const nb::object answer = function_(blocks);
    if (!nb::isinstance<nb::tuple>(answer) || nb::len(answer) != 2)
      raise_type_error("the objective returned something else than a pair: expected (loss, gradients)");
    const nb::object gradients = answer[1];
    std::fill(gradient.log_scale.begin(), gradient.log_scale.end(), 0.0);
    for (std::ptrdiff_t b = 0; b < gradient.blocks.count(); ++b) {
      const BlockShape& shape = gradient.blocks.shape(b);
      const std::string name(shape.name.name());
      const auto values = nb::cast<Doubles>(gradients[name.c_str()]);
      const std::size_t expected_axes = shape.is_vector ? 1 : 2;
      if (values.ndim() != expected_axes || values.size() != at(shape.rows * shape.cols) ||
          (!shape.is_vector && values.shape(0) != at(shape.rows)))
        throw bad_input(
            fmt::format("the objective's gradient of {} has {} axes and {} numbers: expected the shape of {}",
                        name, values.ndim(), values.size(), name));
      gradient.blocks.view(b).eigen() = Eigen::Map<const Matrix>(values.data(), shape.rows, shape.cols);
    }
    return {.loss = nb::cast<double>(nb::float_(answer[0]))};
  }

 private:
  static nb::object array_of_block(ConstMatrixView view, const BlockShape& shape) {
    const Matrix values = view.eigen();
    if (shape.is_vector) return to_numpy(std::vector<double>(values.data(), values.data() + values.size()));
    return to_numpy(values);
  }

  nb::object function_;
  std::vector<BlockShape> shapes_;
  std::string kind_;
  NamedArrays data_;
  bool bounded_;
};

std::vector<BlockShape> read_shapes(const nb::dict& blocks) {
  std::vector<BlockShape> shapes;
  for (const auto& [key, value] : blocks) {
    const auto name = nb::cast<std::string>(key);
    const auto sizes = nb::cast<std::vector<std::int64_t>>(value);
    if (sizes.empty() || sizes.size() > 2 || sizes[0] < 1 || sizes.back() < 1)
      throw bad_input(fmt::format(
          "block {} has {} axes: expected a vector or a matrix, with 1 or more numbers", name, sizes.size()));
    const Block block{std::string_view(name)};
    shapes.push_back(sizes.size() == 1 ? BlockShape::vector(block, sizes[0])
                                       : BlockShape::matrix(block, sizes[0], sizes[1]));
  }
  return shapes;
}

nb::tuple descend_objective(nb::object function, const nb::dict& blocks, const std::string& kind,
                            const nb::dict& data, bool bounded, const OptimizerHandle& optimizer,
                            const nb::dict& settings, const nb::object& init, nb::object on_record,
                            nb::object on_pulse, const nb::object& folder_options) {
  const PythonObjective objective(std::move(function), read_shapes(blocks), kind, to_named_arrays(data),
                                  bounded);
  DescentOptions options;
  std::vector<const FieldInfo*> fields = infos(descent_fields());
  for (const FieldInfo* field : infos(model_fields(), {"init", "init_seed"})) fields.push_back(field);
  const Given given = to_given(settings, fields, "descend()");
  apply(descent_fields(), given, options);
  options.init = plan_model(given).init;
  if (!init.is_none()) options.init.given = to_parameters(nb::cast<nb::dict>(init));
  options.validate();
  const std::optional<FolderOptions> folder = read_folder_options(folder_options);
  StopOnInterrupt interrupt;
  Watchers watchers(std::move(on_record), std::move(on_pulse), interrupt.stop());
  DescentRun run;
  {
    const nb::gil_scoped_release release;
    RunSources sources;
    if (folder) sources.data = folder->path;  // the data are Python's: no file holds them
    if (folder)
      run = descend_in_folder<Objective>(objective, optimizer.optimizer, options, sources, *folder, watchers,
                                         [](const std::filesystem::path&) {});
    else
      run = Descent(objective, optimizer.optimizer, options).run(watchers.callbacks());
  }
  watchers.finish();
  StopOnInterrupt::run_handlers();
  nb::list records;
  for (const Record& record : run.records)
    records.append(nb::make_tuple(record.step, record.loss, record.norm, to_dict(record.parameters)));
  return nb::make_tuple(std::string(to_string(run.status)), run.steps, run.loss, run.norm, run.seconds,
                        to_dict(run.last()), records);
}

}  // namespace

void bind_objective(nb::module_& module) {
  module.def("descend_objective", &descend_objective, nb::arg("function"), nb::arg("blocks"), nb::arg("kind"),
             nb::arg("data"), nb::arg("bounded"), nb::arg("optimizer"), nb::arg("settings"),
             nb::arg("init").none(), nb::arg("on_record").none(), nb::arg("on_pulse").none(),
             nb::arg("folder").none());
}

}  // namespace attmirror::python

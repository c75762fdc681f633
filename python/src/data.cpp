// Datasets: made of NumPy arrays by the names and checks of files, generated, loaded and saved.
#include "base/numbers.hpp"
#include "bridge.hpp"
#include "data/dataset_arrays.hpp"
#include "data/generator_fields.hpp"
#include "descent/model_fields.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>

namespace attmirror::python {

namespace {

DataHandle handle_of(Dataset data, std::filesystem::path path = {}) {
  return {std::make_shared<const Dataset>(std::move(data)), std::move(path)};
}

DataHandle make_data(const nb::dict& arrays) {
  const NamedArrays named = to_named_arrays(arrays);
  return unlocked([&](const StopRequest&) { return handle_of(make_dataset(named)); });
}

// A view of the padded rows: nothing is copied. NumPy sees (rows, d) or (n, T, d) with the strides of the padding.
nb::object view_of(const DataHandle& self, nb::handle owner, ConstMatrixView rows, std::ptrdiff_t group) {
  const auto stride = static_cast<std::int64_t>(rows.stride);
  std::vector<std::size_t> shape{at(rows.rows), at(rows.cols)};
  std::vector<std::int64_t> strides{stride, 1};
  if (group > 0) {
    shape = {at(rows.rows / group), at(group), at(rows.cols)};
    strides = {stride * group, stride, 1};
  }
  static_cast<void>(self);
  return nb::cast(
      nb::ndarray<nb::numpy, const double>(rows.data, shape.size(), shape.data(), owner, strides.data()));
}

nb::object tokens_of(nb::handle_t<DataHandle> self) {
  const auto& data = nb::cast<const DataHandle&>(self);
  return view_of(data, self, data.data->all_tokens(),
                 data.data->equal_lengths() ? data.data->max_length() : 0);
}

nb::object queries_of(nb::handle_t<DataHandle> self) {
  const auto& data = nb::cast<const DataHandle&>(self);
  const bool grouped = !data.data->one_query_each() && data.data->equal_query_counts();
  return view_of(data, self, data.data->queries(), grouped ? data.data->query_count(0) : 0);
}

nb::object decoder_of(const DataHandle& self) {
  if (!self.data->has_decoder()) return nb::none();
  const ConstMatrixView v = self.data->decoder();
  return to_numpy(std::vector<double>(v.data, v.data + v.cols));
}

nb::object labels_of(const DataHandle& self) {
  const std::span<const double> labels = self.data->labels();
  Shape shape{static_cast<std::int64_t>(labels.size())};
  if (!self.data->one_query_each() && self.data->equal_query_counts())
    shape = {self.data->samples(), self.data->query_count(0)};
  return to_numpy(std::vector<double>(labels.begin(), labels.end()), shape);
}

std::vector<std::int64_t> lengths_of(const Dataset& data) {
  std::vector<std::int64_t> lengths;
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i) lengths.push_back(data.length(i));
  return lengths;
}

DataHandle generate_data(const std::string& kind, const nb::dict& settings) {
  GeneratorSettings given;
  const Fields<GeneratorSettings>& fields = generator_fields();
  apply(fields, to_given(settings, infos(fields), "generate()"), given);
  const GeneratorKind& generator = find_generator(kind);
  return handle_of(generate(generator, given));
}

nb::list generator_list() {
  nb::list list;
  for (const GeneratorKind& kind : generator_kinds()) {
    nb::dict settings;
    const GeneratorSettings defaults = kind.resolve({});
    for (const auto& field : generator_fields())
      if (kind.takes(field.name))
        settings[field.name.c_str()] =
            nb::make_tuple(to_python(field.read(defaults)), field.help, field.choices);
    list.append(nb::make_tuple(kind.name, kind.description, settings));
  }
  return list;
}

}  // namespace

void bind_data(nb::module_& module) {
  nb::class_<DataHandle>(module, "Dataset")
      .def(nb::new_(&make_data))
      .def("__getstate__",
           [](const DataHandle& self) {
             const bool causal = self.data->mask() == Mask::causal;
             return nb::make_tuple(to_dict(arrays_of(*self.data)), self.path.string(), causal);
           })
      .def("__setstate__",
           [](DataHandle& self, const nb::tuple& state) {
             NamedArrays arrays = to_named_arrays(nb::cast<nb::dict>(state[0]));
             const bool causal = nb::cast<bool>(state[2]);
             if (causal) arrays.erase("mask");
             Dataset data = make_dataset(arrays);
             new (&self) DataHandle(handle_of(causal ? with_causal_mask(std::move(data)) : std::move(data),
                                              nb::cast<std::string>(state[1])));
           })
      .def_prop_ro("samples", [](const DataHandle& self) { return self.data->samples(); })
      .def_prop_ro("dim", [](const DataHandle& self) { return self.data->dim(); })
      .def_prop_ro("max_length", [](const DataHandle& self) { return self.data->max_length(); })
      .def_prop_ro("total_queries", [](const DataHandle& self) { return self.data->total_queries(); })
      .def_prop_ro("equal_lengths", [](const DataHandle& self) { return self.data->equal_lengths(); })
      .def_prop_ro("lengths", [](const DataHandle& self) { return to_numpy(lengths_of(*self.data)); })
      .def_prop_ro("X", &tokens_of)
      .def_prop_ro("Z", &queries_of)
      .def_prop_ro("Y", &labels_of)
      .def_prop_ro("v", &decoder_of)
      .def_prop_ro("mask", [](const DataHandle& self) { return std::string(to_string(self.data->mask())); })
      .def_prop_ro("fingerprint", [](const DataHandle& self) { return self.data->fingerprint(); })
      .def_prop_ro("suspected_padding",
                   [](const DataHandle& self) -> std::optional<std::string> {
                     const auto padding = suspected_padding(*self.data);
                     return padding ? std::optional(to_string(*padding)) : std::nullopt;
                   })
      .def_prop_ro("path", [](const DataHandle& self) { return self.path.string(); })
      .def("arrays", [](const DataHandle& self) { return to_dict(arrays_of(*self.data)); })
      .def("describe", [](const DataHandle& self) { return to_string(*self.data); })
      .def("causal", [](const DataHandle& self) { return handle_of(with_causal_mask(*self.data)); })
      .def("save",
           [](DataHandle& self, const std::string& path) {
             const nb::gil_scoped_release release;
             save_dataset(path, *self.data);
             self.path = std::filesystem::absolute(path);
           })
      .def("optimal_tokens",
           [](const DataHandle& self) { return to_numpy(optimal_tokens(*self.data), *self.data); });
  module.def("load_dataset", [](const std::string& path) {
    return unlocked(
        [&](const StopRequest&) { return handle_of(load_dataset(path), std::filesystem::absolute(path)); });
  });
  module.def("generate", &generate_data);
  module.def("generators", &generator_list);
  module.def("score_blind_key_weights", [] { return to_numpy(score_blind_key_weights()); });
}

}  // namespace attmirror::python

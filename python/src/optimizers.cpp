// Optimizers by the names of methods and the fields of their tables; the Python classes are made from methods().
#include "bridge.hpp"
#include "descent/optimizer_fields.hpp"

#include <fmt/format.h>

namespace attmirror::python {

namespace {

OptimizerHandle make_handle(const std::string& method, const nb::dict& settings) {
  Given given = to_given(settings, optimizer_fields(), "the optimizer");
  given.put("optimizer", method);
  Optimizer optimizer = make_optimizer(given);
  validate(optimizer);
  return {method, std::move(optimizer)};
}

// Every setting that has an effect; the method's own name is not among them.
nb::dict settings_of(const OptimizerHandle& handle) {
  Given given = given_of(handle.optimizer, method_given({{"optimizer", handle.method}}));
  given.remove("optimizer");
  return to_dict(given);
}

// What Python's classes are made of: name, title, and of each field name, default, kind, help, range or choices.
nb::list methods() {
  constexpr std::array kinds{"flag", "count", "seed", "number", "word", "norm", "path", "pair"};
  nb::list list;
  for (const OptimizerMethod& method : optimizer_methods()) {
    if (!method.preset) continue;
    nb::list fields;
    std::visit(
        [&](const auto& preset) {
          for (const auto& field : fields_of(preset)) {
            // Those that are said only to be checked have no help; a named method has its norm.
            if (field.help.empty() || (field.name == "norm" && method.name != "steepest")) continue;
            fields.append(nb::make_tuple(field.name, to_python(field.read(preset)),
                                         kinds[static_cast<std::size_t>(field.kind)], field.help,
                                         field.choices.empty() ? expected(field) : field.choices,
                                         field.needed, field.shown_default));
          }
        },
        *method.preset);
    list.append(nb::make_tuple(std::string(method.name), std::string(method.title), fields));
  }
  return list;
}

}  // namespace

void bind_optimizers(nb::module_& module) {
  nb::class_<OptimizerHandle>(module, "Optimizer")
      .def(nb::new_(&make_handle))
      .def_prop_ro("method", [](const OptimizerHandle& self) { return self.method; })
      .def("settings", &settings_of)
      .def("describe", [](const OptimizerHandle& self) { return to_string(self.optimizer); })
      .def("geometry_norm",
           [](const OptimizerHandle& self) -> nb::object {
             const std::optional<Norm> norm = geometry_norm(self.optimizer);
             return norm ? to_python(*norm) : nb::none();
           })
      .def("geometry_p", [](const OptimizerHandle& self) { return geometry_p(self.optimizer); });
  module.def("methods", &methods);
}

}  // namespace attmirror::python

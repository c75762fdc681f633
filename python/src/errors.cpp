// Errors of the library as Python's: ValueError for what the caller gave, OSError for what the machine failed at. Both
// carry field, index and value (attmirror/_errors.py).
#include "bridge.hpp"
#include "descent/model_fields.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/isa.hpp>

namespace attmirror::python {

void raise_type_error(const std::string& message) { throw nb::type_error(message.c_str()); }

std::string spelled_in_python(const Error& error) {
  return error.message([](std::string_view field) { return sweep_spelling(training_fields(), field); });
}

namespace {

void raise(const Error& error) {
  const nb::module_ errors = nb::module_::import_("attmirror._errors");
  const nb::object type =
      errors.attr(error.kind() == ErrorKind::bad_input ? "InputError" : "EnvironmentFailure");
  const nb::object index = error.index() ? nb::cast(*error.index()) : nb::none();
  const nb::object exception = type(
      spelled_in_python(error), error.field().empty() ? "" : sweep_spelling(training_fields(), error.field()),
      index, error.value());
  PyErr_SetObject(type.ptr(), exception.ptr());
}

}  // namespace

void bind_errors(nb::module_& module) {
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Error& error) {
      raise(error);
    }
  });
  module.def("version", [] { return std::string(version()); });
  module.def("version_report", [] { return version_report(); });
  module.def("isa", [] { return std::string(to_string(active_isa())); });
  module.def("set_isa", [](const std::string& name) { set_isa(parse_isa(name)); });
}

}  // namespace attmirror::python

// Keyword arguments by the tables of fields: what a user gave, each value as the type that its field has.
#include "base/words.hpp"
#include "bridge.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror::python {

namespace {

std::string text_of(const nb::handle& value) { return nb::cast<std::string>(nb::str(value)); }

[[noreturn]] void refuse_type(const FieldInfo& field, const nb::handle& value, std::string_view expected) {
  raise_type_error(
      fmt::format("{} is {}: expected {}", field.name, nb::cast<std::string>(nb::repr(value)), expected));
}

// A whole number: an int, or what NumPy has for one. True and False are none.
nb::object index_of_python(const FieldInfo& field, const nb::handle& value) {
  if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr())) refuse_type(field, value, "a whole number");
  return nb::steal(PyNumber_Index(value.ptr()));
}

double number_of_python(const FieldInfo& field, const nb::handle& value) {
  if (PyBool_Check(value.ptr()) || PyUnicode_Check(value.ptr()) || !PyNumber_Check(value.ptr()))
    refuse_type(field, value, "a number");
  const double number = PyFloat_AsDouble(value.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    refuse_type(field, value, "a number");
  }
  return number;
}

bool flag_of_python(const FieldInfo& field, const nb::handle& value) {
  if (PyBool_Check(value.ptr())) return value.ptr() == Py_True;
  if (nb::hasattr(value, "dtype") && text_of(value.attr("dtype")) == "bool")
    return nb::cast<bool>(nb::bool_(value));
  refuse_type(field, value, "True or False");
}

std::string word_of_python(const FieldInfo& field, const nb::handle& value) {
  if (PyUnicode_Check(value.ptr())) return nb::cast<std::string>(value);
  refuse_type(field, value, field.choices.empty() ? "a text" : fmt::format("one of {}", choices_text(field)));
}

FieldValue value_of_python(const FieldInfo& field, const nb::handle& value) {
  switch (field.kind) {
    case FieldKind::flag:
      return flag_of_python(field, value);
    case FieldKind::count: {
      const nb::object whole = index_of_python(field, value);
      int overflow = 0;
      const long long count = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
      if (overflow != 0) refuse_type(field, value, "a whole number within 64 bits");
      return static_cast<std::int64_t>(count);
    }
    case FieldKind::seed: {
      const nb::object whole = index_of_python(field, value);
      const unsigned long long seed = PyLong_AsUnsignedLongLong(whole.ptr());
      if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        refuse_type(field, value, "a whole number from 0 to 2^64 - 1");
      }
      return static_cast<std::uint64_t>(seed);
    }
    case FieldKind::number:
      return number_of_python(field, value);
    case FieldKind::word:
      return word_of_python(field, value);
    case FieldKind::norm:
      if (PyUnicode_Check(value.ptr())) return nb::cast<std::string>(value);
      return fmt::format("{}", number_of_python(field, value));
    case FieldKind::path:
      return nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(value));
    case FieldKind::pair: {
      if (!PySequence_Check(value.ptr()) || nb::len(value) != 2) refuse_type(field, value, "two numbers");
      return std::array<double, 2>{number_of_python(field, value[0]), number_of_python(field, value[1])};
    }
  }
  refuse_type(field, value, "another type");
}

}  // namespace

Given to_given(const nb::dict& settings, const std::vector<const FieldInfo*>& fields,
               std::string_view owner) {
  Given given;
  for (const auto& [key, value] : settings) {
    if (value.is_none()) continue;
    const auto name = nb::cast<std::string>(key);
    const auto found =
        std::ranges::find_if(fields, [&](const FieldInfo* field) { return field->name == name; });
    if (found == fields.end()) {
      std::vector<std::string_view> names;
      for (const FieldInfo* field : fields) names.push_back(field->name);
      raise_type_error(fmt::format("{} has no argument {}{}", owner, name, did_you_mean(name, names)));
    }
    given.put((*found)->name, value_of_python(**found, value));
  }
  return given;
}

namespace {

struct PythonValue {
  nb::object operator()(std::monostate) const { return nb::none(); }
  nb::object operator()(bool value) const { return nb::cast(value); }
  nb::object operator()(std::int64_t value) const { return nb::cast(value); }
  nb::object operator()(std::uint64_t value) const { return nb::cast(value); }
  nb::object operator()(double value) const { return nb::cast(value); }
  nb::object operator()(const std::string& value) const { return nb::cast(value); }
  nb::object operator()(const std::array<double, 2>& value) const {
    return nb::make_tuple(value[0], value[1]);
  }
};

}  // namespace

nb::object to_python(const FieldValue& value) { return std::visit(PythonValue{}, value); }

nb::dict to_dict(const Given& given) {
  nb::dict result;
  for (const auto& [name, value] : given) result[std::string(name).c_str()] = to_python(value);
  return result;
}

Norm to_norm(const nb::handle& value) {
  if (PyUnicode_Check(value.ptr())) return parse_norm(nb::cast<std::string>(value));
  static const FieldInfo field{.name = "norm"};
  const double p = number_of_python(field, value);
  if (!(p >= 1))
    throw bad_value("norm", p, "a number from 1 to infinity, or frobenius, nuclear, spectral or schatten:P");
  return Norm::l(p);
}

nb::object to_python(const Norm& norm) {
  if (norm.is_entrywise()) return nb::cast(norm.p());
  return nb::cast(to_string(norm));
}

}  // namespace attmirror::python

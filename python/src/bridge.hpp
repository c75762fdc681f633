// What the files of the extension share: arrays in and out of NumPy, the objects that Python holds, calls that Ctrl-C
// can end, and a user's keyword arguments as fields.
//
// The extension `attmirror._core` is thin: it converts, releases the interpreter's lock and calls the library. What
// users see (classes, docstrings, types, plots) is written in Python, in python/attmirror.
#pragma once

#include "base/fields.hpp"
#include "descent/model_plan.hpp"
#include <attmirror/base/stop.hpp>
#include <attmirror/data/array.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/selection.hpp>
#include <attmirror/descent/descend.hpp>
#include <attmirror/margin/max_margin.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace attmirror::python {

namespace nb = nanobind;

// ---- arrays (arrays.cpp)

// Of any number type; the Python side sees to C order and to a type that an Array has.
using AnyArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu>;

nb::object to_numpy(std::vector<double> values, const Shape& shape);
nb::object to_numpy(std::vector<double> values);
nb::object to_numpy(std::vector<std::int64_t> values, const Shape& shape);
nb::object to_numpy(std::vector<std::int64_t> values);
nb::object to_numpy(const Matrix& values);
nb::object to_numpy(const Vector& values);
nb::object to_numpy(const Array& array);

nb::dict to_dict(const NamedArrays& arrays);
NamedArrays to_named_arrays(const nb::dict& arrays);

// Throw Error (bad input) for another number of axes; `name` is what the message calls the array.
Matrix matrix_of(const Doubles& values, std::string_view name);
Vector vector_of(const Doubles& values, std::string_view name);

// {"W": ..., "v": ...}, and back.
nb::dict to_dict(const Parameters& parameters);
Parameters to_parameters(const nb::dict& blocks);

// A token per query; (n, K) where every sequence has the same number K > 1 of queries.
nb::object to_numpy(const Selection& tokens, const Dataset& data);
Selection to_selection(const Integers& tokens);

// One row per query; a list where sequences differ in length.
nb::object rows_to_numpy(const std::vector<Vector>& rows);

// ---- what Python holds

struct DataHandle {
  std::shared_ptr<const Dataset> data;
  std::filesystem::path path{};  // of its file; empty: it has none
};

struct OptimizerHandle {
  std::string method;
  Optimizer optimizer;
};

struct RunHandle {
  std::shared_ptr<const Dataset> data;
  ModelPlan plan;
  Optimizer optimizer;
  std::int64_t asked = 0;  // steps
  DescentRun run;
  std::filesystem::path data_path{}, folder{};

  Attention model() const { return make_attention(*data, plan); }
};

struct SolutionHandle {
  std::shared_ptr<const Dataset> data;
  MarginProblem problem;
  MarginSolution solution;
};

// ---- words of users (fields_of_users.cpp)

// Values by the names of `fields`; None is not given. Throws a Python TypeError for a name that is none of them (with
// the nearest that is) or a value of another type; `owner` is what the message calls the function.
Given to_given(const nb::dict& settings, const std::vector<const FieldInfo*>& fields, std::string_view owner);
nb::object to_python(const FieldValue& value);
nb::dict to_dict(const Given& given);

// A number stands for l_p, a text for what parse_norm() reads.
Norm to_norm(const nb::handle& value);
// As Python has it: 1.5, inf or "nuclear".
nb::object to_python(const Norm& norm);

// ---- errors (errors.cpp)

[[noreturn]] void raise_type_error(const std::string& message);
// How Python spells the fields of options.
std::string spelled_in_python(const Error& error);

// ---- calls that take long (interrupts.cpp)

// While it lives, Ctrl-C also sets the flag of stop(), besides what Python does with it: computations look at the flag
// between steps. Python's own handlers can only run in its main thread, so in others this does nothing.
class StopOnInterrupt {
 public:
  StopOnInterrupt();
  ~StopOnInterrupt();
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;

  StopRequest stop() { return StopRequest::of(flag_); }
  // Lets Python's handlers run, of which the usual one raises KeyboardInterrupt. Call it with the interpreter's lock.
  static void run_handlers();

 private:
  friend void on_interrupt(int signal);
  std::atomic<bool> flag_{false};
  StopOnInterrupt* outer_ = nullptr;
  bool active_ = false;
};

// A function of the user's, called from computations. What it raises ends the computation and is raised again by
// finish(); StopIteration just ends it.
class UserFunction {
 public:
  UserFunction(nb::object function, StopRequest stop)
      : function_(std::move(function)), stop_(std::move(stop)) {}

  explicit operator bool() const { return !function_.is_none(); }

  // `arguments` makes the argument, with the interpreter's lock.
  template <class Arguments>
  void call(Arguments arguments) {
    const nb::gil_scoped_acquire lock;
    if (failure_) return;
    try {
      function_(arguments());
    } catch (nb::python_error& error) {
      stop_.request();
      if (!error.matches(PyExc_StopIteration)) failure_ = std::current_exception();
    } catch (...) {
      stop_.request();
      failure_ = std::current_exception();
    }
  }

  void finish() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  nb::object function_;
  StopRequest stop_;
  std::exception_ptr failure_;
};

// work(stop) without the interpreter's lock; a signal that came meanwhile is handled before this returns.
template <class Work>
auto unlocked(Work work) {
  StopOnInterrupt interrupt;
  auto result = [&] {
    const nb::gil_scoped_release release;
    return work(interrupt.stop());
  }();
  StopOnInterrupt::run_handlers();
  return result;
}

// ---- parts of the module, each in its own file

void bind_errors(nb::module_& module);
void bind_data(nb::module_& module);
void bind_optimizers(nb::module_& module);
void bind_descent(nb::module_& module);
void bind_objective(nb::module_& module);
void bind_margin(nb::module_& module);
void bind_paths(nb::module_& module);
void bind_sweep(nb::module_& module);
void bind_next_token(nb::module_& module);
void bind_papers(nb::module_& module);
void bind_theory(nb::module_& module);
void bind_which_margin(nb::module_& module);
void bind_attractors(nb::module_& module);

}  // namespace attmirror::python

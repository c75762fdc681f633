#include "bridge.hpp"

NB_MODULE(_core, module) {
  module.doc() =
      "The compiled part of attmirror. Its functions are called by the package; use those of attmirror.";
  attmirror::python::bind_errors(module);
  attmirror::python::bind_data(module);
  attmirror::python::bind_optimizers(module);
  attmirror::python::bind_descent(module);
  attmirror::python::bind_objective(module);
  attmirror::python::bind_margin(module);
  attmirror::python::bind_paths(module);
  attmirror::python::bind_sweep(module);
  attmirror::python::bind_next_token(module);
  attmirror::python::bind_papers(module);
  attmirror::python::bind_theory(module);
  attmirror::python::bind_which_margin(module);
  attmirror::python::bind_attractors(module);
}

// A geometry for descent: a strictly convex potential psi, its gradient (the mirror map), the inverse of
// that, and the norm that belongs to it.
//
// Mirror descent keeps the dual image y = grad psi(w) as its state and steps there:
//
//   y <- y - eta g,   w = (grad psi)^{-1}(y)
//
// The loop knows only this interface. A new geometry is one class; see CONTRIBUTING.md.
#pragma once

#include <attmirror/base/matrix.hpp>

#include <string>

namespace attmirror {

// A geometry: potential, gradient and its inverse, norms, divergence, and the step.
class MirrorMap {
 public:
  virtual ~MirrorMap() = default;

  virtual std::string name() const = 0;  // "l1.75"

  virtual double potential(ConstMatrixView w) const = 0;            // psi(w)
  virtual void map(ConstMatrixView w, MatrixView y) const = 0;      // y = grad psi(w); y may be w
  virtual void inverse(ConstMatrixView y, MatrixView w) const = 0;  // w with grad psi(w) = y; w may be y
  virtual double norm(ConstMatrixView w) const = 0;                 // ||w||
  virtual double dual_norm(ConstMatrixView g) const = 0;            // max <g, d> over ||d|| <= 1
  virtual double steepest(ConstMatrixView g,
                          MatrixView d) const = 0;  // the d that attains it, 0 for g = 0; returns it

  // D(a, b) = psi(a) - psi(b) - <grad psi(b), a - b> >= 0, and 0 only for a = b.
  virtual double bregman(ConstMatrixView a, ConstMatrixView b) const = 0;

  // One step: y <- y - scale g, then w from y. Fused where the map allows it.
  virtual void step(ConstMatrixView g, double scale, MatrixView y, MatrixView w) const = 0;
};

}  // namespace attmirror

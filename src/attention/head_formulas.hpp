// The heads that are not linear, on rows, for the kernels that are compiled once per instruction set: those of a
// single run (head_kernels.hpp) and those of runs in lanes (sweep/lane_heads.hpp). Each head is a struct with one
// function, which writes grad h(u) and returns h(u):
//
//   ReLU        h(u) = sum_r max(V_r^T u, 0)       grad h = sum of the V_r with V_r^T u > 0
//   quadratic   h(u) = v^T u - lambda |u|^2        grad h = v - 2 lambda u
//
// `problem` holds what belongs to a head (head_weights and head_rows, lambda). `rows` says how rows lie in memory:
//
//   rows.dot(a, b)             a^T b: a double, or one in each lane
//   rows.row(matrix, r)        row r of a matrix
//   rows.for_each(body)        body(c) for the places c of a row
//   rows.at(row, c), put(...)  what lies there: several numbers of a row, or one of each lane
#pragma once

#include "attention/block_kernels.hpp"
#include "base/simd.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

struct ReluFormulas {
  template <class Problem, class Rows>
  [[gnu::always_inline]] static auto evaluate(const Problem& problem, const Rows& rows, const double* /*v*/,
                                              const double* u, double* gradient) {
    using Entries = decltype(rows.at(u, 0));
    decltype(rows.dot(u, u)) value{};
    rows.for_each([&](std::ptrdiff_t c) { rows.put(gradient, c, Entries{}); });
    for (std::ptrdiff_t r = 0; r < problem.head_rows; ++r) {
      const double* row = rows.row(problem.head_weights, r);
      const auto activation = rows.dot(row, u);
      const auto off = activation <= 0.0;  // NaN is not, so that the loss shows it
      if (all(off)) continue;
      value = off ? value : value + activation;
      rows.for_each([&](std::ptrdiff_t c) {
        const auto before = rows.at(gradient, c);
        rows.put(gradient, c, off ? before : before + rows.at(row, c));
      });
    }
    return value;
  }
};

struct QuadraticFormulas {
  template <class Problem, class Rows>
  [[gnu::always_inline]] static auto evaluate(const Problem& problem, const Rows& rows, const double* v,
                                              const double* u, double* gradient) {
    rows.for_each([&](std::ptrdiff_t c) {
      rows.put(gradient, c, rows.at(v, c) - (2 * problem.lambda) * rows.at(u, c));
    });
    return rows.dot(v, u) - problem.lambda * rows.dot(u, u);
  }
};

// Calls use(formulas) with those of a head, or custom() for a head of the user's own. A form without its case does not
// compile (-Werror=switch). The linear head never comes here: its margins and scores come with the softmax.
template <class Use, class Custom>
[[gnu::always_inline]] inline void with_nonlinear_head(kernels::HeadForm form, Use use, Custom custom) {
  using kernels::HeadForm;
  switch (form) {
    case HeadForm::relu:
      return use(ReluFormulas{});
    case HeadForm::quadratic:
      return use(QuadraticFormulas{});
    case HeadForm::custom:
      return custom();
    case HeadForm::linear:
      return;
  }
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA

// Max-margin solutions as files, svm.npz: written by `attmirror margin`, compared with a run by `attmirror
// compare`, and readable by anyone with numpy.
//
//   W (d, d); p (d) for a prompt, v (d) for a decoder       none of them where the problem is infeasible
//   lambda (m), constraints (m, 3), bounds (m)              multipliers; [sequence, query, token] and c of each
//                                                           constraint
//   alpha (n) or (n, K), support (k, 3)                     the selected tokens, the constraints that hold with
//                                                           equality
//
// A file has both halves of a certificate, W and lambda, so that it can be checked without trusting its
// author. Files from other programs need only the weights; anything else they have is read.
#pragma once

#include <attmirror/margin/constraints.hpp>
#include <attmirror/margin/max_margin.hpp>
#include <attmirror/margin/problems.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// The content of a file; parts that it does not have are empty.
struct SavedSolution {
  std::string problem;  // what problem_name() said, or ""
  std::optional<Norm> kind;
  std::optional<MarginStatus> status;
  Matrix W;                                   // (d, d)
  Vector p, v;                                // d
  Vector lambda;                              // one per constraint
  std::vector<ConstraintOrigin> constraints;  // one per entry of lambda, or none
  Vector bounds;                              // one per entry of lambda, or none
  std::vector<ConstraintOrigin> support;
  std::optional<Selection> alpha;
  Matrix key_weights;  // (d, d): of a prompt
  // The second half of a Gen-SVM, whose W is the direction.
  Matrix W_fin;
  Vector lambda_fin;
  std::vector<ConstraintOrigin> constraints_fin;
  std::optional<std::uint64_t> data_fingerprint;  // of the data it was solved for

  // The weights of a problem as in max_margin(): (d, d), or (d, 1) for p or v. Empty if the file has none.
  Matrix weights(const MarginProblem& of) const;
};

// The name under which a file has the weights of this problem: "W", "p" or "v".
std::string_view weights_name(const MarginProblem& problem);

// Writes the file completely or not at all; equal solutions give equal bytes. Weights that are not finite
// (there is no solution) are left out. Throws Error: bad input if solution and problem do not fit,
// environment if it cannot be written.
void save_solution(const std::filesystem::path& path, const Dataset& data, const MarginProblem& problem,
                   const MarginSolution& solution);

// Both halves of a Gen-SVM: W and lambda are those of the direction; W_fin, lambda_fin, constraints_fin, ... those of
// the finite part; kept (k, 3); and R of W_fin + R W_dir where there is one.
struct GeneralSolution {
  MarginSolution direction, finite;
  std::optional<double> R{};

  // The worse of the two: infeasible before stopped before certified.
  MarginStatus status() const;
};
void save_solution(const std::filesystem::path& path, const Dataset& data, const GeneralFiniteSvm& problem,
                   const GeneralSolution& solution);

// Throws Error (bad input) that names the file and the array: shapes that do not fit the data or each other,
// numbers that are not finite, tokens that the data do not have, unknown words.
SavedSolution load_solution(const std::filesystem::path& path, const Dataset& data);

// What to do with multipliers for constraints that the problem does not have.
enum class Unmatched {
  refuse,  // Error (bad input): a certificate must be for this problem
  drop,    // for a warm start: the solution for another selection
};

// The multipliers in the order of `constraints`, 0 where the file has none. They are matched by sequence,
// query and token if the file has these, and by position otherwise. Empty if there are none. `name` is the
// name of the array in messages.
Vector matched_multipliers(const Vector& lambda, const std::vector<ConstraintOrigin>& origins,
                           const MarginConstraints& constraints, Unmatched unmatched, std::string_view name);

}  // namespace attmirror

// The bounds c of the constraints in `attmirror margin`: those of --bounds, or those of the relaxed problem.
//
// Where v is trained along with the attention weights, only the sequences that are support vectors of the decoder SVM
// keep pulling, and the constraints of the others relax from >= 1 to >= 0 (P2, joint training). Which problem relaxes
// follows from what was trained: that of the prompt, or that of W (K, Q).
#pragma once

#include "cli/margin_plan.hpp"

#include <string>
#include <vector>

namespace attmirror::cli {

// A list such as 1,0,1, or file:PATH, an .npy with one bound for each query. Throws Error (bad input) for anything
// else, for a count that is not that of the queries, and for a bound below 0.
std::vector<double> parse_bounds(const std::string& text, const Dataset& data);

// Checks that a relaxed problem makes sense for the run or the file, and says whether it is that of a prompt. Without
// a run it is the prompt's, as in P2, unless the file to check has a W.
bool relaxes_prompt(const MarginPlan& plan);

// The norm of the decoder SVM: that of the run's geometry, which v was trained in, too; without a run the Euclidean
// one.
Norm decoder_norm(const MarginPlan& plan);

// A file that was solved for other bounds than these is a certificate of another problem. Throws Error (bad input).
void check_saved_bounds(const SavedSolution& file, const std::filesystem::path& path,
                        const MarginConstraints& constraints);

}  // namespace attmirror::cli

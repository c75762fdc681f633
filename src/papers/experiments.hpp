// How the registry gets at the experiments: each file of this folder that holds one defines a function of this
// kind. Internal.
#pragma once

#include <attmirror/papers/experiment.hpp>

#include <memory>

namespace attmirror {

using ExperimentPointer = std::unique_ptr<const Experiment>;

ExperimentPointer make_p1_setting_a();       // p1_setting_a.cpp
ExperimentPointer make_p1_setting_b();       // p1_setting_b.cpp
ExperimentPointer make_p1_setting_c();       // p1_setting_c.cpp
ExperimentPointer make_p1_rates();           // p1_rates.cpp
ExperimentPointer make_p1_imdb();            // p1_imdb.cpp, from records
ExperimentPointer make_p1_imdb_depth();      // imdb_depth.cpp, from records
ExperimentPointer make_p2_single_input();    // E2.1
ExperimentPointer make_p2_multi_input();     // E2.2
ExperimentPointer make_p2_joint();           // E2.3
ExperimentPointer make_p2_losses();          // E2.4
ExperimentPointer make_p2_lemma();           // training p and training W
ExperimentPointer make_p2_vit();             // E2.5, out of scope
ExperimentPointer make_p3_plane();           // E3.1 and E3.2
ExperimentPointer make_p3_local();           // E3.3
ExperimentPointer make_p3_ranks();           // E3.4
ExperimentPointer make_p3_several_tokens();  // E3.5
ExperimentPointer make_p3_global();          // global and local optimality against d
ExperimentPointer make_p3_feasibility();     // feasibility against d
ExperimentPointer make_p3_sparsemax();       // the quadratic head
ExperimentPointer make_p3_causal();          // an output at every token
ExperimentPointer make_p3_global_grid();     // W and (K, Q) over n, T and d
ExperimentPointer make_p4_two_stage();       // P4's Figure 2 and its rates
ExperimentPointer make_p4_unseen();          // dataset shift
ExperimentPointer make_p4_joint();           // one stage instead of two
ExperimentPointer make_p4_mirror();          // other optimizers in both stages
ExperimentPointer make_p4_graph();           // beyond P4: cycles and soft labels
ExperimentPointer make_paths();              // regularization paths: W, (K,Q), l_p, joint
ExperimentPointer make_which_margin();       // which margin each optimizer maximizes
ExperimentPointer make_attractors();         // on which wrong tokens training can end
ExperimentPointer make_landscape();          // all selections of small problems
ExperimentPointer make_theory_checks();      // assumptions beside outcomes
ExperimentPointer make_imdb_clean();         // IMDb with every optimizer tuned alike, from records

}  // namespace attmirror

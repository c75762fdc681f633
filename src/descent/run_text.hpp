// What a run is made of, in words, and the command that makes it again. Internal.
#pragma once

#include "descent/model_plan.hpp"
#include <attmirror/descent/run_config.hpp>

#include <string>

namespace attmirror {

std::string trained_text(const RunConfig& config);  // "W, v"
std::string data_text(const RunConfig& config);     // "6 sequences, up to 8 tokens, dimension 10"
std::string model_text(const RunConfig& config);    // "KQ of rank 4, logistic loss, trains K, Q"
std::string extras_text(
    const RunConfig& config);  // ", head relu, causal mask"; nothing for the papers' plain model
std::string start_text(const RunConfig& config);    // "zero", "normal:0.1 (seed 7)", "W0.npy"
std::string weights_text(const RunConfig& config);  // "W", "K Q^T", "p": what the norm is of
std::string norm_text(const RunConfig& config);     // "‖W‖_1.75", "‖K Q^T‖_spectral"

// "attmirror train data.npz --p 3 --normalized ... -o run/": every option that is not at its default, in words of
// a shell.
std::string train_command(const RunConfig& config);

// The options of `attmirror train` that are not at their defaults: " --p 3 --lr 0.1 --normalized".
std::string training_options(const Optimizer& optimizer, const ModelPlan& model,
                             const DescentOptions& descent);

}  // namespace attmirror

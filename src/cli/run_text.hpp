// How the command words what a run is made of.
#pragma once

#include <attmirror/descent/run_config.hpp>

#include <string>

namespace attmirror::cli {

std::string trained_text(const RunConfig& config);  // "W, v"
std::string model_text(const RunConfig& config);    // "KQ of rank 4, logistic loss, trains K, Q"
std::string extras_text(
    const RunConfig& config);  // ", head relu, causal mask"; nothing for the papers' plain model
std::string start_text(const RunConfig& config);    // "zero", "normal:0.1 (seed 7)", "W0.npy"
std::string weights_text(const RunConfig& config);  // "W", "K Q^T", "p": what the norm is of
std::string norm_text(const RunConfig& config);     // "‖W‖_1.75", "‖K Q^T‖_spectral"

}  // namespace attmirror::cli

// What a run is made of, in words, and the command that makes it again. Internal.
#pragma once

#include <attmirror/descent/run_config.hpp>

#include <string>

namespace attmirror {

std::string trained_text(const RunConfig& config);  // "W, v"
std::string model_text(const RunConfig& config);    // "KQ of rank 4, logistic loss, trains K, Q"
std::string extras_text(
    const RunConfig& config);  // ", head relu, causal mask"; nothing for the papers' plain model
std::string start_text(const RunConfig& config);    // "zero", "normal:0.1 (seed 7)", "W0.npy"
std::string weights_text(const RunConfig& config);  // "W", "K Q^T", "p": what the norm is of
std::string norm_text(const RunConfig& config);     // "‖W‖_1.75", "‖K Q^T‖_spectral"

// "attmirror train data.npz --p 3 --normalized ... -o run/": every option that is not at its default, in words of a shell.
std::string train_command(const RunConfig& config);

// Text as one word of a POSIX shell.
std::string shell_word(const std::string& text);

}  // namespace attmirror

// The subcommands of `attmirror deep`.
#pragma once

#include "cli/options.hpp"

namespace attmirror::cli {

Subcommand add_attention_map(CLI::App& parent);
Subcommand add_deep_report(CLI::App& parent);
Subcommand add_deep_train(CLI::App& parent);
Subcommand add_histogram(CLI::App& parent);
Subcommand add_score(CLI::App& parent);
Subcommand add_tokenize(CLI::App& parent);

}  // namespace attmirror::cli

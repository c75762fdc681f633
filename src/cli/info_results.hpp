// What `attmirror info` says of the results of the other subcommands.
#pragma once

#include "base/json.hpp"

#include <filesystem>
#include <string>

namespace attmirror::cli {

// What an answer consists of: an object for --json, and text.
struct InfoAnswer {
  Json json;
  std::string text;
};

// Each throws Error (bad input) naming the file that is missing or damaged.
InfoAnswer describe_run_folder(const std::filesystem::path& path);
InfoAnswer describe_path_folder(const std::filesystem::path& path);
InfoAnswer describe_next_token(const std::filesystem::path& path);
InfoAnswer describe_training(const std::filesystem::path& path);
InfoAnswer describe_reproduction(const std::filesystem::path& path);
InfoAnswer describe_sweep(const std::filesystem::path& path);

}  // namespace attmirror::cli

// The folder that `attmirror next-token` leaves: files of its own, and a run folder for each stage.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace attmirror {

// "format" of its config.json.
inline constexpr std::string_view next_token_format = "attmirror next-token";

// Whether `path` is a folder with such a config.json.
bool is_next_token_folder(const std::filesystem::path& path);

// The run folders of its stages, in order, as far as they have begun.
std::vector<std::filesystem::path> next_token_stages(const std::filesystem::path& path);

}  // namespace attmirror

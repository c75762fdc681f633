// The folder that `attmirror next-token` leaves: files of its own, and a run folder for each stage.
#pragma once

#include <filesystem>
#include <vector>

namespace attmirror {

// The run folders of its stages, in order, as far as they have begun.
std::vector<std::filesystem::path> next_token_stages(const std::filesystem::path& path);

}  // namespace attmirror

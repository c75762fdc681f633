// What lies at a path, folder or file, among the things that attmirror writes. Internal.
#pragma once

#include "base/result_folder.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace attmirror {

// None where it is nothing that a page can show. Throws Error (bad input) where there is nothing, or an archive
// is damaged.
ResultKind result_kind(const std::filesystem::path& path);

// What to call sources on a page: the last part of each path where these differ, else whole paths.
std::vector<std::string> short_names(const std::vector<std::filesystem::path>& paths);

}  // namespace attmirror

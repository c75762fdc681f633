// Folders that a program writes its results into: made where they are missing, and locked against a second one. Internal.
#pragma once

#include <filesystem>
#include <vector>

namespace attmirror {

// Whether there is anything of this name, a link that leads nowhere included.
bool is_there(const std::filesystem::path& path);

// Makes a folder and those above it. Returns the ones that were missing, the innermost first, for remove_empty(). Throws
// Error (environment): "cannot make the folder out/run: Permission denied".
std::vector<std::filesystem::path> make_folders(const std::filesystem::path& path);

// Removes those that hold nothing: a run that was refused leaves nothing behind.
void remove_empty(const std::vector<std::filesystem::path>& folders) noexcept;

// A lock that ends with the file descriptor returned; -1 where the file system has none, and then it is done without.
// Throws Error (environment) where another process trains in the folder.
int lock_folder(const std::filesystem::path& path);

}  // namespace attmirror

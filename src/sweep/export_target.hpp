// Where an export may go. Internal.
#pragma once

#include "base/atomic_file.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/sweep/database.hpp>

#include <filesystem>
#include <string>
#include <system_error>

namespace attmirror {

// Throws Error (bad input) if the export would replace the database itself, under whatever name, or the log beside it,
// or if it would go through a symbolic link.
inline void check_export_target(const SweepDatabase& database, const std::filesystem::path& path) {
  refuse_link(path);
  for (const char* part : {"", "-wal", "-shm"}) {
    std::error_code ignored;
    const std::filesystem::path file = database.path().string() + part;
    if (std::filesystem::equivalent(file, path, ignored))
      throw bad_input("cannot export to " + path.string() + ": that is the database itself");
  }
}

}  // namespace attmirror

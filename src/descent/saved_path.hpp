// A path folder as it was left, with what its config.json says, for those who show it. Internal.
#pragma once

#include <attmirror/descent/path_folder.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace attmirror {

struct SavedPath {
  std::string kind;  // "global", "local"
  std::string norm;  // what parse_norm() reads
  std::string params, loss, head, mask;
  std::vector<std::string> trained;  // blocks by name
  std::filesystem::path data_path;
  std::uint64_t data_fingerprint = 0;
  std::string start;          // what a given direction is, in words; empty: none
  std::vector<double> radii;  // all that were asked for
  double tol = 0;
  std::int64_t starts = 0;
  std::uint64_t seed = 0;
  std::string version, commit, isa;
  Matrix key_weights;             // A of a prompt; empty for the identity
  std::vector<PathPoint> points;  // those that were reached

  bool is_joint() const;  // whether v is trained, too
  // The data of the path. Throws Error (bad input) where they are gone, or others by now.
  Dataset load_data() const;
};

// Throws Error (bad input) naming the file that is missing or damaged.
SavedPath load_saved_path(const std::filesystem::path& folder);

}  // namespace attmirror

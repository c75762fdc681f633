// A regularisation path as a folder, in the style of run folders:
//
//   config.json     everything that decides the bits of the path, resolved
//   metrics.jsonl   a line per radius: radius, loss, gap, ...; no clock times, equal paths are equal
//   path.npz        radius, decoder_radius, loss, log_loss, max_softmax, gap, evaluations, start, status, selected, and
//                   each trained block by name; first axis = radius. Fixed blocks as fixed_v, ...; key_weights of a prompt
//
// Each file is replaced as a whole; config.json is the first to go and the last to come.
#pragma once

#include <attmirror/descent/regularization_path.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace attmirror {

// Where the numbers came from, as far as the objects do not know it themselves.
struct PathSources {
  std::filesystem::path data{}, key_weights{};
  std::string start{};  // what the given directions are, in words; empty: none
};

// Whether one of the files is there.
bool holds_path(const std::filesystem::path& folder);

// Throws Error (bad input) where the folder has a config.json that is none of a path's.
void check_path_folder(const std::filesystem::path& folder);

// Makes the folder if need be. Throws Error: bad input, with nothing changed, where a config.json is none of a path's;
// environment where it cannot be written.
void save_path(const std::filesystem::path& folder, const Attention& model, const RegularizationPath& path,
               const PathSources& sources);

// The points of a folder, with all blocks. Throws Error (bad input) naming the file that is missing or damaged.
std::vector<PathPoint> load_path(const std::filesystem::path& folder);

}  // namespace attmirror

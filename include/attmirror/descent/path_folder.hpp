// A regularization path as a folder, like a run folder:
//
//   config.json     everything that decides the bits of the path, resolved
//   metrics.jsonl   a line per radius: radius, loss, gap, ...; no clock times, so equal paths give equal files
//   path.npz        radius, decoder_radius, loss, log_loss, max_softmax, gap, evaluations, start, status, selected, and
//                   each trained block by name; first axis = radius. Fixed blocks as fixed_v, ...; key_weights of a
//                   prompt
//
// Each file is replaced as a whole. config.json comes before the first point, and the others grow by a point
// at a time, so that a path that was killed can be resumed.
#pragma once

#include <attmirror/descent/regularization_path.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace attmirror {

// Where the numbers came from, as far as the objects themselves do not know it.
struct PathSources {
  std::filesystem::path data{}, key_weights{};
  std::string start{};  // what the given directions are, in words; empty: none
};

class ResultFolder;

// The folder of a path that this process writes. A path takes a while, so make this object first: it keeps
// other processes from writing there in the meantime.
class PathFolder {
 public:
  // Makes the folder if it does not exist and takes a lock on it. Changes no file; a folder that was made here
  // and stayed empty is removed at the end. Throws Error: environment if it cannot be written or another process
  // writes to it; bad input if it holds something else, or if one of the files above is a symbolic link.
  explicit PathFolder(std::filesystem::path path);
  ~PathFolder();
  PathFolder(const PathFolder&) = delete;
  PathFolder& operator=(const PathFolder&) = delete;

  // Whether one of the files exists.
  bool holds_path() const;

  // The points that the folder has of the path with these options, by ascending radius; none where it holds
  // no path. A path may be resumed with other radii, too, as long as it begins like this one. Throws Error
  // (bad input) where the folder holds another path, naming what differs, or a damaged one.
  std::vector<PathPoint> finished(const Attention& model, const PathOptions& options,
                                  const PathSources& sources) const;

  // Begins a path, instead of the one that the folder held when this object was made. Throws Error
  // (environment).
  void begin(const Attention& model, const PathOptions& options, const PathSources& sources);
  // Goes on with the path of finished(), whose radii may be others now.
  void resume(const Attention& model, const PathOptions& options, const PathSources& sources);
  // Replaces the points of a path that was begun, in any order.
  void save_points(const Attention& model, std::vector<PathPoint> points);

  // Replaces the path that the folder held when this object was made, but none that came later. Throws
  // Error (environment).
  void save(const Attention& model, const RegularizationPath& path, const PathSources& sources);

 private:
  std::unique_ptr<ResultFolder> files_;
  bool held_path_;

  void refuse_others();
};

// PathFolder(folder).save(model, path, sources).
void save_path(const std::filesystem::path& folder, const Attention& model, const RegularizationPath& path,
               const PathSources& sources);

// The points of a folder, with all blocks. Throws Error (bad input) naming the file that is missing or damaged.
std::vector<PathPoint> load_path(const std::filesystem::path& folder);

}  // namespace attmirror

// The files that attmirror 0.1.0 wrote (tests/fixtures/files-0.1.0), unpacked for a test.
//
// Later versions read them, go on with them to the bits that 0.1.0 would have reached, and repeat them. Bits belong
// to an instruction set, so there is a set of files for each; a test computes with the one of the set that is active.
#pragma once

#include "cli/command.hpp"
#include "support/paths.hpp"
#include <attmirror/base/isa.hpp>

#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace attmirror::test {

// A line of commands.txt: "runs/md" and {"train", "FOLDER/data/sphere.npz", ...}.
struct OldCommand {
  std::string name;
  Words words;
};

// Files are unpacked once in a process and not changed; what a test writes lies in a folder of its own.
class OldFiles {
 public:
  explicit OldFiles(Isa isa = active_isa());

  // A file or folder of the instruction set; the data, and the sweep files, which all sets have in common.
  std::filesystem::path operator/(std::string_view name) const { return set_ / name; }
  std::filesystem::path data(std::string_view name) const { return unpacked_ / "data" / name; }
  std::filesystem::path sweep(std::string_view name) const { return unpacked_ / "sweeps" / name; }

  // A copy of a file or folder of the set, to go on with; and a place for a new one.
  std::string copy(const std::string& name) const;
  std::string fresh(std::string_view name) const;

  // The lines of commands.txt of these kinds, as in "runs"; there are some of each.
  std::vector<OldCommand> commands(std::initializer_list<std::string_view> kinds) const;

  // `text` with the folder in which the set was made replaced by the one in which it is now.
  std::string moved(std::string text) const;

 private:
  std::filesystem::path unpacked_, set_;
  TemporaryFolder own_;
};

// Unpacks an archive of the set, "deep.tar.xz", into a folder.
void unpack_old(std::string_view archive, const std::filesystem::path& into);

nlohmann::json read_json(const std::filesystem::path& path);

// A configuration without what depends on who writes it: version, commit, and the folders of paths.
nlohmann::json without_origin(nlohmann::json config);

// The answer of a command without times and places.
nlohmann::json without_times(nlohmann::json answer);

// The same names, types, shapes and bytes.
void expect_same_arrays(const std::filesystem::path& old, const std::filesystem::path& ours);

}  // namespace attmirror::test

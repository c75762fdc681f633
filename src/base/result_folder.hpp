// The folders that attmirror leaves its results in: which kind one is, and what all writers of them share. Internal.
//
//   run            attmirror train, and each stage of attmirror next-token    "format" of config.json: "attmirror run"
//   path           attmirror path                                             "attmirror path"
//   next-token     attmirror next-token                                       "attmirror next-token"
//   training       attmirror deep train                                       "attmirror deep training"
//   reproduction   attmirror reproduce                                        no config.json; results/ID.json
//
// A folder belongs to one kind and to one writer at a time. Whoever writes never touches files that are not its own,
// and never writes through a symbolic link inside the folder: a link named metrics.jsonl may lead to a file of
// somebody else. The folder itself may be a link.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace attmirror {

// What attmirror leaves on disk; the last two are files.
enum class ResultKind { none, run, path, next_token, training, reproduction, sweep, solution };
std::string_view to_string(ResultKind kind);

// "format" of the config.json of such a folder; empty where the kind has none.
constexpr std::string_view format_of(ResultKind kind) {
  switch (kind) {
    case ResultKind::run:
      return "attmirror run";
    case ResultKind::path:
      return "attmirror path";
    case ResultKind::next_token:
      return "attmirror next-token";
    case ResultKind::training:
      return "attmirror deep training";
    case ResultKind::none:
    case ResultKind::reproduction:
    case ResultKind::sweep:
    case ResultKind::solution:
      break;
  }
  return {};
}

// Which kind of folder lies at `path`; none where it is not a folder, or not one of ours. Its config.json decides,
// where that is ours; the version of the format, and whether the rest is whole, are the reader's business.
ResultKind folder_kind(const std::filesystem::path& path);

// What a writer does with a result that the folder has already.
enum class ExistingResult { refuse, resume, replace };

// Those of `files`, names as ResultFolder takes them, that `folder` has, in their order.
std::vector<std::filesystem::path> find_files(const std::filesystem::path& folder,
                                              std::span<const std::string_view> files);

// The folder of a result that this process writes.
class ResultFolder {
 public:
  // `files` are the names that this kind of folder has, in the order in which they are removed: config.json last,
  // which says what the folder is until the end. "#" stands for digits, "*" for any text, at most one of them in each
  // part of a name: "final-#.safetensors", "results/*.json". The list is not copied.
  //
  // Makes the folder if it is not there and takes a lock on it, which ends with this object. Changes no file; a
  // folder that was made here and stayed empty is removed at the end. Throws Error: environment where it cannot be
  // written or another process writes to it; bad input where it belongs to another kind, or one of `files` is a
  // symbolic link.
  ResultFolder(std::filesystem::path path, ResultKind kind, std::span<const std::string_view> files);
  ~ResultFolder();
  ResultFolder(const ResultFolder&) = delete;
  ResultFolder& operator=(const ResultFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

  // Those of `files` that are there, in their order; and whether there is any.
  std::vector<std::filesystem::path> files() const { return find_files(path_, files_); }
  bool holds_result() const { return !files().empty(); }

  // Throws Error (bad input) where there is a config.json that is not of this kind: it belongs to something else.
  void refuse_foreign_config() const;

  // Removes temporary files (base/atomic_file.hpp) that writers of `files` left when they were killed. While we hold
  // the lock no other writer is alive; where the file system has no locks, those of dead processes go.
  void remove_leftovers() const;

  // Removes one of the files, if it is there. Throws Error (environment).
  void remove(std::string_view name) const;

 private:
  // Removes the folders that were made here, if they hold nothing.
  struct MadeFolders {
    explicit MadeFolders(const std::filesystem::path& path);
    ~MadeFolders();
    MadeFolders(const MadeFolders&) = delete;
    MadeFolders& operator=(const MadeFolders&) = delete;
    std::vector<std::filesystem::path> folders;
  };
  struct Lock {
    explicit Lock(const std::filesystem::path& path);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    int file = -1;
    bool held = false;  // not where the file system has no locks: then it is done without
  };

  std::filesystem::path path_;
  ResultKind kind_;
  std::span<const std::string_view> files_;
  MadeFolders made_;
  Lock lock_;
};

// Whether a name is that of an unfinished file, ".NAME.tmp-PID-RANDOM": what a killed writer leaves.
bool is_unfinished(std::string_view name);

// What lies in a folder; nothing where there is no such folder, or it may not be read. Throws Error (environment)
// where the machine fails: a folder that could not be looked into must not pass for an empty one.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

// Whether there is anything of this name, a link that leads nowhere included.
bool is_there(const std::filesystem::path& path);

// Makes a folder and those above it. Returns the ones that were missing, the innermost first. Throws Error
// (environment): "cannot make the folder out/run: Permission denied".
std::vector<std::filesystem::path> make_folders(const std::filesystem::path& path);

// Removes a file, or an empty folder, if it is there. Throws Error (environment).
void remove_file(const std::filesystem::path& path);

}  // namespace attmirror

#include "base/result_folder.hpp"

#include "base/atomic_file.hpp"
#include "base/json.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace attmirror {

namespace {

namespace fs = std::filesystem;

constexpr std::array tagged_kinds{ResultKind::run, ResultKind::path, ResultKind::next_token,
                                  ResultKind::training};

// Who writes such a folder, for messages: "out holds a result of attmirror path".
std::string_view writer_of(ResultKind kind) {
  switch (kind) {
    case ResultKind::run:
      return "attmirror train";
    case ResultKind::path:
      return "attmirror path";
    case ResultKind::next_token:
      return "attmirror next-token";
    case ResultKind::training:
      return "attmirror deep train";
    case ResultKind::reproduction:
      return "attmirror reproduce";
    case ResultKind::sweep:
      return "attmirror sweep";
    case ResultKind::solution:
      return "attmirror margin";
    case ResultKind::none:
      break;
  }
  return "attmirror";
}

// The kind that config.json names; none where there is no such file, or attmirror did not write it.
ResultKind config_kind(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_regular_file(folder / "config.json", ignored)) return ResultKind::none;
  try {
    const Json config = Json::parse(read_text_file(folder / "config.json"));
    if (!config.is_object()) return ResultKind::none;
    const Json format = config.value("format", Json());
    for (const ResultKind kind : tagged_kinds)
      if (format == format_of(kind)) return kind;
  } catch (const Json::exception&) {
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::environment) throw;
  }
  return ResultKind::none;
}

// By its beginning: a result that is damaged further on is still one of ours.
bool is_experiment_result(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string key;
  char c = 0;
  if (!(stream >> c) || c != '{') return false;
  constexpr std::string_view first_key = "\"format_version\"";
  key.resize(first_key.size());
  stream >> std::ws;
  stream.read(key.data(), static_cast<std::streamsize>(key.size()));
  return stream && key == first_key;
}

bool holds_experiment_results(const fs::path& folder) {
  return std::ranges::any_of(entries_of(folder / "results"), [](const fs::path& path) {
    return path.extension() == ".json" && is_experiment_result(path);
  });
}

// Whether a name is that of a part of a pattern: "final-#.safetensors" has the name "final-12.safetensors", and not
// "final-thesis.safetensors", which is a user's.
bool matches(std::string_view name, std::string_view part) {
  const std::size_t mark = part.find_first_of("#*");
  if (mark == std::string_view::npos) return name == part;
  const std::string_view before = part.substr(0, mark), behind = part.substr(mark + 1);
  if (name.size() <= before.size() + behind.size() || !name.starts_with(before) || !name.ends_with(behind))
    return false;
  if (part[mark] == '*') return true;
  name.remove_prefix(before.size());
  name.remove_suffix(behind.size());
  return name.find_first_not_of("0123456789") == std::string_view::npos;
}

enum class Part { folder, file };

// Calls visit(path, Part) for all that a pattern names: its files, and the folders on the way to them.
template <class Visit>
void visit_files(const fs::path& folder, std::string_view pattern, const Visit& visit) {
  const std::size_t slash = pattern.find('/');
  const std::string_view part = pattern.substr(0, slash);
  std::vector<fs::path> found;
  if (part.find_first_of("#*") == std::string_view::npos) {
    if (is_there(folder / part)) found.push_back(folder / part);
  } else {
    for (const fs::path& path : entries_of(folder))
      if (matches(path.filename().string(), part)) found.push_back(path);
    std::ranges::sort(found);
  }
  for (const fs::path& path : found) {
    visit(path, slash == std::string_view::npos ? Part::file : Part::folder);
    if (slash != std::string_view::npos) visit_files(path, pattern.substr(slash + 1), visit);
  }
}

// ".NAME.tmp-PID-RANDOM", as AtomicFile names what it writes.
struct TemporaryFile {
  std::string_view name;
  pid_t writer = 0;
};

std::optional<TemporaryFile> parse_temporary(std::string_view name) {
  constexpr std::string_view mark = ".tmp-";
  const std::size_t at = name.rfind(mark);
  if (!name.starts_with('.') || at == std::string_view::npos || at < 2) return std::nullopt;
  const std::string_view rest = name.substr(at + mark.size());
  TemporaryFile file{.name = name.substr(1, at - 1), .writer = 0};
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), file.writer);
  const std::string_view random = rest.substr(static_cast<std::size_t>(end - rest.data()));
  if (error != std::errc{} || file.writer <= 0 || random.size() < 2 || random[0] != '-' ||
      random.find_first_not_of("0123456789abcdef", 1) != std::string_view::npos)
    return std::nullopt;
  return file;
}

bool is_dead(pid_t process) { return ::kill(process, 0) != 0 && errno == ESRCH; }

// The temporary files of all that a pattern names.
void find_temporaries(const fs::path& folder, std::string_view pattern,
                      std::vector<std::pair<fs::path, pid_t>>& found) {
  const std::size_t slash = pattern.rfind('/');
  const std::string_view part = slash == std::string_view::npos ? pattern : pattern.substr(slash + 1);
  const auto look = [&](const fs::path& place) {
    for (const fs::path& path : entries_of(place)) {
      const std::string name = path.filename().string();
      if (const auto file = parse_temporary(name); file && matches(file->name, part))
        found.emplace_back(path, file->writer);
    }
  };
  if (slash == std::string_view::npos) return look(folder);
  visit_files(folder, pattern.substr(0, slash), [&](const fs::path& path, Part kind) {
    if (kind == Part::file) look(path);
  });
}

}  // namespace

std::string_view to_string(ResultKind kind) {
  switch (kind) {
    case ResultKind::run:
      return "run";
    case ResultKind::path:
      return "path";
    case ResultKind::next_token:
      return "next-token";
    case ResultKind::training:
      return "training";
    case ResultKind::reproduction:
      return "reproduction";
    case ResultKind::sweep:
      return "sweep";
    case ResultKind::solution:
      return "solution";
    case ResultKind::none:
      break;
  }
  return "none";
}

ResultKind folder_kind(const fs::path& path) {
  const ResultKind kind = config_kind(path);
  if (kind != ResultKind::none) return kind;
  return holds_experiment_results(path) ? ResultKind::reproduction : ResultKind::none;
}

std::vector<fs::path> find_files(const fs::path& folder, std::span<const std::string_view> files) {
  std::vector<fs::path> found;
  for (const std::string_view pattern : files)
    visit_files(folder, pattern, [&](const fs::path& path, Part part) {
      if (part == Part::file) found.push_back(path);
    });
  return found;
}

ResultFolder::MadeFolders::MadeFolders(const fs::path& path) : folders(make_folders(path)) {}

ResultFolder::MadeFolders::~MadeFolders() {
  std::error_code ignored;
  for (const fs::path& folder : folders) fs::remove(folder, ignored);
}

ResultFolder::Lock::Lock(const fs::path& path)
    : file(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (file < 0) return;
  held = ::flock(file, LOCK_EX | LOCK_NB) == 0;
  if (held || errno != EWOULDBLOCK) return;
  ::close(file);
  throw environment_error(fmt::format("{} is in use: another process writes to it", path.string()));
}

ResultFolder::Lock::~Lock() {
  if (file >= 0) ::close(file);
}

ResultFolder::ResultFolder(fs::path path, ResultKind kind, std::span<const std::string_view> files)
    : path_(std::move(path)), kind_(kind), files_(files), made_(path_), lock_(path_) {
  const ResultKind there = folder_kind(path_);
  if (there != ResultKind::none && there != kind_)
    throw bad_input(
        fmt::format("{} holds a result of {}: give another folder", path_.string(), writer_of(there)));
  for (const std::string_view pattern : files_)
    visit_files(path_, pattern, [](const fs::path& found, Part) {
      if (std::error_code ignored; fs::is_symlink(found, ignored))
        throw bad_input(fmt::format(
            "{} is a symbolic link: attmirror does not write through links inside the folder of a result",
            found.string()));
    });
  check_writable(path_ / files_.back());
}

ResultFolder::~ResultFolder() = default;

void ResultFolder::refuse_foreign_config() const {
  if (is_there(path_ / "config.json") && config_kind(path_) != kind_)
    throw bad_input(fmt::format("{} holds something else: its config.json is not a configuration of {}",
                                path_.string(), writer_of(kind_)));
}

void ResultFolder::remove_leftovers() const {
  std::vector<std::pair<fs::path, pid_t>> found;
  for (const std::string_view pattern : files_) find_temporaries(path_, pattern, found);
  for (const auto& [file, writer] : found)
    if (lock_.held || is_dead(writer)) remove_file(file);
}

void ResultFolder::remove(std::string_view name) const { remove_file(path_ / name); }

bool is_unfinished(std::string_view name) { return parse_temporary(name).has_value(); }

std::vector<fs::path> entries_of(const fs::path& folder) {
  // Not std::filesystem's iterator: that of g++ 12 ends the program where memory is short.
  const auto fail = [&] {
    return environment_error(fmt::format("cannot read the folder {}: {}", folder.string(),
                                         std::generic_category().message(errno)));
  };
  struct Close {
    void operator()(DIR* open) const { ::closedir(open); }
  };
  std::vector<fs::path> found;
  const std::unique_ptr<DIR, Close> open(::opendir(folder.c_str()));
  if (!open) {
    if (errno == ENOENT || errno == ENOTDIR || errno == EACCES) return found;
    throw fail();
  }
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(open.get());
    if (!entry && errno != 0) throw fail();
    if (!entry) return found;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") found.push_back(folder / name);
  }
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

std::vector<fs::path> make_folders(const fs::path& path) {
  std::vector<fs::path> made;
  std::error_code error;
  for (fs::path folder = fs::absolute(path, error).lexically_normal();
       !folder.empty() && folder != folder.root_path() && !is_there(folder); folder = folder.parent_path())
    made.push_back(folder);
  fs::create_directories(path, error);
  if (!error && !fs::is_directory(path)) error = std::make_error_code(std::errc::not_a_directory);
  if (error)
    throw environment_error(fmt::format("cannot create the folder {}: {}", path.string(), error.message()));
  return made;
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw environment_error(fmt::format("cannot remove {}: {}", path.string(), error.message()));
}

}  // namespace attmirror

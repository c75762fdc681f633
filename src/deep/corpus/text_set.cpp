// Text sets on disk: one file, or the 25,000 files of half of aclImdb.
#include "base/atomic_file.hpp"
#include "deep/corpus/xz.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/text_set.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace attmirror {
namespace {

namespace fs = std::filesystem;

// aclImdb calls its files NUMBER_RATING.txt.
std::uint64_t number_of(const std::string& name) {
  std::uint64_t number = std::numeric_limits<std::uint64_t>::max();  // what has none comes last
  std::from_chars(name.data(), name.data() + name.size(), number);
  return number;
}

void append_folder(const fs::path& folder, std::int32_t label, TextSet& set) {
  std::vector<std::pair<std::uint64_t, std::string>> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".txt") {
      const std::string name = entry->path().filename().string();
      names.emplace_back(number_of(name), name);
    }
  if (error) throw bad_input(fmt::format("cannot read the folder {}: {}", folder.string(), error.message()));
  if (names.empty())
    throw bad_input(fmt::format("the folder {} has no .txt files: expected a review each", folder.string()));
  std::sort(names.begin(), names.end());
  for (const auto& numbered : names) {
    const fs::path path = folder / numbered.second;
    set.texts.push_back(read_text_file(path));
    set.labels.push_back(label);
    if (set.texts.back().find('\0') != std::string::npos)
      throw bad_input(fmt::format("{} has a NUL byte: expected text in UTF-8", path.string()));
  }
}

TextSet read_folder(const fs::path& folder) {
  std::error_code error;
  const auto has = [&](const char* name) { return fs::is_directory(folder / name, error); };
  if (!has("neg") && !has("pos") && has("train") && has("test"))
    throw bad_input(fmt::format("{} holds two sets: expected one of {} and {}", folder.string(),
                                (folder / "train").string(), (folder / "test").string()));
  for (const char* name : {"neg", "pos"})
    if (!has(name))
      throw bad_input(fmt::format("{} has no folder {}: expected neg and pos, as in aclImdb/train",
                                  folder.string(), name));
  TextSet set;
  append_folder(folder / "neg", 0, set);
  append_folder(folder / "pos", 1, set);
  return set;
}

// Says before unpacking that a file is of no kind we read.
void require_tsv(const fs::path& path) {
  const fs::path name = path.extension() == ".xz" ? path.stem() : path.filename();
  if (name.extension() == ".tsv") return;
  std::error_code error;
  if (!fs::exists(path, error)) read_file(path);  // says so
  throw bad_input(fmt::format(
      "{} is not a text set: expected a .tsv or .tsv.xz file, or a folder with neg and pos", path.string()));
}

}  // namespace

TextSet read_text_set(const fs::path& path, const TextSetOptions& options) {
  std::error_code error;
  if (fs::is_directory(path, error)) return read_folder(path);
  require_tsv(path);
  return parse_text_set(read_maybe_packed(path), path.string(), options);
}

std::vector<PivotalSentence> read_pivotal_sentences(const fs::path& path) {
  return parse_pivotal_sentences(read_maybe_packed(path), path.string());
}

}  // namespace attmirror

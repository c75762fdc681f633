#include "cli/old_files.hpp"

#include <attmirror/data/npz.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace attmirror::test {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

fs::path old_fixture(std::string_view name) { return fixture("files-0.1.0") / name; }

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

void erase_keys(Json& json, std::initializer_list<const char*> keys) {
  if (json.is_object())
    for (const char* key : keys) json.erase(key);
  if (json.is_structured())
    for (Json& value : json) erase_keys(value, keys);
}

// Without the folders of values and keys that are paths.
Json with_short_paths(const Json& json) {
  const auto shortened = [](const std::string& text) {
    return text.starts_with("/") ? fs::path(text).filename().string() : text;
  };
  if (json.is_string()) return shortened(json.get<std::string>());
  Json result = json;
  if (json.is_object()) {
    result.clear();
    for (const auto& [key, value] : json.items()) result[shortened(key)] = with_short_paths(value);
  } else if (json.is_array()) {
    for (Json& value : result) value = with_short_paths(value);
  }
  return result;
}

// data/, sweeps/ and the sets that were asked for, in a folder that vanishes with the process.
fs::path unpacked(Isa isa) {
  static const TemporaryFolder folder;
  if (!fs::exists(folder / "data")) {
    for (const char* name : {"data", "sweeps"})
      fs::copy(old_fixture(name), folder / name, fs::copy_options::recursive);
    // Sweep files name these beside them.
    for (const char* name : {"key_weights.npy", "start.npy", "sphere.npz"})
      fs::copy_file(folder / "data" / name, folder / "sweeps" / name);
  }
  if (!fs::exists(folder / to_string(isa)))
    unpack_old(fmt::format("{}.tar.xz", to_string(isa)), folder.path());
  return folder.path();
}

}  // namespace

void unpack_old(std::string_view archive, const fs::path& into) {
  const std::string command = fmt::format("cd '{}' && '{}' -E tar xf '{}'", into.string(),
                                          cmake_path().string(), old_fixture(archive).string());
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
}

OldFiles::OldFiles(Isa isa) : unpacked_(unpacked(isa)), set_(unpacked_ / to_string(isa)) {}

std::string OldFiles::copy(const std::string& name) const {
  const std::string to = fresh(name);
  fs::copy(set_ / name, to, fs::copy_options::recursive);
  return to;
}

std::string OldFiles::fresh(std::string_view name) const {
  static int count = 0;
  const fs::path folder = own_ / fmt::format("{}", ++count);
  fs::create_directories((folder / name).parent_path());
  return (folder / name).string();
}

std::vector<OldCommand> OldFiles::commands(std::initializer_list<std::string_view> kinds) const {
  std::vector<OldCommand> commands;
  for (const std::string_view kind : kinds) {
    const std::size_t before = commands.size();
    std::ifstream file(old_fixture("commands.txt"));
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with(fmt::format("{}/", kind))) continue;
      replace_all(line, "@", (unpacked_ / "data").string());
      replace_all(line, "%", set_.string());
      std::istringstream words(line);
      OldCommand& command = commands.emplace_back();
      words >> command.name;
      for (std::string word; words >> word;) command.words.push_back(word);
    }
    if (commands.size() == before) throw std::runtime_error(fmt::format("commands.txt has no {}", kind));
  }
  return commands;
}

std::string OldFiles::moved(std::string text) const {
  replace_all(text, "/data/attmirror-0.1.0", unpacked_.string());
  return text;
}

Json read_json(const fs::path& path) { return Json::parse(file_text(path)); }

Json without_origin(Json config) {
  erase_keys(config, {"version", "commit"});
  return with_short_paths(config);
}

Json without_times(Json answer) {
  erase_keys(answer, {"seconds", "output", "version", "commit"});
  // Which runs of 0.1.0 did not say.
  erase_keys(answer, {"differences", "min_max_softmax", "unsaturated", "skipped", "warnings"});
  return with_short_paths(answer);
}

void expect_same_arrays(const fs::path& old, const fs::path& ours) {
  const NamedArrays a = load_npz(old);
  NamedArrays b = load_npz(ours);
  // Data sets that end in rows of zeros now say that these are tokens.
  if (!a.contains("lengths")) b.erase("lengths");
  const auto names = [](const NamedArrays& arrays) {
    std::vector<std::string> all;
    for (const auto& [name, array] : arrays) all.push_back(name);
    return all;
  };
  EXPECT_EQ(names(a), names(b)) << old << " and " << ours;
  for (const auto& [name, array] : a) {
    const auto other = b.find(name);
    if (other == b.end()) continue;
    EXPECT_EQ(array.dtype(), other->second.dtype()) << name << " of " << ours;
    EXPECT_EQ(array.shape(), other->second.shape()) << name << " of " << ours;
    EXPECT_TRUE(std::ranges::equal(array.bytes(), other->second.bytes()))
        << name << " of " << old << " and " << ours << " has other bits";
  }
}

}  // namespace attmirror::test

#include "base/json.hpp"
#include <attmirror/base/atomic_file.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/descent/run_folder.hpp>
#include <attmirror/next_token/model.hpp>
#include <attmirror/next_token/run_folders.hpp>

#include <string>
#include <system_error>

namespace attmirror {

bool is_next_token_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path / "config.json", ignored)) return false;
  try {
    const Json json = Json::parse(read_text_file(path / "config.json"));
    return json.is_object() && json.value("format", "") == next_token_format;
  } catch (const Json::exception&) {  // somebody else's
    return false;
  } catch (const Error&) {
    return false;
  }
}

std::vector<std::filesystem::path> next_token_stages(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> folders;
  for (const Stage stage : {Stage::collocation, Stage::attention, Stage::joint})
    if (const auto folder = path / std::string(to_string(stage)); is_run_folder(folder))
      folders.push_back(folder);
  return folders;
}

}  // namespace attmirror

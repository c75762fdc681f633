#include "cli/deep/model_files.hpp"

#include <attmirror/base/error.hpp>

#include <algorithm>
#include <map>
#include <system_error>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> final_weights(const fs::path& folder) {
  std::vector<std::pair<long, fs::path>> found;  // by the number of the trial: 10 comes after 9
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string stem = entry.path().stem().string();
    if (entry.path().extension() != ".safetensors" || !stem.starts_with("final")) continue;
    if (stem == "final")
      found.emplace_back(-1, entry.path());
    else if (stem.starts_with("final-"))
      found.emplace_back(std::strtol(stem.c_str() + 6, nullptr, 10), entry.path());
  }
  std::ranges::sort(found);
  std::vector<fs::path> paths;
  for (const auto& [trial, path] : found) paths.push_back(path);
  if (paths.empty())
    throw bad_input(
        fmt::format("{} has no final.safetensors: expected a weights file, or the folder of a training that "
                    "has ended",
                    folder.string()));
  return paths;
}

// "l1.1" for l1.1/final.safetensors, "l1.1/final-3" where there are several, "weights" for weights.safetensors.
std::string short_name(const fs::path& path) {
  const std::string stem = path.stem().string();
  std::error_code error;
  const std::string folder = fs::absolute(path, error).parent_path().filename().string();
  if (stem == "final" && !folder.empty()) return folder;
  if (stem.starts_with("final-") && !folder.empty()) return folder + "/" + stem.substr(6);
  return stem;
}

}  // namespace

std::vector<ModelFile> model_files(const std::vector<fs::path>& given) {
  std::vector<ModelFile> files;
  for (const fs::path& path : given) {
    std::error_code error;
    if (!fs::exists(path, error))
      throw bad_input(fmt::format("cannot read {}: No such file or directory", path.string()));
    if (fs::is_directory(path, error))
      for (const fs::path& weights : final_weights(path)) files.push_back({weights, ""});
    else
      files.push_back({path, ""});
  }
  std::map<std::string, int> times;
  for (const ModelFile& file : files) ++times[short_name(file.path)];
  for (ModelFile& file : files)
    file.name = times[short_name(file.path)] > 1 ? file.path.string() : short_name(file.path);
  return files;
}

TextModels load_text_models(const std::vector<fs::path>& given, const fs::path& vocabulary) {
  TextModels result{load_wordpiece(vocabulary), {}};
  for (const ModelFile& file : model_files(given)) {
    result.models.push_back(deep::load_text_model(file.path, result.vocabulary, vocabulary.string()));
    result.models.back().name = file.name;
  }
  return result;
}

std::vector<deep::ImageModel> load_image_models(const std::vector<fs::path>& given, const ImageSet& images,
                                                const std::string& images_name) {
  std::vector<deep::ImageModel> models;
  for (const ModelFile& file : model_files(given)) {
    models.push_back(deep::load_image_model(file.path, images, images_name));
    models.back().name = file.name;
  }
  return models;
}

}  // namespace attmirror::cli

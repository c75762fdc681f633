// The networks that a subcommand looks at, as users name them: weight files, or folders of attmirror deep train.
#pragma once

#include "deep/views/view_pages.hpp"
#include <attmirror/deep/image_attention.hpp>
#include <attmirror/deep/network.hpp>
#include <attmirror/deep/text_attention.hpp>
#include <attmirror/deep/text_set.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace attmirror::cli {

struct ModelFile {
  std::filesystem::path path;
  std::string name;  // short, and different from the others'
};

// A run folder stands for the weights it ended with, those of all its trials. Throws Error (bad input), naming the
// folder, where it has none.
std::vector<ModelFile> model_files(const std::vector<std::filesystem::path>& given);

struct TextModels {
  WordPiece vocabulary;
  std::vector<deep::TextModel> models;
};
TextModels load_text_models(const std::vector<std::filesystem::path>& given,
                            const std::filesystem::path& vocabulary);

// `images_name` is the name of the images in messages.
std::vector<deep::ImageModel> load_image_models(const std::vector<std::filesystem::path>& given,
                                                const ImageSet& images, const std::string& images_name);

}  // namespace attmirror::cli

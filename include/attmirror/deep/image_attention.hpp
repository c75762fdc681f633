// What a network for images attends to in one image.
//
// The answer is read from the class token, so its row of attention is the one to look at: how much it takes from
// each patch, in every block and head. Weights and images must belong together: as many classes, as many channels.
// Images of any size fit, because they are resized to the network's.
#pragma once

#include <attmirror/deep/image_set.hpp>
#include <attmirror/deep/vit.hpp>
#include <attmirror/report/patch_maps.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror::deep {

// A trained network for images, with the name that pages give it.
struct ImageModel {
  std::string name;  // in pages and messages
  std::shared_ptr<VisionTransformer> network;
};

// `images_name` is the name of the images in messages. Throws Error (bad input), naming the file, for weights of
// another kind, and as check_images() does.
ImageModel load_image_model(const std::filesystem::path& path, const ImageSet& images,
                            std::string_view images_name);

// Throws Error (bad input), naming both sides, where model and images have other numbers of classes or channels.
void check_images(const ImageModel& model, const ImageSet& images, std::string_view images_name);

// Where the heads of a network look in one image, and what it says.
struct ImageAttention {
  PatchAttention patches;             // without words for the answer
  std::vector<double> probabilities;  // of the classes

  std::int64_t answer() const;  // the class with the largest probability
};

// Image `index` of the set, as in an evaluation: resized and normalized, nothing at random. Throws Error (bad
// input) for an index that the set does not have; and, naming the model, as check_images() does and if the
// network's numbers are not finite, as after a training that diverged.
ImageAttention image_attention(const ImageModel& model, const ImageSet& images, std::int64_t index);

}  // namespace attmirror::deep

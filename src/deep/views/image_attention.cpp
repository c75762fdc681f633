#include <attmirror/base/error.hpp>
#include <attmirror/deep/image_attention.hpp>
#include <attmirror/deep/image_batch.hpp>
#include <attmirror/deep/weights_file.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace attmirror::deep {

namespace {

// The set that has this image alone: a batch is made of a whole set, and the others need not travel.
ImageSet single_image(const ImageSet& images, std::int64_t index) {
  if (index < 0 || index >= images.count())
    throw bad_input(fmt::format("image is {}: expected 0 to {}", index, images.count() - 1));
  if (static_cast<std::int64_t>(images.pixels.size()) != images.count() * images.image_bytes())
    throw bad_input(fmt::format("pixels are {} bytes: expected {} for {} images", images.pixels.size(),
                                images.count() * images.image_bytes(), images.count()));
  ImageSet one;
  one.channels = images.channels;
  one.height = images.height;
  one.width = images.width;
  one.classes = images.classes;
  const auto begin = images.pixels.begin() + index * images.image_bytes();
  one.pixels.assign(begin, begin + images.image_bytes());
  one.labels = {images.labels[static_cast<std::size_t>(index)]};
  return one;
}

}  // namespace

void check_images(const ImageModel& model, const ImageSet& images, std::string_view images_name) {
  const VitOptions& options = model.network->options();
  const auto refuse = [&](std::int64_t ours, std::int64_t theirs, std::string_view what) {
    throw bad_input(fmt::format("{} has {} {}, and {} has {}: they do not belong together", model.name, ours,
                                what, images_name, theirs));
  };
  if (options.classes != images.classes) refuse(options.classes, images.classes, "classes");
  if (options.channels != images.channels) refuse(options.channels, images.channels, "color channels");
}

ImageModel load_image_model(const std::filesystem::path& path, const ImageSet& images,
                            std::string_view images_name) {
  const std::shared_ptr<Network> network = load_network(path);
  ImageModel model{path.string(), std::dynamic_pointer_cast<VisionTransformer>(network)};
  if (!model.network)
    throw bad_input(fmt::format("{} holds weights of a network of kind {}: expected one for images, a vit",
                                path.string(), network->kind()));
  check_images(model, images, images_name);
  return model;
}

std::int64_t ImageAttention::answer() const {
  return std::ranges::max_element(probabilities) - probabilities.begin();
}

ImageAttention image_attention(const ImageModel& model, const ImageSet& images, std::int64_t index) {
  check_images(model, images, "the set of images");
  const VitOptions& options = model.network->options();
  const at::NoGradGuard no_gradients;
  const std::int64_t first = 0;
  Augmentation evaluation;
  evaluation.size = options.image;
  const DeviceImages there =
      device_images(single_image(images, index), model.network->parameters().front().device());
  const Batch batch =
      image_batch(there, std::span(&first, 1), evaluation, options.tokens(), std::nullopt, std::nullopt);

  ImageAttention result;
  const at::Tensor answer =
      at::softmax(model.network->logits(batch).to(at::kCPU, at::kDouble), 1).contiguous();
  result.probabilities.assign(answer.data_ptr<double>(), answer.data_ptr<double>() + answer.numel());
  const std::vector<at::Tensor> maps = model.network->attention_maps(batch);
  PatchAttention& patches = result.patches;
  patches.blocks = static_cast<std::int64_t>(maps.size());
  patches.heads = maps.front().size(0);
  patches.side = options.image / options.patch;
  for (const at::Tensor& map : maps) {
    const at::Tensor row = map.select(1, 0).to(at::kCPU, at::kFloat).contiguous();
    patches.probabilities.insert(patches.probabilities.end(), row.data_ptr<float>(),
                                 row.data_ptr<float>() + row.numel());
  }
  const auto finite = [](auto p) { return std::isfinite(p); };
  if (!std::ranges::all_of(result.probabilities, finite) ||
      !std::ranges::all_of(patches.probabilities, finite))
    throw bad_input(
        fmt::format("{} answers with numbers that are not finite: its training diverged", model.name));
  return result;
}

}  // namespace attmirror::deep

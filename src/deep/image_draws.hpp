// image_batch() in two halves: what is drawn on the host, on any thread, and what the device makes of it. A step
// that is recorded (step_graphs.hpp) has the second half in it, and the first outside. Internal.
#pragma once

#include <attmirror/deep/image_batch.hpp>

#include <cstdint>
#include <optional>
#include <span>

namespace attmirror::deep {

struct ImageDraws {
  at::Tensor numbers;       // int64 [4, samples]: which image, where it is cut, whether it is mirrored
  at::Tensor dropout_keys;  // int64 [samples * tokens], or undefined
  std::uint64_t dropout_seed = 0;
  bool augmented = false;

  ImageDraws to(at::Device device) const;
};

// In page-locked memory where there is a GPU. Throws Error (bad input) as image_batch() does.
ImageDraws draw_images(const DeviceImages& images, std::span<const std::int64_t> samples,
                       const Augmentation& options, std::int64_t tokens, std::optional<DropoutPlace> dropout,
                       std::optional<DropoutPlace> augment);

// What pixels are multiplied by and what is added, of each channel: float [6].
at::Tensor image_normalizer(const Augmentation& options, at::Device device);

// `draws` and `normalizer` lie where the images do.
Batch batch_of_draws(const DeviceImages& images, const ImageDraws& draws, const at::Tensor& normalizer,
                     const Augmentation& options, std::int64_t tokens, std::int64_t first_sample);

}  // namespace attmirror::deep

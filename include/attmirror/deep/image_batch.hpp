// Batches of images from an ImageSet, including P1's augmentation, made on the device that trains.
//
//   training:    32 x 32 cut at random from the image padded by 4 zeros on each side; resized (bilinear) to 48 x 48;
//                mirrored left to right with probability 1/2; normalized by the set's mean and deviation per channel
//   evaluation:  resized and normalized
//
// Where an image is cut and whether it is mirrored are functions of (seed, step, sample).
//
// Mirroring and normalizing commute with resizing (its weights are symmetric and sum to 1). So the cut and
// the mirroring are one gather of bytes, and the small image is the one that is normalized: one pass over the
// large one. P1 resizes images of bytes and rounds once more on the way; here nothing is rounded to bytes.
#pragma once

#include <attmirror/deep/image_set.hpp>
#include <attmirror/deep/network.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace attmirror::deep {

// What is done to training images at random: padding, cropping, flipping, normalizing.
struct Augmentation {
  std::int64_t padding = 4;  // zeros around the image before it is cut; 0: no cut
  std::int64_t size = 48;    // size after resizing; 0: unchanged
  double mirror = 0.5;       // probability
  // For CIFAR-10's channels, with bytes scaled to 0 to 1.
  std::array<double, 3> mean = {0.4914, 0.4822, 0.4465}, deviation = {0.2023, 0.1994, 0.2010};

  // Throws Error (bad input): "mirror is 2: expected 0 to 1".
  void validate() const;
};

// All pixels on the device, bytes: 150 MB for CIFAR-10.
struct DeviceImages {
  at::Tensor pixels;  // uint8 [count, channels, height, width]
  at::Tensor labels;  // int64 [count]
};

// Throws Error (bad input) if pixels and labels do not belong together, and for labels outside the classes.
DeviceImages device_images(const ImageSet& images, at::Device device);

// If `augment` is empty, the batch is as for evaluation. `tokens` is the number of rows that the network makes from
// an image (patches and class token), for the batch's offsets and dropout keys; `first_sample` as in pack(). Throws
// Error (bad input) for samples that do not exist, for no samples at all, and for images with other than 3 channels.
Batch image_batch(const DeviceImages& images, std::span<const std::int64_t> samples,
                  const Augmentation& options, std::int64_t tokens, std::optional<DropoutPlace> dropout,
                  std::optional<DropoutPlace> augment, std::int64_t first_sample = 0);

}  // namespace attmirror::deep

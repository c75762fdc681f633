// Batches of images from an ImageSet, P1's augmentation included, made on the device that trains.
//
//   training:    32 x 32 cut at random from the image padded by 4 zeros on each side; resized (bilinear) to 48 x 48; mirrored
//                left to right with probability 1/2; normalised by the set's mean and deviation per channel
//   evaluation:  resized and normalised
//
// Where an image is cut and whether it is mirrored are functions of (seed, step, sample).
#pragma once

#include <attmirror/deep/image_set.hpp>
#include <attmirror/deep/network.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace attmirror::torch {

struct Augmentation {
  std::int64_t padding = 4;  // zeros around the image before it is cut; 0: no cut
  std::int64_t size = 48;    // resized to; 0: as it is
  double mirror = 0.5;       // probability
  std::array<double, 3> mean = {0.4914, 0.4822, 0.4465}, deviation = {0.2023, 0.1994, 0.2010};

  void validate() const;
};

// All pixels on the device, bytes: 150 MB for CIFAR-10.
struct DeviceImages {
  ::at::Tensor pixels;  // uint8 [count, channels, height, width]
  ::at::Tensor labels;  // int64 [count]
};
DeviceImages device_images(const ImageSet& images, ::at::Device device);

// `augment` empty: as for evaluation. `tokens` is the number of rows that the network makes of an image (patches and class
// token), for the batch's offsets and dropout keys.
Batch image_batch(const DeviceImages& images, std::span<const std::int64_t> samples,
                  const Augmentation& options, std::int64_t tokens, std::optional<DropoutPlace> dropout,
                  std::optional<DropoutPlace> augment, std::int64_t first_sample = 0);

}  // namespace attmirror::torch

#include "base/random.hpp"
#include "deep/host_tensor.hpp"
#include "deep/image_draws.hpp"
#include "deep/option_checks.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/image_batch.hpp>

#include <cmath>
#include <cstring>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace attmirror::deep {

namespace {

// What is drawn for each image, as rows of one tensor that travels to the device at once.
enum Draw : std::int64_t { drawn_sample, drawn_top, drawn_left, drawn_mirror, draws };

at::Tensor drawn(std::span<const std::int64_t> samples, const Augmentation& options,
                 const std::optional<DropoutPlace>& augment) {
  const auto count = static_cast<std::int64_t>(samples.size());
  const at::Tensor result = host_tensor(draws * count, at::kLong).view({draws, count});
  auto* const sample = result.data_ptr<std::int64_t>();
  std::int64_t *const top = sample + count, *const left = top + count, *const mirror = left + count;
  const DropoutPlace place = augment.value_or(DropoutPlace{});
  const std::uint64_t step_key =
      CounterRandom(place.seed, RandomStream::deep_augment).bits(static_cast<std::uint64_t>(place.step));
  const CounterRandom random(step_key, RandomStream::deep_augment);
  const auto places = static_cast<std::uint64_t>(2 * options.padding + 1);
  for (std::int64_t i = 0; i < count; ++i) {
    sample[i] = samples[static_cast<std::size_t>(i)];
    const std::uint64_t first = static_cast<std::uint64_t>(sample[i]) * 3;
    top[i] = augment ? static_cast<std::int64_t>(random.below(places, first)) - options.padding : 0;
    left[i] = augment ? static_cast<std::int64_t>(random.below(places, first + 1)) - options.padding : 0;
    mirror[i] = augment && random.uniform(first + 2) < options.mirror ? 1 : 0;
  }
  return result;
}

// Bytes of the images, cut and mirrored: pixel (y, x) of the result is (y + top, x' + left) of the image, where x'
// counts from the right if it is mirrored. What lies outside is 0.
at::Tensor cut_and_mirrored(const at::Tensor& pixels, const at::Tensor& drawn) {
  const std::int64_t count = drawn.size(1), channels = pixels.size(1), height = pixels.size(2),
                     width = pixels.size(3);
  const auto column = [&](Draw which) { return drawn[which].unsqueeze(1); };
  const at::Tensor across = at::arange(width, drawn.options());
  const at::Tensor x =
      at::where(column(drawn_mirror).to(at::kBool), width - 1 - across, across) + column(drawn_left);
  const at::Tensor y = at::arange(height, drawn.options()) + column(drawn_top);  // [count, height]
  const at::Tensor inside = y.ge(0)
                                .logical_and_(y.lt(height))
                                .unsqueeze(2)
                                .logical_and(x.ge(0).logical_and_(x.lt(width)).unsqueeze(1));
  const at::Tensor within =
      y.clamp(0, height - 1).mul_(width).unsqueeze(2) + x.clamp(0, width - 1).unsqueeze(1);
  const at::Tensor planes =
      (drawn[drawn_sample].unsqueeze(1) * channels + at::arange(channels, drawn.options())) *
      (height * width);  // [count, channels]
  const at::Tensor index = planes.view({count, channels, 1, 1}) + within.unsqueeze(1);
  return pixels.view(-1).index_select(0, index.view(-1)).view(index.sizes()) * inside.unsqueeze(1);
}

// (x / 255 - mean) / deviation = scale x + shift
at::Tensor normalised(const at::Tensor& bytes, const at::Tensor& normalizer) {
  const auto maps = normalizer.view({2, 3, 1, 1}).unbind(0);
  return at::addcmul(maps[1], bytes.to(at::kFloat), maps[0]);
}

// Images [count, channels, height, width] at another size, bilinearly. LibTorch's kernel gives a GPU a thread for each
// pixel of one image and a loop over all images; the same sums as products by matrices are four times as fast there.
at::Tensor resized(const at::Tensor& images, std::int64_t size) {
  if (!images.is_cuda()) return at::upsample_bilinear2d(images, {size, size}, /*align_corners=*/false);
  // [size, length]: a row says how much of each old pixel a new one has.
  const auto shares = [&](std::int64_t length) {
    const at::Tensor unit = at::eye(length, images.options()).view({1, 1, length, length});
    return at::upsample_bilinear2d(unit, {size, length}, /*align_corners=*/false).view({size, length});
  };
  return at::matmul(shares(images.size(2)), at::matmul(images, shares(images.size(3)).t()));
}

void check_samples(const DeviceImages& images, std::span<const std::int64_t> samples) {
  if (samples.empty()) throw bad_input("a batch of no images");
  if (images.pixels.size(1) != 3)
    throw bad_input(fmt::format("images have {} channels: expected 3", images.pixels.size(1)));
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (samples[i] < 0 || samples[i] >= images.pixels.size(0))
      throw bad_input(
          fmt::format("samples[{}] is {}: expected 0 to {}", i, samples[i], images.pixels.size(0) - 1));
}

}  // namespace

void Augmentation::validate() const {
  check_at_least("padding", padding, 0);
  check_at_most("padding", padding, 1 << 16);
  check_at_least("size", size, 0);
  check_at_most("size", size, 1 << 16);
  if (!(mirror >= 0 && mirror <= 1)) throw bad_input(fmt::format("mirror is {}: expected 0 to 1", mirror));
  for (std::size_t c = 0; c < 3; ++c) {
    if (!std::isfinite(mean[c]))
      throw bad_input(fmt::format("mean[{}] is {}: expected a finite number", c, mean[c]));
    if (!(deviation[c] > 0 && std::isfinite(deviation[c])))
      throw bad_input(fmt::format("deviation[{}] is {}: expected a number above 0", c, deviation[c]));
  }
}

DeviceImages device_images(const ImageSet& images, at::Device device) {
  const std::int64_t count = images.count();
  if (static_cast<std::int64_t>(images.pixels.size()) != count * images.image_bytes())
    throw bad_input(fmt::format("pixels are {} bytes: expected {} for {} images", images.pixels.size(),
                                count * images.image_bytes(), count));
  const at::Tensor pixels =
      at::empty({count, images.channels, images.height, images.width}, at::TensorOptions(at::kByte));
  if (!images.pixels.empty()) std::memcpy(pixels.data_ptr(), images.pixels.data(), images.pixels.size());
  const at::Tensor labels = at::empty({count}, at::TensorOptions(at::kLong));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t label = images.labels[static_cast<std::size_t>(i)];
    if (label < 0 || label >= images.classes)
      throw bad_input(fmt::format("labels[{}] is {}: expected 0 to {}", i, label, images.classes - 1));
    labels.data_ptr<std::int64_t>()[i] = label;
  }
  return {pixels.to(device), labels.to(device)};
}

at::Tensor image_normalizer(const Augmentation& options, at::Device device) {
  const at::Tensor host = host_tensor(6, at::kFloat);
  for (std::size_t c = 0; c < 3; ++c) {
    host.data_ptr<float>()[c] = static_cast<float>(1 / (255 * options.deviation[c]));
    host.data_ptr<float>()[3 + c] = static_cast<float>(-options.mean[c] / options.deviation[c]);
  }
  return host.to(device, at::kFloat, /*non_blocking=*/true);
}

ImageDraws draw_images(const DeviceImages& images, std::span<const std::int64_t> samples,
                       const Augmentation& options, std::int64_t tokens, std::optional<DropoutPlace> dropout,
                       std::optional<DropoutPlace> augment) {
  options.validate();
  check_at_least("tokens", tokens, 1);
  check_samples(images, samples);
  ImageDraws draws;
  draws.augmented = augment.has_value();
  draws.numbers = drawn(samples, options, augment);
  if (dropout) {
    const std::vector<std::int64_t> lengths(samples.size(), tokens);
    draws.dropout_keys = dropout_keys(*dropout, samples, lengths);
    draws.dropout_seed = CounterRandom(dropout->seed, RandomStream::deep_dropout)
                             .bits(static_cast<std::uint64_t>(dropout->step));
  }
  return draws;
}

ImageDraws ImageDraws::to(at::Device device) const {
  ImageDraws moved = *this;
  for (at::Tensor* tensor : {&moved.numbers, &moved.dropout_keys})
    if (tensor->defined()) *tensor = tensor->to(device, at::kLong, /*non_blocking=*/true);
  return moved;
}

Batch batch_of_draws(const DeviceImages& images, const ImageDraws& draws, const at::Tensor& normalizer,
                     const Augmentation& options, std::int64_t tokens, std::int64_t first_sample) {
  const std::int64_t count = draws.numbers.size(1), size = options.size;
  const at::Tensor chosen = draws.numbers[drawn_sample];
  const at::Tensor bytes = draws.augmented ? cut_and_mirrored(images.pixels, draws.numbers)
                                           : images.pixels.index_select(0, chosen);
  Batch batch;
  batch.images = normalised(bytes, normalizer);
  if (size != 0 && (size != batch.images.size(2) || size != batch.images.size(3)))
    batch.images = resized(batch.images, size);
  batch.labels = images.labels.index_select(0, chosen);
  batch.offsets = at::arange(0, (count + 1) * tokens, tokens,
                             at::TensorOptions().dtype(at::kInt).device(images.pixels.device()));
  batch.longest = tokens;
  batch.row_count = count * tokens;
  batch.dropout_keys = draws.dropout_keys;
  batch.dropout_seed = draws.dropout_seed;
  if (batch.dropout_keys.defined()) batch.first_sample = first_sample;
  return batch;
}

Batch image_batch(const DeviceImages& images, std::span<const std::int64_t> samples,
                  const Augmentation& options, std::int64_t tokens, std::optional<DropoutPlace> dropout,
                  std::optional<DropoutPlace> augment, std::int64_t first_sample) {
  const at::Device device = images.pixels.device();
  return batch_of_draws(images, draw_images(images, samples, options, tokens, dropout, augment).to(device),
                        image_normalizer(options, device), options, tokens, first_sample);
}

}  // namespace attmirror::deep

// Batches of images against loops over pixels. What was drawn for an image is found by trying all that could have been.
#include "deep/networks.hpp"
#include <attmirror/deep/image_batch.hpp>

#include <array>
#include <cmath>
#include <optional>

#include <gtest/gtest.h>

namespace attmirror::deep_tests {
namespace {

ImageSet noise_images(std::int64_t count, std::int64_t side) {
  ImageSet set;
  set.height = set.width = side;
  const CounterRandom random(4, RandomStream::selection);
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t b = 0; b < set.image_bytes(); ++b)
      set.pixels.push_back(static_cast<std::uint8_t>(random.below(256, set.pixels.size())));
    set.labels.push_back(static_cast<std::int32_t>(i % 10));
  }
  return set;
}

struct Drawn {
  std::int64_t top = 0, left = 0;  // of the cut within the padded image
  bool mirrored = false;
};

// An image as P1 makes it, step by step: cut, resize, mirror, normalise. [3, size, size]
at::Tensor made(const ImageSet& set, std::int64_t sample, const am::Augmentation& options,
                const Drawn& drawn) {
  const std::int64_t h = set.height, w = set.width, size = options.size == 0 ? h : options.size;
  const auto pixel = [&](std::int64_t c, std::int64_t y, std::int64_t x) {  // of the cut image
    y = std::min(y, h - 1) + drawn.top - options.padding;
    x = std::min(x, w - 1) + drawn.left - options.padding;
    if (y < 0 || y >= h || x < 0 || x >= w) return 0.0;
    return static_cast<double>(
        set.pixels[static_cast<std::size_t>(sample * set.image_bytes() + (c * h + y) * w + x)]);
  };
  at::Tensor result = at::empty({3, size, size}, at::kDouble);
  double* out = result.data_ptr<double>();
  for (std::int64_t c = 0; c < 3; ++c)
    for (std::int64_t y = 0; y < size; ++y)
      for (std::int64_t column = 0; column < size; ++column) {
        const std::int64_t x = drawn.mirrored ? size - 1 - column : column;
        const auto source = [&](std::int64_t place,
                                std::int64_t from) {  // centres of pixels on centres of pixels
          const double ratio = static_cast<double>(from) / static_cast<double>(size);
          return std::max(0.0, (static_cast<double>(place) + 0.5) * ratio - 0.5);
        };
        const double sy = source(y, h), sx = source(x, w);
        const auto y0 = static_cast<std::int64_t>(sy), x0 = static_cast<std::int64_t>(sx);
        const double fy = sy - static_cast<double>(y0), fx = sx - static_cast<double>(x0);
        const double value = (1 - fy) * ((1 - fx) * pixel(c, y0, x0) + fx * pixel(c, y0, x0 + 1)) +
                             fy * ((1 - fx) * pixel(c, y0 + 1, x0) + fx * pixel(c, y0 + 1, x0 + 1));
        const auto channel = static_cast<std::size_t>(c);
        *out++ = (value / 255 - options.mean[channel]) / options.deviation[channel];
      }
  return result;
}

am::Augmentation small_augmentation() {
  am::Augmentation options;
  options.padding = 2;
  options.size = 9;
  return options;
}

std::vector<std::int64_t> first_samples(std::int64_t count) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(count));
  std::iota(samples.begin(), samples.end(), 0);
  return samples;
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return at::max(at::abs(a.to(at::kDouble) - b)).item<double>();
}

TEST(ImageBatch, AugmentsAsALoopOverPixelsDoes) {
  const ImageSet set = noise_images(250, 6);
  const am::DeviceImages images = am::device_images(set, at::kCPU);
  const am::Augmentation options = small_augmentation();
  const am::Batch batch =
      am::image_batch(images, first_samples(250), options, 10, {}, am::DropoutPlace{3, 8});
  ASSERT_EQ(batch.images.sizes(), at::IntArrayRef({250, 3, 9, 9}));
  EXPECT_EQ(batch.images.scalar_type(), at::kFloat);
  std::array<int, 5> tops{}, lefts{};
  int mirrored = 0;
  for (std::int64_t i = 0; i < 250; ++i) {
    int matches = 0;
    for (std::int64_t top = 0; top < 5; ++top)
      for (std::int64_t left = 0; left < 5; ++left)
        for (const bool mirror : {false, true})
          if (largest_difference(batch.images[i], made(set, i, options, {top, left, mirror})) < 1e-5) {
            ++matches;
            ++tops[static_cast<std::size_t>(top)];
            ++lefts[static_cast<std::size_t>(left)];
            mirrored += mirror ? 1 : 0;
          }
    ASSERT_EQ(matches, 1) << i;
  }
  // Every place is as likely: chi-square of 4 degrees of freedom, above 23.5 once in 10,000 times.
  for (const auto& counts : {tops, lefts}) {
    double chi_square = 0;
    for (const int count : counts) chi_square += (count - 50.0) * (count - 50.0) / 50;
    EXPECT_LE(chi_square, 23.5);
  }
  EXPECT_NEAR(mirrored, 125, 5 * std::sqrt(250 * 0.25));
}

TEST(ImageBatch, HasPublishedSizes) {
  const ImageSet set = noise_images(3, 32);
  const am::DeviceImages images = am::device_images(set, at::kCPU);
  const am::Augmentation options;
  const am::Batch batch = am::image_batch(images, first_samples(3), options, 145, am::DropoutPlace{1, 2},
                                          am::DropoutPlace{3, 8}, 6);
  ASSERT_EQ(batch.images.sizes(), at::IntArrayRef({3, 3, 48, 48}));
  EXPECT_EQ(batch.row_count, 3 * 145);
  EXPECT_EQ(batch.longest, 145);
  EXPECT_EQ(batch.first_sample, 6);
  EXPECT_EQ(batch.samples(), 3);
  EXPECT_TRUE(at::equal(batch.offsets, at::tensor({0, 145, 290, 435}, at::kInt)));
  EXPECT_EQ(batch.offsets.scalar_type(), at::kInt);
  EXPECT_TRUE(at::equal(batch.labels, at::tensor({0, 1, 2}, at::kLong)));
  const std::vector<std::int64_t> lengths(3, 145);
  EXPECT_TRUE(at::equal(batch.dropout_keys, am::dropout_keys({1, 2}, first_samples(3), lengths)));
  // A batch that the network takes.
  am::VitOptions vit;
  vit.blocks = 1;
  vit.width = vit.hidden = 8;
  vit.heads = vit.head_width = 2;
  EXPECT_EQ(am::VisionTransformer(vit, 1).logits(batch).sizes(), at::IntArrayRef({3, 10}));
}

TEST(ImageBatch, EvaluatesWithoutChance) {
  const ImageSet set = noise_images(5, 6);
  const am::DeviceImages images = am::device_images(set, at::kCPU);
  for (const std::int64_t size : {0, 6, 9, 4}) {
    am::Augmentation options = small_augmentation();
    options.size = size;
    const std::vector<std::int64_t> samples{4, 0, 4};
    const am::Batch batch = am::image_batch(images, samples, options, 3, {}, {});
    EXPECT_FALSE(batch.dropout_keys.defined());
    for (std::int64_t i = 0; i < 3; ++i)
      EXPECT_LE(largest_difference(batch.images[i],
                                   made(set, samples[static_cast<std::size_t>(i)], options, {2, 2, false})),
                1e-5)
          << size;
    EXPECT_TRUE(at::equal(batch.labels, at::tensor({4, 0, 4}, at::kLong)));
  }
}

TEST(ImageBatch, DrawsByAddress) {
  const ImageSet set = noise_images(40, 6);
  const am::DeviceImages images = am::device_images(set, at::kCPU);
  const am::Augmentation options = small_augmentation();
  const auto batch = [&](std::span<const std::int64_t> samples, am::DropoutPlace place) {
    return am::image_batch(images, samples, options, 3, {}, place).images;
  };
  const at::Tensor whole = batch(first_samples(40), {3, 8});
  const std::vector<std::int64_t> some{17, 2, 39};
  const at::Tensor part = batch(some, {3, 8});
  for (std::int64_t i = 0; i < 3; ++i)
    EXPECT_TRUE(same_bits(part[i], whole[some[static_cast<std::size_t>(i)]]));
  EXPECT_FALSE(at::equal(batch(first_samples(40), {3, 9}), whole));
  EXPECT_FALSE(at::equal(batch(first_samples(40), {4, 8}), whole));
  // Without padding and mirrors nothing is left to chance.
  am::Augmentation none = options;
  none.padding = 0;
  none.mirror = 0;
  EXPECT_TRUE(
      same_bits(am::image_batch(images, first_samples(40), none, 3, {}, am::DropoutPlace{3, 8}).images,
                am::image_batch(images, first_samples(40), options, 3, {}, {}).images));
  none.mirror = 1;
  EXPECT_LE(
      largest_difference(
          am::image_batch(images, first_samples(40), none, 3, {}, am::DropoutPlace{3, 8}).images.flip(3),
          am::image_batch(images, first_samples(40), options, 3, {}, {}).images),
      1e-5);
}

TEST(ImageBatch, RefusesWhatMakesNoSense) {
  ImageSet set = noise_images(4, 6);
  const am::DeviceImages images = am::device_images(set, at::kCPU);
  const auto batch = [&](std::vector<std::int64_t> samples, std::int64_t tokens = 3) {
    return refusal([&] { am::image_batch(images, samples, small_augmentation(), tokens, {}, {}); });
  };
  EXPECT_EQ(batch({}), "a batch of no images");
  EXPECT_EQ(batch({0, 4}), "samples[1] is 4: expected 0 to 3");
  EXPECT_EQ(batch({-1}), "samples[0] is -1: expected 0 to 3");
  EXPECT_EQ(batch({0}, 0), "tokens is 0: expected at least 1");
  set.labels[2] = 10;
  EXPECT_EQ(refusal([&] { am::device_images(set, at::kCPU); }), "labels[2] is 10: expected 0 to 9");
  set.labels.pop_back();
  EXPECT_EQ(refusal([&] { am::device_images(set, at::kCPU); }),
            "pixels are 432 bytes: expected 324 for 3 images");
  const auto message = [](const auto& change) {
    am::Augmentation options;
    change(options);
    return refusal([&] { options.validate(); });
  };
  using Options = am::Augmentation;
  EXPECT_EQ(message([](Options& o) { o.padding = -1; }), "padding is -1: expected at least 0");
  EXPECT_EQ(message([](Options& o) { o.size = -1; }), "size is -1: expected at least 0");
  EXPECT_EQ(message([](Options& o) { o.mirror = 2; }), "mirror is 2: expected 0 to 1");
  EXPECT_EQ(message([](Options& o) { o.mean[1] = std::nan(""); }),
            "mean[1] is nan: expected a finite number");
  EXPECT_EQ(message([](Options& o) { o.deviation[2] = 0; }), "deviation[2] is 0: expected a number above 0");
}

}  // namespace
}  // namespace attmirror::deep_tests

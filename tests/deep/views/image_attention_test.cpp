// Attention on images: the numbers of the network itself, patches in their places, and what is refused.
#include "deep/views/example_models.hpp"
#include "deep/views/view_pages.hpp"
#include "support/files.hpp"
#include <attmirror/deep/image_attention.hpp>
#include <attmirror/deep/image_batch.hpp>
#include <attmirror/deep/weights_file.hpp>

#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror::view_tests {
namespace {

deep::ImageModel image_model(std::uint64_t seed, const ExampleVit& size = {.sharpness = 4}) {
  return {"model", example_vit(seed, size)};
}

TEST(ImageAttention, IsWhatTheNetworkComputes) {
  const deep::ImageModel model =
      image_model(3, {.image = 12, .patch = 4, .blocks = 3, .heads = 2, .sharpness = 4});
  const ImageSet images = example_images();
  const deep::ImageAttention viewed = deep::image_attention(model, images, 2);
  EXPECT_EQ(viewed.patches.blocks, 3);
  EXPECT_EQ(viewed.patches.heads, 2);
  EXPECT_EQ(viewed.patches.side, 3);
  ASSERT_EQ(viewed.patches.probabilities.size(), 3u * 2 * 10);

  // The image in a batch of the whole set.
  const std::vector<std::int64_t> samples{2};
  deep::Augmentation evaluation;
  evaluation.size = 12;
  const deep::Batch batch = deep::image_batch(deep::device_images(images, at::kCPU), samples, evaluation, 10,
                                              std::nullopt, std::nullopt);
  const std::vector<at::Tensor> maps = model.network->attention_maps(batch);
  for (std::int64_t b = 0; b < 3; ++b) {
    const at::Tensor& map = maps[static_cast<std::size_t>(b)];
    for (std::int64_t h = -1; h < 2; ++h) {
      const at::Tensor expected = h < 0 ? map.mean(0)[0] : map[h][0];
      const std::vector<double> row = viewed.patches.row(b, h);
      ASSERT_EQ(row.size(), 10u);
      EXPECT_NEAR(std::accumulate(row.begin(), row.end(), 0.0), 1, 1e-5);
      for (std::int64_t t = 0; t < 10; ++t)
        EXPECT_NEAR(row[static_cast<std::size_t>(t)], expected[t].item<double>(), 1e-6);
    }
  }
  const at::Tensor logits = model.network->logits(batch);
  const at::Tensor probabilities = at::softmax(logits, 1);
  ASSERT_EQ(viewed.probabilities.size(), 10u);
  for (std::int64_t c = 0; c < 10; ++c)
    EXPECT_NEAR(viewed.probabilities[static_cast<std::size_t>(c)], probabilities[0][c].item<double>(), 1e-6);
  EXPECT_EQ(viewed.answer(), logits.argmax(1).item<std::int64_t>());
}

// Without positions a network sees patches as a set: the first block's attention moves with them.
TEST(ImageAttention, FollowsThePatches) {
  const deep::ImageModel model = image_model(5, {.image = 32, .patch = 8, .sharpness = 4});
  {
    const at::NoGradGuard no_gradients;
    model.network->named_parameters()["position_embedding"].zero_();
  }
  ImageSet images = example_images();
  const std::vector<double> before = deep::image_attention(model, images, 1).patches.row(0, -1);
  // Patches (0, 3) and (2, 1) of image 1 change places.
  const auto at = [&](int c, int y, int x) -> std::uint8_t& {
    return images.pixels[static_cast<std::size_t>(images.image_bytes() + (c * 32 + y) * 32 + x)];
  };
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < 8; ++y)
      for (int x = 0; x < 8; ++x) std::swap(at(c, y, 24 + x), at(c, 16 + y, 8 + x));
  const std::vector<double> after = deep::image_attention(model, images, 1).patches.row(0, -1);
  const std::size_t first = 1 + 3, second = 1 + 2 * 4 + 1;
  EXPECT_GT(std::abs(before[first] - before[second]), 1e-3);
  for (std::size_t t = 0; t < before.size(); ++t)
    EXPECT_NEAR(after[t], before[t == first ? second : t == second ? first : t], 1e-6) << t;
}

TEST(ImageAttention, Refusals) {
  const ImageSet images = example_images();
  const deep::ImageModel model = image_model(1);
  test::expect_bad_input({"image is 5", "0 to 4"}, [&] { deep::image_attention(model, images, 5); });
  test::expect_bad_input({"image is -1"}, [&] { deep::image_attention(model, images, -1); });
  ImageSet short_of_pixels = images;
  short_of_pixels.pixels.pop_back();
  test::expect_bad_input({"pixels", "15359", "15360"},
                         [&] { deep::image_attention(model, short_of_pixels, 4); });
  ImageSet wrong_label = images;
  wrong_label.labels[1] = 10;
  test::expect_bad_input({"labels[0] is 10"}, [&] { deep::image_attention(model, wrong_label, 1); });
  test::expect_bad_input({"model", "7 classes", "test.bin", "10"},
                         [&] { deep::check_images(image_model(1, {.classes = 7}), images, "test.bin"); });
  test::expect_bad_input({"model", "1 color channels", "3"},
                         [&] { deep::image_attention(image_model(1, {.channels = 1}), images, 0); });
  const test::TemporaryFolder folder;
  deep::save_weights(folder / "texts.safetensors", *example_encoder(1));
  test::expect_bad_input({"texts.safetensors", "encoder", "vit"},
                         [&] { deep::load_image_model(folder / "texts.safetensors", images, "i"); });
  const deep::ImageModel broken = image_model(4);
  {
    const at::NoGradGuard no_gradients;
    broken.network->parameters().front().fill_(std::numeric_limits<float>::quiet_NaN());
  }
  test::expect_bad_input({"model", "not finite"}, [&] { deep::image_attention(broken, images, 0); });
}

TEST(ImageView, PageAndTable) {
  const std::vector<deep::ImageModel> models{
      {"one", example_vit(1, {.sharpness = 4})},
      {"two", example_vit(2, {.image = 32, .patch = 8, .blocks = 2, .sharpness = 4})}};
  const ImageSet images = example_images();
  const std::vector<std::int64_t> chosen{3, 1};
  const deep::ImageView view = deep::image_view(models, images, cifar10_classes(), chosen);
  EXPECT_TRUE(view.notes.empty());
  ASSERT_EQ(view.maps.images.size(), 2u);
  EXPECT_EQ(view.maps.images[0].title, "Image 3: cat");
  EXPECT_EQ(view.maps.images[1].title, "Image 1: airplane");
  // Planes became pixels.
  const auto plane = [&](std::size_t c) { return images.pixels[3 * 3072 + c * 1024 + 5]; };
  for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(view.maps.images[0].pixels[5 * 3 + c], plane(c));
  for (const deep::ImageAnswer& answer : view.answers)
    for (std::size_t m = 0; m < 2; ++m) {
      const PatchAttention& shown = view.maps.images[&answer - view.answers.data()].models[m];
      const auto said = static_cast<std::size_t>(answer.models[m].answer());
      EXPECT_EQ(shown.verdict == TokenAttention::Verdict::right,
                static_cast<std::int32_t>(said) == answer.label);
      EXPECT_TRUE(shown.answer.starts_with(cifar10_classes()[said])) << shown.answer;
    }
  const Table table = deep::image_attention_table(view);
  table.validate();
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_EQ((std::vector<std::string>{table.rows[1].begin(), table.rows[1].begin() + 3}),
            (std::vector<std::string>{"cat", "3", "two"}));
  const deep::ImageAttention& second = view.answers[0].models[1];
  EXPECT_EQ(std::stod(table.rows[1][5]), std::round(1000 * second.probabilities[3]) / 1000);
  const Page page = deep::image_attention_page(view);
  EXPECT_NE(page.conclusion.find("of 4 patches"), std::string::npos) << page.conclusion;
  EXPECT_NE(page.conclusion.find("of 16 patches"), std::string::npos) << page.conclusion;
  // Patches of different sizes are not compared with each other.
  EXPECT_EQ(page.conclusion.find("same patch"), std::string::npos) << page.conclusion;
  EXPECT_NE(to_html(page).find("patch-grid"), std::string::npos);

  // A network and itself attend to the same patches.
  const std::vector<deep::ImageModel> twins{models[1], {"twin", models[1].network}};
  EXPECT_NE(deep::image_attention_page(deep::image_view(twins, images, cifar10_classes(), chosen))
                .conclusion.find("both attend most to the same patch in 2 of 2 images"),
            std::string::npos);

  const deep::ImageView few =
      deep::image_view(models, images, cifar10_classes(), chosen, {.most_bytes = 100});
  EXPECT_EQ(few.maps.images.size(), 1u);
  EXPECT_TRUE(few.answers[1].models.empty());
  ASSERT_EQ(few.notes.size(), 1u);
  EXPECT_NE(few.notes[0].find("first 1 of 2 images"), std::string::npos);
  EXPECT_EQ(deep::image_attention_table(few).rows.size(), 2u);
  deep::image_attention_page(few).validate();
  test::expect_bad_input({"no image"}, [&] { deep::image_view(models, images, cifar10_classes(), {}); });
  test::expect_bad_input({"no model"}, [&] { deep::image_view({}, images, cifar10_classes(), chosen); });
  test::expect_bad_input({"classes", "1 names", "10"},
                         [&] { deep::image_view(models, images, std::vector<std::string>{"cat"}, chosen); });
  test::expect_bad_input({"image is 5"}, [&] {
    deep::image_view(models, images, cifar10_classes(), std::vector<std::int64_t>{5}, {.most_bytes = 1});
  });
}

}  // namespace
}  // namespace attmirror::view_tests

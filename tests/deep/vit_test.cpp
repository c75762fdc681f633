#include "deep/keyed_dropout.hpp"
#include "deep/networks.hpp"
#include <attmirror/deep/vit.hpp>

#include <cmath>

#include <gtest/gtest.h>

namespace attmirror::deep_tests {
namespace {

am::VisionTransformer wide_vit(const am::VitOptions& options, std::uint64_t seed = 3) {
  am::VisionTransformer network(options, seed, at::kDouble);
  widen(network);
  return network;
}

am::Batch wide_images(const am::VitOptions& options, std::int64_t samples,
                      std::optional<am::DropoutPlace> dropout = {}) {
  am::Batch batch = small_images(options, samples, dropout);
  batch.images = batch.images.to(at::kDouble);
  return batch;
}

// The network as it is usually written, one image after another, with the dropouts where they belong: site 0 after the
// embedding; 4 (b + 1) after O, one more within the MLP, one more after it.
at::Tensor plain_logits(const am::VisionTransformer& network, const am::Batch& batch,
                        std::vector<at::Tensor>* maps = nullptr) {
  const auto parameters = network.named_parameters();
  const am::VitOptions& o = network.options();
  std::vector<at::Tensor> results;
  for (std::int64_t i = 0; i < batch.samples(); ++i) {
    const auto drop = [&](const at::Tensor& x, std::int64_t site) {
      const at::Tensor keys = batch.dropout_keys.defined()
                                  ? batch.dropout_keys.slice(0, i * o.tokens(), (i + 1) * o.tokens())
                                  : at::Tensor();
      return am::dropped(x, {o.dropout, keys, static_cast<std::uint32_t>(site)});
    };
    const auto linear = [&](const at::Tensor& x, const std::string& name) {
      return at::linear(x, parameters[name], parameters[name + "_bias"]);
    };
    const auto norm = [&](const at::Tensor& x, const std::string& name) {
      return at::layer_norm(x, {o.width}, parameters[name], parameters[name + "_bias"]);
    };
    std::vector<at::Tensor> rows{parameters["class_token"]};
    for (std::int64_t y = 0; y < o.image; y += o.patch)
      for (std::int64_t x = 0; x < o.image; x += o.patch)
        rows.push_back(linear(batch.images[i].slice(1, y, y + o.patch).slice(2, x, x + o.patch).reshape({-1}),
                              "patch_embedding"));
    at::Tensor x = drop(at::stack(rows) + parameters["position_embedding"], 0);
    for (std::int64_t b = 0; b < o.blocks; ++b) {
      const std::string block = "block" + std::to_string(b) + "_";
      const std::int64_t site = 4 * (b + 1);
      const auto parts =
          at::linear(norm(x, block + "attention_norm"), parameters[block + "query_key_value"]).chunk(3, 1);
      std::vector<at::Tensor> heads, probabilities;
      for (std::int64_t h = 0; h < o.heads; ++h) {
        const auto head = [&](const at::Tensor& part) {
          return part.slice(1, h * o.head_width, (h + 1) * o.head_width);
        };
        probabilities.push_back(at::softmax(
            at::matmul(head(parts[0]), head(parts[1]).t()) / std::sqrt(static_cast<double>(o.head_width)),
            1));
        heads.push_back(at::matmul(probabilities.back(), head(parts[2])));
      }
      if (maps != nullptr) maps->push_back(at::stack(probabilities));
      x = x + drop(linear(at::cat(heads, 1), block + "output"), site);
      const at::Tensor hidden = drop(at::gelu(linear(norm(x, block + "mlp_norm"), block + "up")), site + 1);
      x = x + drop(linear(hidden, block + "down"), site + 2);
    }
    results.push_back(linear(norm(x, "head_norm")[0], "head"));
  }
  return at::stack(results);
}

TEST(Vit, EqualsThePlainNetwork) {
  for (const double dropout : {0.0, 0.3}) {
    const am::VitOptions options = small_vit(dropout);
    const am::Batch batch = wide_images(options, 3, am::DropoutPlace{4, 1});
    auto network = wide_vit(options);
    EXPECT_LE(distance(network.logits(batch), plain_logits(network, batch)), 1e-12);
    const auto gradients = loss_gradients(network, batch);
    network.zero_grad();
    am::summed_loss(plain_logits(network, batch), batch.labels).backward();
    std::map<std::string, at::Tensor> expected;
    for (const auto& parameter : network.named_parameters())
      expected[parameter.key()] = parameter.value().grad();
    expect_close(gradients, expected, 1e-12);
  }
}

TEST(Vit, FirstTokenEqualsAllTokensAndKindsOfAttentionAgree) {
  am::VitOptions options = small_vit(0.3);
  const am::Batch batch = wide_images(options, 3, am::DropoutPlace{4, 1});
  auto first = wide_vit(options);
  const auto expected = loss_gradients(first, batch);
  options.last_block = am::LastBlock::all_tokens;
  auto all = wide_vit(options);
  EXPECT_LE(distance(first.logits(batch), all.logits(batch)), 1e-12);
  expect_close(loss_gradients(all, batch), expected, 1e-12);
  options.attention = am::AttentionKind::plain;
  auto plain = wide_vit(options);
  expect_close(loss_gradients(plain, batch), expected, 1e-12);
}

TEST(Vit, SamplesDoNotSeeEachOther) {
  const am::VitOptions options = small_vit(0.3);
  const am::Batch whole = wide_images(options, 4, am::DropoutPlace{4, 1});
  auto network = wide_vit(options);
  const at::Tensor logits = network.logits(whole);
  const am::Batch none = wide_images(options, 4);
  EXPECT_GT(distance(network.logits(none), logits), 1e-3);
  for (std::int64_t i = 0; i < 4; ++i) {
    am::Batch alone = wide_images(options, 1);
    alone.images = whole.images.slice(0, i, i + 1);
    alone.labels = whole.labels.slice(0, i, i + 1);
    alone.dropout_keys = whole.dropout_keys.slice(0, i * options.tokens(), (i + 1) * options.tokens());
    EXPECT_LE(distance(network.logits(alone)[0], logits[i]), 1e-12);
  }
}

TEST(Vit, ShowsTheProbabilitiesItComputesWith) {
  const am::VitOptions options = small_vit(0.3);
  am::VisionTransformer network(options, 3);
  const am::Batch batch = small_images(options, 1, am::DropoutPlace{4, 1});
  const auto maps = network.attention_maps(batch);
  std::vector<at::Tensor> expected;
  am::Batch undropped = batch;
  undropped.dropout_keys = at::Tensor();
  plain_logits(network, undropped, &expected);
  ASSERT_EQ(maps.size(), 2U);
  for (std::size_t b = 0; b < 2; ++b) {
    EXPECT_EQ(maps[b].sizes(), at::IntArrayRef({3, 10, 10}));
    EXPECT_LE(distance(maps[b], expected[b]), 1e-5);
  }
  const auto answer = network.answering_attention(batch);
  EXPECT_LE(distance(answer.probabilities.at(0), maps.back().select(1, 0)), 1e-6);
  EXPECT_LE(distance(answer.logits, network.logits(undropped)), 1e-6);
  const auto projections = network.projections();
  ASSERT_EQ(projections.size(), 6U);
  EXPECT_EQ(projections[4].map, 'Q');
  EXPECT_EQ(projections[4].weight.data_ptr(),
            network.named_parameters()["block1_query_key_value"].data_ptr());
  EXPECT_EQ(projections[5].weight.sizes(), at::IntArrayRef({12, 10}));
}

TEST(Vit, StartsFromTheDistributionsOfPytorch) {
  am::VitOptions options;
  options.blocks = 1;
  options.width = 96;
  const am::VisionTransformer network(options, 7), other(options, 8);
  const std::map<std::string, double> inputs{{"patch_embedding", 48}, {"block0_query_key_value", 96},
                                             {"block0_output", 512},  {"block0_up", 96},
                                             {"block0_down", 512},    {"head", 96}};
  for (const auto& parameter : network.named_parameters()) {
    const std::string& name = parameter.key();
    const at::Tensor value = parameter.value();
    const auto n = static_cast<double>(value.numel());
    if (name.find("norm") != std::string::npos) {
      EXPECT_TRUE(value.eq(name.ends_with("_bias") ? 0 : 1).all().item<bool>()) << name;
      continue;
    }
    EXPECT_LT(value.eq(other.named_parameters()[name]).to(at::kDouble).mean().item<double>(), 0.02) << name;
    if (name == "class_token" || name == "position_embedding") {
      EXPECT_NEAR(value.mean().item<double>(), 0, 5 / std::sqrt(n)) << name;
      EXPECT_NEAR(value.var().item<double>(), 1, 5 * std::sqrt(2 / n)) << name;
    } else {  // biases have the bound of their map
      const std::string map = name.ends_with("_bias") ? name.substr(0, name.size() - 5) : name;
      const double bound = 1 / std::sqrt(inputs.at(map));
      EXPECT_LE(value.abs().max().item<double>(), bound * (1 + 1e-7)) << name;
      EXPECT_NEAR(value.var().item<double>(), bound * bound / 3, 6 * bound * bound * std::sqrt(4 / (45 * n)))
          << name;
    }
  }
  am::VisionTransformer published(am::VitOptions{}, {});
  std::int64_t numbers = 0;
  for (const auto& parameter : published.parameters()) numbers += parameter.numel();
  EXPECT_EQ(static_cast<double>(numbers), am::VitOptions{}.parameters());
  EXPECT_EQ(am::VitOptions{}.tokens(), 145);
}

TEST(Vit, CountsItsOperations) {
  // One image of 4 x 4 pixels, one channel, patches of 2: 4 patches of 4 numbers, 5 rows. Width 3, one head of 2,
  // hidden 5, 2 classes, one block. Forward: patches 2 * 4 * 4 * 3 = 96; Q, K, V, O of 6 weights and A, B of 15: 2
  // * 54 * 5 = 540; scores 2 * 5 * 5 * 2 = 100, mixing the same; head 2 * 3 * 2 = 12. Backward twice that, for
  // patches once.
  am::VitOptions options = small_vit();
  options.image = 4;
  options.channels = 1;
  options.width = 3;
  options.heads = 1;
  options.head_width = 2;
  options.hidden = 5;
  options.classes = 2;
  options.blocks = 1;
  const am::VisionTransformer network(options, 1);
  const std::vector<std::int64_t> one{5}, two{5, 5};
  EXPECT_EQ(network.training_flops(one), 2 * 96 + 3 * (540 + 200 + 12));
  EXPECT_EQ(network.training_flops(two), 2 * network.training_flops(one));
}

TEST(Vit, ComputesInBfloat16) {
  const am::VitOptions options = small_vit();
  const am::Batch batch = small_images(options, 3);
  am::VisionTransformer exact(options, 3), brief(options, 3, at::kBFloat16);
  const at::Tensor logits = brief.logits(batch);
  EXPECT_EQ(logits.scalar_type(), at::kFloat);
  EXPECT_LE(distance(logits, exact.logits(batch)), 0.03);
  const auto expected = loss_gradients(exact, batch);
  for (const auto& [name, gradient] : loss_gradients(brief, batch)) {
    EXPECT_EQ(gradient.scalar_type(), at::kFloat) << name;
    EXPECT_LE(distance(gradient, expected.at(name)), 0.1) << name;
  }
}

TEST(Vit, RefusesWhatMakesNoSense) {
  const auto message = [](const auto& change) {
    am::VitOptions options;
    change(options);
    return refusal([&] { options.validate(); });
  };
  using Options = am::VitOptions;
  EXPECT_EQ(message([](Options& o) { o.patch = 5; }), "patch is 5: expected a divisor of image, 48");
  EXPECT_EQ(message([](Options& o) { o.patch = 0; }), "patch is 0: expected at least 1");
  EXPECT_EQ(message([](Options& o) { o.image = 0; }), "image is 0: expected at least 1");
  EXPECT_EQ(message([](Options& o) { o.channels = 0; }), "channels is 0: expected at least 1");
  EXPECT_EQ(message([](Options& o) { o.classes = 1; }), "classes is 1: expected at least 2");
  EXPECT_EQ(message([](Options& o) { o.width = 0; }), "width is 0: expected at least 1");
  EXPECT_EQ(message([](Options& o) { o.blocks = 0; }), "blocks is 0: expected at least 1");
  EXPECT_EQ(message([](Options& o) { o.heads = 0; }), "heads is 0: expected at least 1");
  EXPECT_EQ(message([](Options& o) { o.head_width = 0; }), "head_width is 0: expected at least 1");
  EXPECT_EQ(message([](Options& o) { o.hidden = 0; }), "hidden is 0: expected at least 1");
  EXPECT_EQ(message([](Options& o) { o.dropout = -0.1; }),
            "dropout is -0.1: expected at least 0 and below 1");
  EXPECT_EQ(message([](Options& o) { o.image = 4096; }),
            "patch is 4: expected fewer than 1024 patches along an image of 4096");
  EXPECT_EQ(message([](Options&) {}), "nothing was thrown");

  const am::VitOptions options = small_vit();
  am::VisionTransformer network(options, 3);
  am::Batch batch = small_images(options, 2);
  EXPECT_EQ(refusal([&] { network.attention_maps(batch); }), "a batch of 2 samples has no one attention map");
  batch.row_count = 18;
  EXPECT_EQ(refusal([&] { network.logits(batch); }), "a batch of 2 images has 18 rows: expected 10 an image");
  batch.images = at::zeros({2, 3, 8, 6});
  EXPECT_EQ(refusal([&] { network.logits(batch); }),
            "images have 3 channels of 8 x 6 pixels: expected 3 of 6 x 6");
  batch.images = at::Tensor();
  EXPECT_EQ(refusal([&] { network.logits(batch); }), "a batch without images");
}

}  // namespace
}  // namespace attmirror::deep_tests

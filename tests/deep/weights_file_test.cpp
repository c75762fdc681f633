#include "deep/networks.hpp"
#include <attmirror/deep.hpp>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace attmirror::deep_tests {
namespace {

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("attmirror_weights_" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

template <class NetworkOf, class Options>
void expect_same_after_saving(const Options& options, const am::Batch& batch) {
  const Folder folder;
  const auto file = folder.path / "weights.safetensors";
  NetworkOf network(options, 3);
  am::save_weights(file, network);
  const std::shared_ptr<am::Network> loaded = am::load_network(file);
  ASSERT_NE(dynamic_cast<NetworkOf*>(loaded.get()), nullptr);
  EXPECT_EQ(loaded->kind(), network.kind());
  EXPECT_EQ(am::weights_of(*loaded), am::weights_of(network));  // every weight and every option
  EXPECT_TRUE(same_bits(loaded->logits(batch), network.logits(batch)));
  std::int64_t numbers = 0;
  for (const auto& parameter : network.parameters()) numbers += parameter.numel();
  EXPECT_EQ(static_cast<double>(numbers), options.parameters());
}

TEST(WeightsFile, NetworksComeBackAsTheyWere) {
  am::EncoderOptions encoder = small_encoder(0.125);
  encoder.attention = am::AttentionKind::plain;
  encoder.last_block = am::LastBlock::all_tokens;
  const TokenSet texts = small_texts({3, 1, 9}, encoder.vocabulary);
  expect_same_after_saving<am::EncoderClassifier>(encoder, am::pack(texts, all_rows(texts)));
  encoder.hidden = 0;
  expect_same_after_saving<am::EncoderClassifier>(encoder, am::pack(texts, all_rows(texts)));
  const am::VitOptions vit = small_vit(0.1);
  expect_same_after_saving<am::VisionTransformer>(vit, small_images(vit, 3));
}

TEST(WeightsFile, TensorsOfEveryTypeKeepTheirBits) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt,
                                    at::kShort, at::kChar, at::kByte}) {
    const at::Tensor values = random({3, 4}, 8, at::kDouble, 40).abs().to(type);
    const at::Tensor turned = values.t();  // with gaps
    EXPECT_TRUE(same_bits(am::to_tensor(am::to_array(turned)), turned)) << at::toString(type);
  }
  const at::Tensor flags = random({5}, 9).gt(0);
  EXPECT_TRUE(same_bits(am::to_tensor(am::to_array(flags)), flags));
  EXPECT_EQ(am::to_tensor(am::to_array(at::zeros({2, 0, 3}))).sizes(), at::IntArrayRef({2, 0, 3}));
  EXPECT_EQ(am::to_tensor(Array::scalar(2.5)).item<double>(), 2.5);
  EXPECT_EQ(refusal([] { am::to_tensor(Array(DType::uint16, {1}, std::vector<std::byte>(2))); }),
            "an array of type uint16 has no form as a tensor");
  EXPECT_EQ(refusal([] { am::to_array(at::zeros({2}, at::kComplexFloat)); }),
            "a tensor of type ComplexFloat has no form as an array");
}

TEST(WeightsFile, RefusesWeightsThatDoNotFitAndChangesNothing) {
  am::EncoderClassifier network(small_encoder(), 3);
  const Safetensors before = am::weights_of(network);
  const Safetensors other = am::weights_of(am::EncoderClassifier(small_encoder(), 4));
  const auto message = [&](const auto& change) {
    Safetensors weights = other;
    change(weights.tensors);
    const std::string text = refusal([&] { am::load_weights(network, weights, "w.safetensors"); });
    EXPECT_EQ(am::weights_of(network), before);
    return text;
  };
  EXPECT_EQ(message([](NamedArrays& t) { t.erase("head"); }), "w.safetensors: parameter head is missing");
  EXPECT_EQ(message([](NamedArrays& t) { t["bias"] = t["head"]; }),
            "w.safetensors: tensor bias is not a parameter of this network");
  EXPECT_EQ(message([](NamedArrays& t) {
              t["head"] = am::to_array(at::zeros({2, 12}));
            }),
            "w.safetensors: parameter head has shape (2, 12): expected (1, 12)");
  EXPECT_EQ(message([](NamedArrays& t) {
              t["head"] = am::to_array(at::zeros({1, 12}, at::kDouble));
            }),
            "w.safetensors: parameter head is of type float64: expected float32");
  EXPECT_EQ(message([](NamedArrays& t) {
              t["head"] = Array(DType::uint16, {1, 12}, std::vector<std::byte>(24));
            }),
            "w.safetensors: an array of type uint16 has no form as a tensor");
  am::load_weights(network, other, "w.safetensors");
  EXPECT_EQ(am::weights_of(network), other);
}

TEST(WeightsFile, RefusesMetadataInOneSentence) {
  const Safetensors good = am::weights_of(am::EncoderClassifier(small_encoder(), 3));
  const auto message = [&](const std::string& key, const std::optional<std::string>& text) {
    Safetensors weights = good;
    weights.metadata.erase(key);
    if (text) weights.metadata[key] = *text;
    return refusal([&] { am::network_from(weights, "w"); });
  };
  EXPECT_EQ(message("network.width", {}),
            "w: metadata network.width is missing: expected a file of network weights");
  EXPECT_EQ(message("network.format", {}),
            "w: metadata network.format is missing: expected a file of network weights");
  EXPECT_EQ(message("network.format", "2"), "w: metadata network.format is \"2\": expected 1");
  EXPECT_EQ(message("network.kind", "lstm"), "w: metadata network.kind is \"lstm\": expected encoder or vit");
  EXPECT_EQ(message("network.kind", "vit"),
            "w: metadata network.image is missing: expected a file of network weights");
  EXPECT_EQ(message("network.colour", "red"), "w: metadata network.colour is not known");
  EXPECT_EQ(message("network.width", "12 "), "w: metadata network.width is \"12 \": expected a number");
  EXPECT_EQ(message("network.width", ""), "w: metadata network.width is \"\": expected a number");
  EXPECT_EQ(message("network.width", "99999999999999999999"),
            "w: metadata network.width is \"99999999999999999999\": expected a number");
  EXPECT_EQ(message("network.dropout", "nan"), "w: dropout is nan: expected at least 0 and below 1");
  EXPECT_EQ(message("network.heads", "5"), "w: heads is 5: expected a divisor of width, 12");
  EXPECT_EQ(message("network.attention", "quick"),
            "w: attention is \"quick\": expected automatic, plain, packed or fused");
  EXPECT_EQ(message("network.last_block", "none"),
            "w: last_block is \"none\": expected first_token or all_tokens");
  // Refused before memory for it is asked for.
  EXPECT_EQ(message("network.vocabulary", "1000000000000000"),
            "w: metadata describe a network of 12000000000002280 numbers, but there are 2556");
  EXPECT_NE(am::network_from(good, "w"), nullptr);
  Safetensors more = good;
  more.metadata["note"] = "of others";
  EXPECT_NE(am::network_from(more, "w"), nullptr);
}

TEST(WeightsFile, NamesFilesThatAreNone) {
  const Folder folder;
  const auto file = folder.path / "broken.safetensors";
  std::ofstream(file) << "no weights";
  EXPECT_NE(refusal([&] { am::load_network(file); }).find("broken.safetensors"), std::string::npos);
  save_safetensors(file, {});
  EXPECT_EQ(refusal([&] { am::load_network(file); }),
            file.string() + ": metadata network.format is missing: expected a file of network weights");
}

}  // namespace
}  // namespace attmirror::deep_tests

// attmirror_twin_check FOLDER: writes weights, batches, and what our networks make of them (loss, logits, gradients),
// for the twins in PyTorch to compare with.
#include "deep/networks.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep.hpp>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include <ATen/ATen.h>

namespace attmirror::deep_tests {
namespace {

void write_case(const std::filesystem::path& folder, const std::string& name, am::Network& network,
                const am::Batch& batch) {
  // Norms start from 1, where a weight that is used twice or not at all would go unnoticed.
  const at::NoGradGuard no_gradients;
  std::uint64_t seed = 100;
  for (auto& parameter : network.named_parameters())
    if (parameter.key().find("norm") != std::string::npos)
      parameter.value().add_(random(parameter.value().sizes(), seed++, at::kFloat, 0.2));
  const auto file = [&](const char* part) { return folder / (name + "." + part + ".safetensors"); };
  am::save_weights(file("weights"), network);
  Safetensors inputs, results;
  const auto add_input = [&](const char* key, const at::Tensor& tensor) {
    if (tensor.defined()) inputs.tensors.emplace(key, am::to_array(tensor));
  };
  add_input("tokens", batch.tokens);
  add_input("offsets", batch.offsets);
  add_input("images", batch.images);
  add_input("labels", batch.labels);
  save_safetensors(file("batch"), inputs);

  const at::AutoGradMode gradients(true);
  const at::Tensor logits = network.logits(batch);
  const at::Tensor loss = am::summed_loss(logits, batch.labels);
  loss.backward();
  results.tensors.emplace("loss", am::to_array(loss.view({1})));
  results.tensors.emplace("logits", am::to_array(logits));
  for (const auto& parameter : network.named_parameters())
    results.tensors.emplace("gradient of " + parameter.key(), am::to_array(parameter.value().grad()));
  save_safetensors(file("results"), results);
}

void write_cases(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const auto write_encoder = [&](const std::string& name, const am::EncoderOptions& options,
                                 const std::vector<std::int64_t>& lengths) {
    am::EncoderClassifier network(options, 21);
    const TokenSet texts = small_texts(lengths, options.vocabulary);
    write_case(folder, name, network, am::pack(texts, all_rows(texts)));
  };
  write_encoder("encoder_small", small_encoder(0.2), {4, 1, 9, 2, 7});
  // Seconds count: Debian's LibTorch multiplies matrices by the reference BLAS.
  am::EncoderOptions published;  // P1's, of fewer words
  published.vocabulary = 500;
  write_encoder("encoder_p1", published, {40, 1, 25});

  const auto write_vit = [&](const std::string& name, const am::VitOptions& options, std::int64_t samples) {
    am::VisionTransformer network(options, 22);
    write_case(folder, name, network, small_images(options, samples));
  };
  write_vit("vit_small", small_vit(0.1), 5);
  am::VitOptions smaller;  // P1's, of fewer patches and blocks
  smaller.image = 24;
  smaller.blocks = 3;
  write_vit("vit_p1", smaller, 2);
}

}  // namespace
}  // namespace attmirror::deep_tests

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: attmirror_twin_check FOLDER\n", stderr);
    return 2;
  }
  try {
    attmirror::deep_tests::write_cases(arguments[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "attmirror_twin_check: %s\n", error.what());
    return 1;
  }
  return 0;
}

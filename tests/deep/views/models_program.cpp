// models_program FOLDER: writes the example's vocabulary, sentences, images and networks, for tests of the command
// and in a browser.
#include "base/atomic_file.hpp"
#include "deep/views/example_models.hpp"
#include <attmirror/deep/weights_file.hpp>

#include <cstdio>
#include <filesystem>
#include <limits>
#include <string>

int main(int argc, char** argv) try {
  using namespace attmirror;
  using namespace attmirror::view_tests;
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  std::string vocabulary;
  for (const std::string& piece : example_pieces()) vocabulary += piece + "\n";
  write_file_atomically(folder / "vocab.txt", vocabulary);
  write_file_atomically(folder / "short-vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n");
  write_file_atomically(folder / "sentences.tsv", example_sentences_tsv());
  attmirror::deep::save_weights(folder / "sharp.safetensors", *example_encoder(1, {.sharpness = 5}));
  attmirror::deep::save_weights(folder / "deep.safetensors",
                                *example_encoder(2, {.blocks = 3, .heads = 3, .sharpness = 4}));
  attmirror::deep::save_weights(folder / "images.safetensors", *example_vit());
  using attmirror::deep::save_weights;
  save_weights(folder / "patches.safetensors",
               *example_vit(2, {.image = 32, .patch = 8, .blocks = 2, .heads = 3, .sharpness = 4}));
  save_weights(folder / "seven-classes.safetensors", *example_vit(3, {.classes = 7}));
  save_weights(folder / "gray.safetensors", *example_vit(4, {.channels = 1}));
  const std::string images = example_images_bin();
  write_file_atomically(folder / "images.bin", images);
  write_file_atomically(folder / "short.bin", images.substr(0, images.size() - 1));
  write_file_atomically(folder / "label-10.bin", example_images_bin(10));
  for (const char* run : {"run", "trials"}) std::filesystem::create_directory(folder / run);
  attmirror::deep::save_weights(folder / "run" / "final.safetensors", *example_encoder(3));
  attmirror::deep::save_weights(folder / "trials" / "final-0.safetensors", *example_encoder(4));
  attmirror::deep::save_weights(folder / "trials" / "final-1.safetensors", *example_encoder(5));
  const auto save_broken = [&](const char* file, attmirror::deep::Network& network) {
    const at::NoGradGuard no_gradients;
    network.parameters().front().fill_(std::numeric_limits<float>::quiet_NaN());
    save_weights(folder / file, network);
  };
  save_broken("diverged.safetensors", *example_encoder(6));
  save_broken("diverged-images.safetensors", *example_vit(7));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

// Attention on images, for a page: every patch as bright as the attention it gets from the class token.
//
// Several models are shown side by side, each with one map for every block and head and one for the mean over heads.
// A patch is as bright as its probability divided by the largest of the map. The map that is shown large is the image
// itself, darkened in this way: even attention leaves it as it is. Numbers are always shown along with the brightness,
// because a map tells which patches get most, and not how much that is.
#pragma once

#include <attmirror/report/token_maps.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace attmirror {

// What one model does with one image.
struct PatchAttention {
  std::int64_t blocks = 0, heads = 0;
  std::int64_t side = 0;  // the image is cut into side x side patches
  // Softmax probabilities [blocks][heads][1 + side * side], the row of the class token: what it pays to itself,
  // then to the patches line by line.
  std::vector<float> probabilities = {};
  std::string answer = {};  // what the model says about the image: "cat 0.93"
  // Whether the network's answer was right.
  TokenAttention::Verdict verdict = TokenAttention::Verdict::unknown;

  std::int64_t patches() const { return side * side; }
  // [1 + side * side]; from 0, and the mean over heads for head -1.
  std::vector<double> row(std::int64_t block, std::int64_t head) const;
};

// How a row of the class token is spread. The last three numbers are of the patches alone, with s their probabilities
// divided by their sum.
struct PatchSpread {
  double class_token = 0;     // probability that it pays to itself
  std::size_t top_patch = 0;  // the patch that gets most, from 0, line by line
  double top_share = 0;       // what it gets: between 1 / patches and 1
  double patches = 0;  // (sum s)^2 / sum s^2: so many patches, attended to alike, would be as concentrated
  double entropy = 0;  // - sum s log s: between 0 and log(patches)
};
// All 0 but for class_token where no patch gets anything.
PatchSpread patch_spread(std::span<const double> row);

// One image, with the attention that its patches get.
struct PatchImage {
  std::string title = {};
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> pixels = {};    // red, green and blue of each pixel, line by line
  std::vector<PatchAttention> models = {};  // one for each of PatchMaps::models
};

// Attention maps of some images by some networks, as a block of a page.
struct PatchMaps {
  std::string id;  // letters, digits and dashes
  std::string title;
  std::string caption = {};
  std::vector<std::string> models;  // their names
  std::vector<PatchImage> images;

  // Throws Error (bad input), naming image and model, for nothing to show, sizes that do not fit, or a probability
  // outside 0 to 1 (slightly above counts as rounding).
  void validate() const;
};

}  // namespace attmirror

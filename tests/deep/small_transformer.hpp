// A causal transformer of two layers that learns a made-up language, with plain tensors for parameters: they can
// be of any type, and the arithmetic between them is in floats, so that runs differ by how parameters are stored
// and moved.
#pragma once

#include "deep/tensors.hpp"

#include <cmath>

namespace attmirror::deep_tests {

// The word after next follows from a word: one of two, at even odds. Predicting it takes a look at the word before.
struct MadeUpLanguage {
  static constexpr std::int64_t words = 16, length = 12, batch = 8;
  at::Generator generator = at::detail::createCPUGenerator(5);
  at::Tensor followers = at::randint(words, {words, 2}, generator, at::TensorOptions().dtype(at::kLong));

  at::Tensor sentences() {
    std::vector<at::Tensor> columns;
    const auto options = at::TensorOptions().dtype(at::kLong);
    for (std::int64_t t = 0; t <= length; ++t) {
      const at::Tensor choice = at::randint(t < 2 ? words : 2, {batch}, generator, options);
      columns.push_back(t < 2 ? choice : followers.index({columns[static_cast<std::size_t>(t - 2)], choice}));
    }
    return at::stack(columns, 1);
  }
};

class SmallTransformer {
 public:
  static constexpr std::int64_t width = 32, heads = 2, layers = 2;

  explicit SmallTransformer(at::ScalarType type) {
    std::uint64_t seed = 100;
    const auto add = [&](std::int64_t rows, std::int64_t cols) {
      const double scale = 1 / std::sqrt(static_cast<double>(rows));
      parameters.push_back(leaf(random({rows, cols}, seed++, type, scale)));
    };
    add(MadeUpLanguage::words, width);
    add(MadeUpLanguage::length, width);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      add(width, 3 * width);
      add(width, width);
      add(width, 2 * width);
      add(2 * width, width);
    }
    add(width, MadeUpLanguage::words);
  }

  at::Tensor loss(const at::Tensor& sentences) const {
    std::size_t next = 0;
    const auto weight = [&] { return parameters[next++].to(at::kFloat); };
    const auto norm = [](const at::Tensor& x) { return at::layer_norm(x, {width}); };
    const std::int64_t length = MadeUpLanguage::length, batch = sentences.size(0);
    const at::Tensor input = sentences.narrow(1, 0, length), target = sentences.narrow(1, 1, length);
    const at::Tensor future = at::ones({length, length}, at::kFloat).triu(1) * -1e9;

    at::Tensor x = at::embedding(weight(), input);
    x = x + weight();
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const auto parts = at::matmul(norm(x), weight())
                             .view({batch, length, 3, heads, width / heads})
                             .permute({2, 0, 3, 1, 4});
      const at::Tensor logits =
          at::matmul(parts[0], parts[1].transpose(-1, -2)) / std::sqrt(static_cast<double>(width / heads));
      const at::Tensor seen = at::matmul(at::softmax(logits + future, -1), parts[2]);
      x = x + at::matmul(seen.transpose(1, 2).reshape({batch, length, width}), weight());
      const at::Tensor hidden = at::gelu(at::matmul(norm(x), weight()));
      x = x + at::matmul(hidden, weight());
    }
    const at::Tensor logits = at::matmul(norm(x), weight()).reshape({-1, MadeUpLanguage::words});
    return at::cross_entropy_loss(logits, target.reshape({-1}));
  }

  Tensors parameters;
};

}  // namespace attmirror::deep_tests

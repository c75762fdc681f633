#include "data/torch_random.hpp"
#include "data/torch_rows.hpp"
#include <attmirror/data/generators.hpp>

#include <cstddef>
#include <vector>

namespace attmirror {
namespace {

// Two sequences of `tokens` in the plane; `place` moves the noise scale * randn(2, tokens, 2) to where the
// figure has it.
template <class Place>
Dataset in_the_plane(std::uint64_t seed, std::size_t tokens, float scale, Place place) {
  TorchGenerator generator(seed);
  const std::vector<float> v = unit_rows(generator, 1, 2);
  std::vector<float> X = scaled_normals(generator, 2 * tokens * 2, scale);
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t t = 0; t < tokens; ++t) place(i, t, X.data() + 2 * (i * tokens + t));
  const std::vector<float> Z = unit_rows(generator, 2, 2);

  const auto length = static_cast<std::ptrdiff_t>(tokens);
  DatasetArrays arrays;
  arrays.tokens = widened(X, 2 * length, 2);
  arrays.lengths = {length, length};
  arrays.queries = widened(Z, 2, 2);
  arrays.labels = {1.0, 1.0};
  arrays.decoder = widened(v, 2, 1);
  return Dataset(arrays);
}

}  // namespace

Dataset generate(const Visualization1Data& options) {
  options.validate();
  return in_the_plane(options.seed, 3, 0.3f,
                      [](std::size_t i, std::size_t, float* token) { token[0] += i == 0 ? -1.0f : 1.0f; });
}

Dataset generate(const Visualization2Data& options) {
  options.validate();
  return in_the_plane(options.seed, 5, 0.5f, [](std::size_t i, std::size_t t, float* token) {
    if (t == 0) {
      token[0] = 1.0f;
      token[1] = i == 0 ? 0.5f : -0.5f;
    } else {
      token[0] -= 1.0f;
    }
  });
}

}  // namespace attmirror

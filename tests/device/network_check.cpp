// network_check: the networks of room `deep` on a GPU against the CPU: dropout and norms by our kernels, LibTorch's
// flash attention, the whole encoder with its gradients. Prints a line a check. Ends with 0 if all is well, 1 if not,
// 77 where there is no GPU.
#include "deep/keyed_dropout.hpp"
#include "deep/packed_attention.hpp"
#include <attmirror/deep/encoder_classifier.hpp>
#include <attmirror/deep/packed_batch.hpp>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/cuda.h>

namespace am = attmirror::deep;

namespace {

const at::Device gpu(at::kCUDA, 0);
int failures = 0;

void report(const std::string& what, bool right) {
  std::printf("%-6s %s\n", right ? "ok" : "FAILED", what.c_str());
  failures += right ? 0 : 1;
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor wide = b.detach().to(at::kDouble).cpu();
  return ((a.detach().to(at::kDouble).cpu() - wide).norm() / (wide.norm() + 1e-300)).item<double>();
}

void close(const std::string& what, const at::Tensor& a, const at::Tensor& b, double bound) {
  const double d = distance(a, b);
  char text[64];
  std::snprintf(text, sizeof text, ": %.2e, at most %.0e", d, bound);
  report(what + text, d <= bound);
}

at::Tensor random(at::IntArrayRef sizes, std::uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  return at::randn(sizes, generator, at::TensorOptions().dtype(at::kFloat));
}

at::Tensor leaf(const at::Tensor& x) { return x.detach().clone().set_requires_grad(true); }

attmirror::TokenSet texts(const std::vector<std::int64_t>& lengths, std::int64_t vocabulary) {
  attmirror::TokenSet set;
  set.vocabulary = vocabulary;
  set.length = 512;
  std::uint32_t state = 1;
  for (const std::int64_t length : lengths) {
    for (std::int64_t t = 0; t < length; ++t)
      set.ids.push_back(static_cast<std::int32_t>((state = state * 1664525u + 1013904223u) >> 8) %
                        static_cast<std::int32_t>(vocabulary));
    set.offsets.push_back(static_cast<std::int64_t>(set.ids.size()));
    set.labels.push_back(static_cast<std::int32_t>(set.labels.size() % 2));
  }
  return set;
}

at::Tensor some_keys(std::int64_t rows) {
  const std::vector<std::int64_t> sample{5}, length{rows};
  return am::dropout_keys({11, 3}, sample, length);
}

void check_rows(std::int64_t rows, std::int64_t width) {
  const std::string shape = std::to_string(rows) + " x " + std::to_string(width);
  const at::Tensor keys = some_keys(rows), x = random({rows, width}, 1);
  const am::Dropout on_cpu{0.2, keys, 6}, on_gpu{0.2, keys.to(gpu), 6};
  report("dropout drops the same, " + shape,
         at::equal(am::dropped(x, on_cpu), am::dropped(x.to(gpu), on_gpu).cpu()));
  for (const bool brief : {false, true}) {
    const at::ScalarType type = brief ? at::kBFloat16 : at::kFloat;
    const at::Tensor base = x.to(type).to(at::kFloat),
                     added = random({rows, width}, 2).to(type).to(at::kFloat), scale = random({width}, 3),
                     direction = random({rows, width}, 4).to(type).to(at::kFloat);
    const std::vector<at::Tensor> here{leaf(base), leaf(added), leaf(scale)},
        there{leaf(base.to(gpu).to(type)), leaf(added.to(gpu).to(type)), leaf(scale.to(gpu))};
    const at::Tensor y = am::residual_norm(here[0], here[1], here[2], on_cpu),
                     z = am::residual_norm(there[0], there[1], there[2], on_gpu);
    y.backward(direction);
    z.backward(direction.to(gpu).to(type));
    const double bound = brief ? 1e-2 : 1e-5;
    const std::string name = std::string(brief ? "bfloat16" : "float32") + " norm " + shape;
    close(name, z, y, bound);
    for (std::size_t i = 0; i < 3; ++i)
      close(name + ", gradient " + std::to_string(i), there[i].grad(), here[i].grad(), bound);
  }
}

void check_attention(std::int64_t heads, std::int64_t width) {
  const std::vector<std::int64_t> lengths{1, 17, 512, 64, 3, 200};
  std::vector<std::int32_t> offsets{0};
  for (const std::int64_t length : lengths)
    offsets.push_back(offsets.back() + static_cast<std::int32_t>(length));
  const am::PackedRows rows{at::tensor(offsets, at::kInt), 512}, rows_there{rows.offsets.to(gpu), 512};
  std::vector<at::Tensor> here, there;
  for (std::uint64_t i = 0; i < 3; ++i) {
    here.push_back(leaf(random({offsets.back(), heads, width}, i).to(at::kBFloat16).to(at::kFloat)));
    there.push_back(leaf(here.back().detach().to(at::kBFloat16).to(gpu)));
  }
  const at::Tensor direction = random({offsets.back(), heads, width}, 9).to(at::kBFloat16).to(at::kFloat);
  const at::Tensor y = am::packed_attention(here[0], here[1], here[2], rows, rows, {});
  const at::Tensor z = am::packed_attention(there[0], there[1], there[2], rows_there, rows_there, {},
                                            am::AttentionKind::fused);
  y.backward(direction);
  z.backward(direction.to(gpu).to(at::kBFloat16));
  const std::string name = "fused attention, " + std::to_string(heads) + " heads of " + std::to_string(width);
  close(name, z, y, 1e-2);
  for (std::size_t i = 0; i < 3; ++i)
    close(name + ", gradient " + std::to_string(i), there[i].grad(), here[i].grad(), 2e-2);

  // Two processes with three samples each draw what one with six does.
  at::NoGradGuard no_gradients;
  const at::Tensor keys = some_keys(offsets.back()).to(gpu);
  am::AttentionDropout dropout{0.2, keys, 4, 77, 0};
  const auto part = [&](std::size_t begin, std::size_t end) {
    std::vector<std::int32_t> local;
    for (std::size_t i = begin; i <= end; ++i) local.push_back(offsets[i] - offsets[begin]);
    const am::PackedRows packed{at::tensor(local, at::kInt).to(gpu), 512};
    dropout.first_sample = static_cast<std::int64_t>(begin);
    const auto cut = [&](const at::Tensor& x) { return x.slice(0, offsets[begin], offsets[end]); };
    return am::packed_attention(cut(there[0]), cut(there[1]), cut(there[2]), packed, packed, dropout,
                                am::AttentionKind::fused);
  };
  const at::Tensor whole = part(0, 6), again = part(0, 6), halves = at::cat({part(0, 3), part(3, 6)}, 0);
  report(name + ": dropout by seed, the same again", at::equal(whole, again));
  report(name + ": dropout in two parts as in one", at::equal(whole, halves));
  report(name + ": dropout drops", distance(whole, z) > 0.1);
  dropout.seed = 78;
  report(name + ": another seed drops others", distance(part(0, 6), whole) > 0.1);
}

void check_encoder(const am::EncoderOptions& options, const std::string& name) {
  const attmirror::TokenSet set = texts({40, 1, 300, 9, 128}, options.vocabulary);
  const std::vector<std::int64_t> samples{4, 0, 2, 1, 3};
  const auto gradients = [&](at::Device device, at::ScalarType type, am::AttentionKind kind, double dropout) {
    am::EncoderOptions chosen = options;
    chosen.attention = kind;
    chosen.dropout = dropout;
    auto network = std::make_shared<am::EncoderClassifier>(chosen, 5, type);
    network->to(device);
    const am::Batch batch = am::pack(set, samples, am::DropoutPlace{1, 2}).to(device);
    const at::Tensor logits = network->logits(batch);
    am::summed_loss(logits, batch.labels).backward();
    std::vector<at::Tensor> result{logits.detach()};
    for (const at::Tensor& parameter : network->parameters()) result.push_back(parameter.grad());
    return result;
  };
  const auto compare = [&](const std::string& what, const std::vector<at::Tensor>& there,
                           const std::vector<at::Tensor>& here, double bound) {
    double worst = 0;
    for (std::size_t i = 0; i < here.size(); ++i) worst = std::max(worst, distance(there[i], here[i]));
    char text[80];
    std::snprintf(text, sizeof text, ": logits and gradients %.2e, at most %.0e", worst, bound);
    report(name + ", " + what + text, worst <= bound);
  };
  const auto reference = gradients(at::kCPU, at::kFloat, am::AttentionKind::packed, 0);
  compare("float32, plain attention", gradients(gpu, at::kFloat, am::AttentionKind::plain, 0), reference,
          1e-4);
  compare("bfloat16, fused attention", gradients(gpu, at::kBFloat16, am::AttentionKind::fused, 0), reference,
          5e-2);
  compare("float32, plain attention, dropout", gradients(gpu, at::kFloat, am::AttentionKind::plain, 0.2),
          gradients(at::kCPU, at::kFloat, am::AttentionKind::packed, 0.2), 1e-4);
}

}  // namespace

int main() {
  if (!torch::cuda::is_available()) {
    std::printf("no GPU here\n");
    return 77;
  }
  for (const std::int64_t width : {4, 100, 128, 384, 512, 768, 1024}) check_rows(7, width);
  check_rows(1, 384);
  check_rows(20000, 384);
  check_attention(3, 128);
  check_attention(6, 64);
  check_encoder({.vocabulary = 500, .width = 128, .blocks = 2, .heads = 2}, "small encoder");
  check_encoder({.vocabulary = 500, .blocks = 3, .heads = 3}, "P1's encoder");
  check_encoder({.vocabulary = 500, .blocks = 2, .heads = 2, .last_block = am::LastBlock::all_tokens},
                "all tokens");
  std::printf("%d failed\n", failures);
  return failures == 0 ? 0 : 1;
}

// network_check: the networks of room `deep` on a GPU against the CPU: dropout, sums, norms and gelu by our kernels,
// LibTorch's flash attention, both networks with their gradients, Adam in one launch; and work recorded as CUDA graphs
// against work that is not (graph_checks.cpp). Prints a line a check. Ends with 0 if all is well, 1 if not, 77 where
// there is no GPU.
#include "deep/keyed_dropout.hpp"
#include "deep/network_kernels.hpp"
#include "deep/packed_attention.hpp"
#include "network_checks.hpp"
#include <attmirror/deep/encoder_classifier.hpp>
#include <attmirror/deep/fused_adam.hpp>
#include <attmirror/deep/packed_batch.hpp>
#include <attmirror/deep/vit.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/cuda.h>

namespace am = attmirror::deep;
using namespace device_checks;

namespace {

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
    // Two readers of the norm, with gradients of their own.
    const am::NormedRows y = am::residual_norm(here[0], here[1], here[2], on_cpu),
                         z = am::residual_norm(there[0], there[1], there[2], on_gpu);
    const at::Tensor second = random({rows, width}, 5).to(type).to(at::kFloat);
    ((y.normed * direction).sum() + (y.passed * second).sum()).backward();
    at::Tensor(((z.normed * direction.to(gpu).to(type)).sum() + (z.passed * second.to(gpu).to(type)).sum()))
        .backward();
    const double bound = brief ? 1e-2 : 1e-5;
    const std::string name = std::string(brief ? "bfloat16" : "float32") + " norm " + shape;
    close(name, z.normed, y.normed, bound);
    for (std::size_t i = 0; i < 3; ++i)
      close(name + ", gradient " + std::to_string(i), there[i].grad(), here[i].grad(), bound);
  }
}

// norm(x + dropped(branch + bias)) of float32 rows beside bfloat16 branches, with the sum as a second output.
void check_sums(std::int64_t rows, std::int64_t width, bool brief) {
  const at::ScalarType type = brief ? at::kBFloat16 : at::kFloat;
  const at::Tensor keys = some_keys(rows);
  const am::Dropout on_cpu{0.1, keys, 6}, on_gpu{0.1, keys.to(gpu), 6};
  std::vector<at::Tensor> here, there;
  for (std::uint64_t i = 0; i < 5; ++i) {  // x, branch, its bias, weight, bias
    const at::Tensor values = i < 2 ? random({rows, width}, 10 + i) : random({width}, 10 + i);
    here.push_back(leaf(i == 1 ? values.to(type).to(at::kFloat) : values));
    there.push_back(leaf(i == 1 ? values.to(gpu).to(type) : values.to(gpu)));
  }
  const at::Tensor first = random({rows, width}, 20).to(type).to(at::kFloat),
                   second = random({rows, width}, 21);
  const am::NormedRows y =
      am::sum_and_norm(here[0], {here[1] + here[2], {}}, {here[3], here[4]}, on_cpu, at::kFloat);
  const am::NormedRows z =
      am::sum_and_norm(there[0], {there[1], there[2]}, {there[3], there[4]}, on_gpu, type);
  ((y.normed * first).sum() + (y.passed * second).sum()).backward();
  ((z.normed.to(at::kFloat) * first.to(gpu)).sum() + (z.passed * second.to(gpu)).sum()).backward();
  const std::string name = std::string(brief ? "bfloat16" : "float32") + " sum and norm " +
                           std::to_string(rows) + " x " + std::to_string(width);
  const double bound = brief ? 1e-2 : 1e-5;
  close(name, z.normed, y.normed, bound);
  close(name + ", the sum", z.passed, y.passed, bound);
  for (std::size_t i = 0; i < here.size(); ++i)
    close(name + ", gradient " + std::to_string(i), there[i].grad(), here[i].grad(), bound);
}

void check_gelu(std::int64_t rows, std::int64_t width, bool brief) {
  const at::ScalarType type = brief ? at::kBFloat16 : at::kFloat;
  const at::Tensor keys = some_keys(rows), direction = random({rows, width}, 30).to(type).to(at::kFloat);
  const at::Tensor x = random({rows, width}, 31).to(type), bias = random({width}, 32);
  const at::Tensor x_here = leaf(x.to(at::kFloat)), bias_here = leaf(bias), x_there = leaf(x.to(gpu)),
                   bias_there = leaf(bias.to(gpu));
  const at::Tensor y = am::dropped_gelu(x_here + bias_here, {}, {0.1, keys, 3}),
                   z = am::dropped_gelu(x_there, bias_there, {0.1, keys.to(gpu), 3});
  y.backward(direction);
  z.backward(direction.to(gpu).to(type));
  const std::string name = std::string(brief ? "bfloat16" : "float32") + " gelu " + std::to_string(rows) +
                           " x " + std::to_string(width);
  const double bound = brief ? 1e-2 : 1e-5;
  close(name, z, y, bound);
  close(name + ", gradient", x_there.grad(), x_here.grad(), bound);
  close(name + ", gradient of the bias", bias_there.grad(), bias_here.grad(), bound);
}

// Rows of images: the class token and mapped patches, plus positions, dropped.
void check_patches(std::int64_t samples, std::int64_t tokens, std::int64_t width, bool brief) {
  const at::ScalarType type = brief ? at::kBFloat16 : at::kFloat;
  const at::Tensor keys = some_keys(samples * tokens), direction = random({samples * tokens, width}, 60);
  std::vector<at::Tensor> here, there;
  for (std::uint64_t i = 0; i < 4; ++i) {  // mapped, bias, class token, positions
    const at::Tensor values = i == 0   ? random({samples * (tokens - 1), width}, 61)
                              : i == 3 ? random({tokens, width}, 64)
                                       : random({width}, 61 + i);
    here.push_back(leaf(i == 0 ? values.to(type).to(at::kFloat) : values));
    there.push_back(leaf(i == 0 ? values.to(gpu).to(type) : values.to(gpu)));
  }
  const at::Tensor rows = (here[0] + here[1]).view({samples, tokens - 1, width});
  const at::Tensor all = at::cat({here[2].expand({samples, 1, width}), rows}, 1) + here[3];
  const at::Tensor y = am::dropped(all.view({samples * tokens, width}), {0.1, keys, 0});
  const at::Tensor z = am::patches_on_gpu({there[0], there[1]}, there[2], there[3], {0.1, keys.to(gpu), 0});
  y.backward(direction);
  z.backward(direction.to(gpu));
  const std::string name = std::string(brief ? "bfloat16" : "float32") + " patches " +
                           std::to_string(samples) + " x " + std::to_string(tokens) + " x " +
                           std::to_string(width);
  close(name, z, y, 1e-6);
  for (std::size_t i = 0; i < here.size(); ++i)
    close(name + ", gradient " + std::to_string(i), there[i].grad(), here[i].grad(),
          i == 0 && brief ? 1e-2 : 1e-5);
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

void check_vit(am::LastBlock last_block) {
  const am::VitOptions options{.image = 16,
                               .patch = 4,
                               .width = 128,
                               .blocks = 3,
                               .heads = 2,
                               .head_width = 64,
                               .hidden = 128,
                               .dropout = 0.1,
                               .last_block = last_block};
  const auto gradients = [&](at::Device device, at::ScalarType type) {
    auto network = std::make_shared<am::VisionTransformer>(options, 5, type);
    network->to(device);
    am::Batch batch;
    batch.images = random({6, 3, 16, 16}, 40);
    batch.labels = at::arange(6);
    batch.row_count = 6 * 17;
    batch.longest = 17;
    batch.offsets = at::arange(0, 7 * 17, 17, at::kInt);
    batch.dropout_keys = some_keys(batch.row_count);
    batch = batch.to(device);
    const at::Tensor logits = network->logits(batch);
    am::summed_loss(logits, batch.labels).backward();
    std::vector<at::Tensor> result{logits.detach()};
    for (const at::Tensor& parameter : network->parameters()) result.push_back(parameter.grad());
    return result;
  };
  const auto here = gradients(at::kCPU, at::kFloat);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const auto there = gradients(gpu, type);
    double worst = 0;
    for (std::size_t i = 0; i < here.size(); ++i) worst = std::max(worst, distance(there[i], here[i]));
    const double bound = type == at::kFloat ? 1e-4 : 5e-2;
    char text[120];
    std::snprintf(text, sizeof text, "vit, %s, %s, dropout: logits and gradients %.2e, at most %.0e",
                  type == at::kFloat ? "float32" : "bfloat16", std::string(am::to_string(last_block)).c_str(),
                  worst, bound);
    report(text, worst <= bound);
  }
}

// The kernel of Adam against LibTorch's own steps.
void check_adam(bool decoupled) {
  const auto trained = [&](bool fused, at::Device device) {
    std::vector<at::Tensor> parameters;
    for (const std::int64_t size : {5, 4096, 100003, 1})
      parameters.push_back(leaf(random({size}, 50).to(device)));
    std::unique_ptr<torch::optim::Optimizer> optimizer;
    const auto adam = torch::optim::AdamOptions(1e-2).weight_decay(0.1);
    const auto adamw = torch::optim::AdamWOptions(1e-2).weight_decay(0.1);
    if (fused && decoupled) optimizer = std::make_unique<am::FusedAdamW>(parameters, adamw);
    if (fused && !decoupled) optimizer = std::make_unique<am::FusedAdam>(parameters, adam);
    if (!fused && decoupled) optimizer = std::make_unique<torch::optim::AdamW>(parameters, adamw);
    if (!fused && !decoupled) optimizer = std::make_unique<torch::optim::Adam>(parameters, adam);
    for (std::uint64_t step = 0; step < 20; ++step) {
      for (at::Tensor& parameter : parameters)
        parameter.mutable_grad() = random({parameter.numel()}, 60 + step).to(device);
      optimizer->step();
    }
    return parameters;
  };
  const auto here = trained(false, at::kCPU), there = trained(true, gpu);
  for (std::size_t i = 0; i < here.size(); ++i)
    close(std::string(decoupled ? "AdamW" : "Adam") + " in one launch, tensor " + std::to_string(i), there[i],
          here[i], 2e-6);
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
  for (const bool brief : {false, true}) {
    for (const std::int64_t width : {4, 100, 128, 512, 1024}) check_sums(7, width, brief);
    check_sums(14500, 512, brief);
    check_gelu(7, 100, brief);
    check_gelu(14500, 512, brief);
    check_patches(1, 2, 4, brief);
    check_patches(7, 17, 100, brief);
    check_patches(100, 145, 512, brief);
  }
  check_attention(3, 128);
  check_attention(6, 64);
  check_encoder({.vocabulary = 500, .width = 128, .blocks = 2, .heads = 2}, "small encoder");
  check_encoder({.vocabulary = 500, .blocks = 3, .heads = 3}, "P1's encoder");
  check_encoder({.vocabulary = 500, .blocks = 2, .heads = 2, .last_block = am::LastBlock::all_tokens},
                "all tokens");
  check_vit(am::LastBlock::first_token);
  check_vit(am::LastBlock::all_tokens);
  check_adam(false);
  check_adam(true);
  check_graphs();
  std::printf("%d failed\n", failures);
  return failures == 0 ? 0 : 1;
}

// optimizer_check: the optimizers of room `deep` on a GPU. Their kernels are checked by cuda_step_check; this is
// about what stands between LibTorch and them: types, layouts, masters, archives, steps that are skipped on the
// device, and the bits of tensor operations beside them. Prints a line a check. Ends with 0 if all is well, 1 if not,
// 77 where there is no GPU.
//
// With --cpu it runs on the CPU, so that the checks themselves can be checked where there is no GPU.
#include <attmirror/deep.hpp>

#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <c10/util/StringUtil.h>
#include <torch/cuda.h>
#include <torch/serialize.h>

namespace am = attmirror::deep;
using Tensors = std::vector<at::Tensor>;

namespace {

at::Device device = at::kCPU;
int failures = 0;

void report(const std::string& what, bool right) {
  std::printf("%-6s %s\n", right ? "ok" : "FAILED", what.c_str());
  failures += right ? 0 : 1;
}

at::Tensor random(at::IntArrayRef sizes, std::uint64_t seed, at::ScalarType type) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  return at::randn(sizes, generator, at::TensorOptions().dtype(at::kDouble)).to(type).to(device);
}

at::Tensor leaf(const at::Tensor& values) { return values.detach().clone().set_requires_grad(true); }

double distance(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor wide = b.detach().to(at::kDouble).cpu();
  return ((a.detach().to(at::kDouble).cpu() - wide).norm() / wide.norm()).item<double>();
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) { return at::equal(a.detach(), b.detach()); }

Tensors parameters_of(at::ScalarType type) {
  return {leaf(random({300, 70}, 1, type)), leaf(random({1}, 2, type)), leaf(random({4097}, 3, type)),
          random({33, 64}, 4, type).t().detach().set_requires_grad(true),  // another order in memory
          random({16, 40}, 5, type).slice(1, 0, 40, 2).detach().set_requires_grad(true)};  // with gaps
}

void give_gradients(const Tensors& parameters, std::uint64_t seed) {
  for (const at::Tensor& parameter : parameters)
    parameter.mutable_grad() = random(parameter.sizes(), seed++, parameter.scalar_type());
}

template <class Optimizer, class Options>
double worst_distance(at::ScalarType type, const Options& options) {
  const Tensors fused = parameters_of(type), plain = parameters_of(type);
  Optimizer one(fused, options);
  Optimizer other(plain, Options(options).fused(false));
  for (std::uint64_t step = 0; step < 3; ++step) {
    give_gradients(fused, 100 + 10 * step);
    give_gradients(plain, 100 + 10 * step);
    one.step();
    other.step();
  }
  double worst = 0;
  for (std::size_t i = 0; i < fused.size(); ++i) worst = std::max(worst, distance(fused[i], plain[i]));
  return worst;
}

void check_against_tensors() {
  struct Type {
    at::ScalarType type;
    double unit;
  };
  using Mirror = am::MirrorDescentOptions;
  using Steepest = am::SteepestDescentOptions;
  for (const Type& t :
       {Type{at::kFloat, 1e-7}, Type{at::kDouble, 1e-15}, Type{at::kBFloat16, 4e-3}, Type{at::kHalf, 5e-4}}) {
    for (const double p : {1.1, 1.5, 1.75, 2.0, 3.0, 10.0}) {
      // Arithmetic is in float or double, where a weight is the power 1/(p-1) of what is rounded; brief types differ by
      // the rounding of a result here and there.
      const bool is_brief = t.type == at::kBFloat16 || t.type == at::kHalf;
      const double bound = is_brief ? 2 * t.unit : 10 * t.unit * std::max(1.0, 1 / (p - 1));
      double worst = worst_distance<am::MirrorDescent>(t.type, Mirror(0.02).p(p));
      const auto also = [&](const Mirror& options) {
        worst = std::max(worst, worst_distance<am::MirrorDescent>(t.type, options));
      };
      also(Mirror(0.02).p(p).momentum(0.9).nesterov(true).weight_decay(0.1));
      also(Mirror(0.02).p(p).normalized(true).momentum(0.9));
      also(Mirror(0.02).p(p).dual_state(am::MasterState::on).gradient_scale(8).skip_nonfinite(true));
      also(Mirror(0.02).p(p).dual_state(am::MasterState::off).exact(true));
      const double steepest = worst_distance<am::SteepestDescent>(
          t.type, Steepest(0.02).norm(c10::str("l", p)).momentum(0.5).weight_decay(0.1));
      char text[120];
      std::snprintf(text, sizeof text,
                    "%s, p = %g: mirror %.1e and steepest %.1e from tensor operations (bound %.1e)",
                    at::toString(t.type), p, worst, steepest, bound);
      report(text, worst < bound && steepest < bound);
    }
    report(std::string(at::toString(t.type)) + ": sign steps are those of tensor operations",
           worst_distance<am::SteepestDescent>(t.type, Steepest(0.02).norm("sign")) < 2 * t.unit);
    // Newton-Schulz iterations make some three times as much of a rounding; weights are of size 1, steps of 0.02.
    double spectral = worst_distance<am::SteepestDescent>(t.type, Steepest(0.02).norm("spectral"));
    spectral = std::max(spectral, worst_distance<am::SteepestDescent>(t.type, Steepest(0.02)
                                                                                  .norm("spectral")
                                                                                  .momentum(0.9)
                                                                                  .nesterov(true)
                                                                                  .weight_decay(0.1)
                                                                                  .gradient_scale(8)
                                                                                  .maximize(true)));
    report(c10::str(at::toString(t.type), ": spectral steps of all matrices at once, ", spectral,
                    " from one at a time"),
           spectral < 10 * t.unit);
  }
}

// One group is looked at by the step itself, two beforehand.
void check_skipping(bool two_groups) {
  const Tensors w = {leaf(random({500}, 1, at::kBFloat16)), leaf(random({9}, 2, at::kBFloat16))};
  std::vector<torch::optim::OptimizerParamGroup> groups;
  if (two_groups) {
    groups.emplace_back(Tensors{w[0]});
    groups.emplace_back(Tensors{w[1]});
  } else {
    groups.emplace_back(w);
  }
  am::MirrorDescent optimizer(groups,
                              am::MirrorDescentOptions(0.1).p(1.5).momentum(0.9).skip_nonfinite(true));
  give_gradients(w, 10);
  optimizer.step();
  bool right = !optimizer.last_step_skipped();
  Tensors before;
  for (const at::Tensor& tensor : w) {
    before.push_back(tensor.detach().clone());
    before.push_back(optimizer.state_of(tensor)->master().clone());
    before.push_back(optimizer.state_of(tensor)->momentum().clone());
  }
  w[1].mutable_grad()[8] = std::numeric_limits<float>::infinity();
  optimizer.step();
  right &= optimizer.last_step_skipped();
  for (std::size_t i = 0; i < w.size(); ++i)
    right &= same_bits(w[i], before[3 * i]) &&
             same_bits(optimizer.state_of(w[i])->master(), before[3 * i + 1]) &&
             same_bits(optimizer.state_of(w[i])->momentum(), before[3 * i + 2]);
  give_gradients(w, 20);
  optimizer.step();
  right &= !optimizer.last_step_skipped() && !same_bits(w[0], before[0]) && !same_bits(w[1], before[3]);
  report(std::string("a step with an infinite gradient changes nothing, in ") +
             (two_groups ? "two groups" : "one group"),
         right);
}

void check_scaler() {
  const at::Tensor w = leaf(at::ones({5}, at::TensorOptions().dtype(at::kHalf).device(device)));
  am::MirrorDescent optimizer({w}, am::MirrorDescentOptions(1e6));
  am::GradScaler scaler;
  scaler.scale(w.to(at::kFloat).sum() * 1e-8).backward();
  scaler.step(optimizer);
  scaler.update();
  bool right = std::abs(w[0].item<double>() - 0.99) < 1e-3 && scaler.scale() == 65536;
  optimizer.zero_grad();
  scaler.scale(w.to(at::kFloat).sum() * 1e3).backward();  // 6.5e7 has no place in a float16
  scaler.step(optimizer);
  scaler.update();
  right &=
      optimizer.last_step_skipped() && std::abs(w[0].item<double>() - 0.99) < 1e-3 && scaler.scale() == 32768;
  report("GradScaler saves small gradients, and halves its scale after an overflow", right);
}

void check_archive() {
  const auto make = [](const Tensors& w, double lr) {
    return std::make_unique<am::MirrorDescent>(w, am::MirrorDescentOptions(lr).p(1.1).momentum(0.9));
  };
  const Tensors w = parameters_of(at::kBFloat16);
  const auto optimizer = make(w, 0.03);
  const auto run = [](am::MirrorDescent& one, const Tensors& parameters, std::uint64_t first) {
    for (std::uint64_t step = first; step < first + 5; ++step) {
      give_gradients(parameters, 100 + 10 * step);
      one.step();
    }
  };
  run(*optimizer, w, 0);
  torch::serialize::OutputArchive archive;
  optimizer->save(archive);
  std::stringstream stream;
  archive.save_to(stream);
  Tensors others;
  for (const at::Tensor& tensor : w) others.push_back(leaf(tensor));
  const auto resumed = make(others, 1);
  torch::load(*resumed, stream);
  run(*optimizer, w, 5);
  run(*resumed, others, 5);
  bool right = true;
  for (std::size_t i = 0; i < w.size(); ++i) right &= same_bits(w[i], others[i]);
  report("a loaded optimizer goes on with the same bits", right);
}

void check_autograd() {
  const at::Tensor w = leaf(random({4}, 1, at::kFloat));
  const at::Tensor loss = (w * w).sum();
  w.mutable_grad() = at::ones_like(w);
  am::MirrorDescent({w}, am::MirrorDescentOptions(0.1)).step();
  bool noticed = false;
  try {
    loss.backward();
  } catch (const c10::Error&) {
    noticed = true;
  }
  report("autograd notices that a step changed what it kept", noticed);
}

}  // namespace

int main(int count, char** words) {
  const bool on_cpu = count == 2 && std::string(words[1]) == "--cpu";
  if (!on_cpu) {
    if (!torch::cuda::is_available()) {
      std::fprintf(stderr, "optimizer_check: LibTorch finds no GPU\n");
      return 77;
    }
    device = at::Device(at::kCUDA, 0);
  }
  check_against_tensors();
  check_skipping(false);
  check_skipping(true);
  check_scaler();
  check_archive();
  check_autograd();
  std::printf("%d failed\n", failures);
  return failures == 0 ? 0 : 1;
}

// optimizer_bench: the time of one optimizer step, ours beside LibTorch's, on the CPU or a GPU, in one run.
//
//   attmirror_bench_optimizer [--device cpu|cuda] [--parameters N] [--tensors K] [--threads T] [--repeats R]
//
// A step is bound by memory, so what a step has to read and write (bytes per parameter) divided by its time is shown
// beside a plain copy. All cases take turns in rounds and medians are shown, so that a disturbance hits all alike. On
// a GPU the clock runs over several steps between two synchronisations, as in training.
//
// Without --parameters: 2^24 parameters in one tensor on the CPU (one thread); on a GPU 2^28 in one tensor, and then 17
// million in 40.
#include <attmirror/deep.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/cuda.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/version.h>

namespace am = attmirror::deep;
using Tensors = std::vector<at::Tensor>;

namespace {

struct Settings {
  at::Device device = at::kCPU;
  std::int64_t parameters = 0;  // 0: the defaults of the device
  std::int64_t tensors = 1;
  int threads = 1;
  int repeats = 11;
};

struct Case {
  std::string name;
  double bytes;  // per parameter, that a step must read and write
  std::function<void()> step;
  std::vector<double> seconds = {};
};

// Parameters with gradients, of the sizes that networks have: weights of about 0.02.
Tensors make_parameters(const Settings& settings, at::ScalarType type) {
  at::manual_seed(1);
  const auto options = at::TensorOptions().device(settings.device).dtype(at::kFloat);
  Tensors result;
  for (std::int64_t i = 0; i < settings.tensors; ++i) {
    const std::int64_t size =
        settings.parameters * (i + 1) / settings.tensors - settings.parameters * i / settings.tensors;
    at::Tensor w = at::randn({size}, options).mul_(0.02).to(type).set_requires_grad(true);
    w.mutable_grad() = at::randn({size}, options).mul_(0.01).to(type);
    result.push_back(w);
  }
  return result;
}

template <class Optimizer, class Options>
std::function<void()> step_of(const Tensors& parameters, const Options& options) {
  const auto optimizer = std::make_shared<Optimizer>(parameters, options);
  return [optimizer] { optimizer->step(); };
}

// P1's code: one operation of PyTorch after the other.
void step_of_the_paper(const Tensors& parameters, double p, double lr) {
  const at::NoGradGuard no_gradients;
  for (const at::Tensor& w : parameters) {
    const at::Tensor y = at::sign(w) * at::abs(w).pow(p - 1) - lr * w.grad();
    w.copy_(at::sign(y) * at::abs(y).pow(1 / (p - 1)));
  }
}

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
void add_fused_of_torch(std::vector<Case>& cases, const Tensors& parameters) {
  Tensors gradients, first, second, steps;
  for (const at::Tensor& w : parameters) {
    gradients.push_back(w.grad());
    first.push_back(at::zeros_like(w.detach()));
    second.push_back(at::zeros_like(w.detach()));
    steps.push_back(at::ones({}, w.options().dtype(at::kFloat).requires_grad(false)));
  }
  cases.push_back({"torch fused SGD", 12, [=] {
                     const at::NoGradGuard no_gradients;
                     at::_fused_sgd_(parameters, gradients, {}, 0, 0, 1e-4, 0, false, false, false);
                   }});
  cases.push_back({"torch fused SGD, momentum", 20, [=] {
                     const at::NoGradGuard no_gradients;
                     at::_fused_sgd_(parameters, gradients, first, 0, 0.9, 1e-4, 0, false, false, false);
                   }});
  cases.push_back({"torch fused Adam", 28, [=] {
                     const at::NoGradGuard no_gradients;
                     at::_fused_adam_(parameters, gradients, first, second, {}, steps, 1e-4, 0.9, 0.999, 0,
                                      1e-8, false, false);
                   }});
}
#endif

std::vector<Case> make_cases(const Settings& settings) {
  using Options = am::MirrorDescentOptions;
  const Tensors w = make_parameters(settings, at::kFloat);
  const auto ours = [&](const char* name, double bytes, const Options& options) {
    return Case{name, bytes, step_of<am::MirrorDescent>(w, options)};
  };
  std::vector<Case> cases;
  cases.push_back({"torch SGD", 12, step_of<torch::optim::SGD>(w, torch::optim::SGDOptions(1e-4))});
  Tensors copies;
  for (const at::Tensor& tensor : w) copies.push_back(at::empty_like(tensor.detach()));
  cases.push_back({"copy", 8, [=] {
                     const at::NoGradGuard no_gradients;
                     for (std::size_t i = 0; i < w.size(); ++i) copies[i].copy_(w[i]);
                   }});
  cases.push_back({"torch SGD, momentum", 20,
                   step_of<torch::optim::SGD>(w, torch::optim::SGDOptions(1e-4).momentum(0.9))});
  cases.push_back({"torch Adam", 28, step_of<torch::optim::Adam>(w, torch::optim::AdamOptions(1e-6))});
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  add_fused_of_torch(cases, w);
#endif
  cases.push_back({"ours, Adam", 28, step_of<am::FusedAdam>(w, torch::optim::AdamOptions(1e-6))});
  cases.push_back({"P1's code, p = 1.1", 12, [=] { step_of_the_paper(w, 1.1, 1e-4); }});
  cases.push_back({"P1's code, p = 3", 12, [=] { step_of_the_paper(w, 3, 1e-6); }});
  cases.push_back(ours("ours, p = 1.1", 12, Options(1e-4).p(1.1)));
  cases.push_back(ours("ours, p = 1.5", 12, Options(1e-4).p(1.5)));
  cases.push_back(ours("ours, p = 1.75", 12, Options(1e-4).p(1.75)));
  cases.push_back(ours("ours, p = 2", 12, Options(1e-4).p(2)));
  cases.push_back(ours("ours, p = 3", 12, Options(1e-6).p(3)));
  cases.push_back(ours("ours, p = 10", 12, Options(1e-14).p(10)));
  cases.push_back(ours("ours, p = 1.1, normalised", 16, Options(1e-4).p(1.1).normalized(true)));
  cases.push_back(ours("ours, p = 2, normalised", 16, Options(1e-4).p(2).normalized(true)));
  cases.push_back(ours("ours, p = 3, normalised", 16, Options(1e-6).p(3).normalized(true)));
  cases.push_back(ours("ours, p = 1.1, skip on Inf", 16, Options(1e-4).p(1.1).skip_nonfinite(true)));
  cases.push_back(ours("ours, p = 1.1, weight decay", 12, Options(1e-4).p(1.1).weight_decay(0.01)));
  cases.push_back(ours("ours, p = 2, momentum", 20, Options(1e-4).p(2).momentum(0.9)));
  cases.push_back(ours("ours, p = 1.1, momentum", 20, Options(1e-4).p(1.1).momentum(0.9)));
  // The dual state is the weight that is read; the weights are only written.
  cases.push_back(
      ours("ours, p = 1.1, dual state", 16, Options(1e-4).p(1.1).dual_state(am::MasterState::on)));

  const Tensors brief = make_parameters(settings, at::kBFloat16);
  const auto ours_brief = [&](const char* name, double bytes, const Options& options) {
    return Case{name, bytes, step_of<am::MirrorDescent>(brief, options)};
  };
  cases.push_back({"bf16: torch SGD", 6, step_of<torch::optim::SGD>(brief, torch::optim::SGDOptions(1e-4))});
  cases.push_back(ours_brief("bf16: ours, p = 1.1, no dual state", 6,
                             Options(1e-4).p(1.1).dual_state(am::MasterState::off)));
  cases.push_back(ours_brief("bf16: ours, p = 1.1, dual state", 12, Options(1e-4).p(1.1)));
  cases.push_back(ours_brief("bf16: ours, p = 2, dual state", 12, Options(1e-4).p(2)));
  cases.push_back(ours_brief("bf16: ours, p = 3, dual state", 12, Options(1e-6).p(3)));
  cases.push_back(
      ours_brief("bf16: ours, p = 1.1, dual state, momentum", 20, Options(1e-4).p(1.1).momentum(0.9)));
  return cases;
}

double seconds_of(const Settings& settings, const Case& entry, int steps) {
  const auto synchronize = [&] {
    if (settings.device.is_cuda()) torch::cuda::synchronize();
  };
  synchronize();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i) entry.step();
  synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / steps;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void run(const Settings& settings) {
  std::printf("\n%lld float32 (and bfloat16) parameters in %lld tensor(s) on %s, LibTorch %s, %d thread(s)\n",
              static_cast<long long>(settings.parameters), static_cast<long long>(settings.tensors),
              settings.device.str().c_str(), TORCH_VERSION, at::get_num_threads());
  std::vector<Case> cases = make_cases(settings);
  // The first step makes states and fills caches. It also says how many steps are worth timing at once, and that a slow
  // case need not be repeated as often.
  std::vector<int> steps;
  for (Case& entry : cases) {
    seconds_of(settings, entry, 1);
    const double once = seconds_of(settings, entry, 1);
    steps.push_back(settings.device.is_cuda() ? std::clamp(static_cast<int>(0.02 / once), 1, 50) : 1);
    entry.seconds.push_back(seconds_of(settings, entry, steps.back()));
  }
  for (int round = 1; round < settings.repeats; ++round)
    for (std::size_t c = 0; c < cases.size(); ++c)
      if (cases[c].seconds.front() * steps[c] * round < 3)
        cases[c].seconds.push_back(seconds_of(settings, cases[c], steps[c]));

  const double sgd = median(cases.front().seconds);
  std::printf("%-44s %10s %10s %8s %8s %10s\n", "", "ms", "ns/param", "GB/s", "to SGD", "least ms");
  for (const Case& entry : cases) {
    const double seconds = median(entry.seconds), size = static_cast<double>(settings.parameters);
    std::printf("%-44s %10.3f %10.3f %8.1f %8.2f %10.3f\n", entry.name.c_str(), 1e3 * seconds,
                1e9 * seconds / size, entry.bytes * size / seconds / 1e9, seconds / sgd,
                1e3 * *std::min_element(entry.seconds.begin(), entry.seconds.end()));
  }
}

[[noreturn]] void usage(const std::string& complaint) {
  std::fprintf(
      stderr,
      "%s\nusage: attmirror_bench_optimizer [--device cpu|cuda] [--parameters N] [--tensors K] [--threads T] "
      "[--repeats R]\n",
      complaint.c_str());
  std::exit(2);
}

std::int64_t number(const std::string& name, const char* text) {
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  if (end == text || *end != '\0' || value < 1)
    usage(name + " is " + text + ": expected a whole number from 1");
  return value;
}

Settings parse(int count, char** words) {
  Settings settings;
  for (int i = 1; i < count; i += 2) {
    const std::string name = words[i];
    if (i + 1 == count) usage(name + " needs a value");
    if (name == "--device")
      settings.device = at::Device(std::string(words[i + 1]));
    else if (name == "--parameters")
      settings.parameters = number(name, words[i + 1]);
    else if (name == "--tensors")
      settings.tensors = number(name, words[i + 1]);
    else if (name == "--threads")
      settings.threads = static_cast<int>(number(name, words[i + 1]));
    else if (name == "--repeats")
      settings.repeats = static_cast<int>(number(name, words[i + 1]));
    else
      usage("unknown option " + name);
  }
  if (settings.device.is_cuda() && !torch::cuda::is_available()) usage("LibTorch finds no GPU");
  return settings;
}

}  // namespace

int main(int count, char** words) {
  Settings settings = parse(count, words);
  at::set_num_threads(settings.threads);
  if (settings.parameters > 0) {
    run(settings);
  } else if (settings.device.is_cuda()) {
    settings.parameters = std::int64_t{1} << 28;
    run(settings);
    settings.parameters = 17'000'000;
    settings.tensors = 40;
    run(settings);
  } else {
    settings.parameters = std::int64_t{1} << 24;
    run(settings);
  }
}

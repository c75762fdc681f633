// Checks what a fused step on a GPU does besides arithmetic: norms, momentum, scaled and infinite gradients, many and
// large tensors, graphs, a hundred steps in doubles. Ends with 0 if all is well, 1 if not, 77 where there is no GPU.
#include "device/device_cases.hpp"
#include <attmirror/base/error.hpp>

#include <cstdint>
#include <limits>
#include <random>

namespace {

using namespace attmirror;
using namespace attmirror::test;

std::vector<float> normal_numbers(std::size_t count, double deviation, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal(0, deviation);
  std::vector<float> numbers(count);
  for (float& number : numbers) number = static_cast<float>(normal(engine));
  return numbers;
}

double relative_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(difference / size);
}

// The same tensors on both sides; the host's are stepped by the exact arithmetic of the CPU.
struct Twin {
  explicit Twin(const std::vector<std::size_t>& sizes, double scale = 1) {
    std::size_t total = 0;
    for (const std::size_t size : sizes) total += size;
    w = normal_numbers(total, 0.02, 3);
    g = normal_numbers(total, 1e-3 * scale, 4);
    m = normal_numbers(total, 1e-3, 5);
    device_w.copy_from(w), device_g.copy_from(g), device_m.copy_from(m);
    std::size_t at = 0;
    for (const std::size_t size : sizes) {
      const auto count = static_cast<std::ptrdiff_t>(size);
      host.push_back({w.data() + at, g.data() + at, nullptr, m.data() + at, count});
      device.push_back({device_w.data() + at, device_g.data() + at, nullptr, device_m.data() + at, count});
      at += size;
    }
  }
  void step(const StepOptions& options, DeviceScaling scaling = {}, double host_scale = 1) {
    fused_step_on_device(StepElement::float32, device, options, workspace.data(), nullptr, scaling);
    require_cuda(cudaDeviceSynchronize(), "make a step");
    StepOptions on_host = options;
    on_host.gradient_scale *= host_scale;
    on_host.arithmetic = StepArithmetic::exact;
    fused_step(StepElement::float32, host, on_host, &pool());
  }
  // Norm-wise; of what w has moved by, for w itself hardly moves.
  double distance(const std::vector<float>& start) const {
    std::vector<float> got(w.size());
    device_w.copy_to(got);
    std::vector<double> a, b;
    for (std::size_t i = 0; i < w.size(); ++i) {
      a.push_back(static_cast<double>(got[i]) - start[i]);
      b.push_back(static_cast<double>(w[i]) - start[i]);
    }
    return relative_distance(a, b);
  }
  std::vector<float> w, g, m;
  DeviceArray<float> device_w{std::size_t{1} << 22}, device_g{std::size_t{1} << 22},
      device_m{std::size_t{1} << 22};
  DeviceArray<char> workspace{std::size_t{1} << 24};
  std::vector<StepTensor> host, device;
};

std::vector<std::size_t> many_sizes() {
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < 300; ++i) sizes.push_back(i % 7 == 0 ? 0 : i % 5 == 0 ? 1 : (i * 37) % 800 + 3);
  sizes.push_back(200'003);
  return sizes;
}

// With gradients that are `scale` too large; the host is told of what the device finds in its own memory.
void check_against_exact(const std::string& what, const StepOptions& options, double scale,
                         DeviceScaling scaling = {}) {
  Twin twin(many_sizes(), scale);
  const std::vector<float> start = twin.w;
  twin.step(options, scaling, scaling.gradient_scale ? scale : 1);
  report(what + ": distance in units of 1e-5", twin.distance(start) * 1e5, 1);
}

void check_norms() {
  for (const double p : {1.1, 1.5, 1.75, 2.0, 3.0, 10.0})
    for (const double scale : {1.0, 1e-30, 1e30}) {
      Twin twin(many_sizes(), scale);
      const std::vector<float> start = twin.w;
      // p = 10 takes large steps from small weights; the rates keep w' - w a good measure.
      twin.step({.p = p, .rate = p > 3 ? 1e-14 : 0.1, .normalized = true});
      report("normalised p = " + std::to_string(p).substr(0, 4) + " at scale " + std::to_string(scale) +
                 ", units of 1e-5",
             twin.distance(start) * 1e5, p == 10 ? 100 : 1);
    }
}

void check_momentum() {
  for (const bool nesterov : {false, true}) {
    Twin twin(many_sizes());
    const std::vector<float> start = twin.w;
    for (int i = 0; i < 3; ++i)
      twin.step({.p = 1.5,
                 .rate = nesterov ? 0.1 : 10,
                 .momentum = 0.9,
                 .nesterov = nesterov,
                 .weight_decay = 0.01,
                 .normalized = nesterov});
    std::vector<float> momentum(twin.m.size());
    twin.device_m.copy_to(momentum);
    report(std::string("three steps with momentum") + (nesterov ? ", Nesterov, normalised" : "") +
               ", units of 1e-5",
           twin.distance(start) * 1e5, 1);
    report("  and the momentum itself, units of 1e-6",
           relative_distance({momentum.begin(), momentum.end()}, {twin.m.begin(), twin.m.end()}) * 1e6, 1);
  }
}

void check_scaling() {
  check_against_exact("gradients scaled by an option", {.p = 1.5, .rate = 10, .gradient_scale = 1024}, 1024);
  const std::vector<float> numbers{65536.0f, 0.0f};
  DeviceArray<float> scalars{std::span<const float>(numbers)};
  check_against_exact("gradients scaled by a number on the GPU", {.p = 1.5, .rate = 10}, 65536,
                      {scalars.data(), nullptr});
  check_against_exact("... with momentum", {.p = 1.5, .rate = 10, .momentum = 0.9}, 65536,
                      {scalars.data(), nullptr});

  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    for (const bool normalized : {false, true}) {
      Twin twin(many_sizes());
      const std::vector<float> start = twin.w, momenta = twin.m;
      twin.g[twin.g.size() - 100] = bad;
      twin.device_g.copy_from(twin.g);
      twin.step({.p = 1.1,
                 .rate = normalized ? 0.1 : 10,
                 .momentum = 0.5,
                 .normalized = normalized,
                 .skip_nonfinite = true},
                {nullptr, scalars.data() + 1});
      std::vector<float> w(start.size()), m(start.size()), after(2);
      twin.device_w.copy_to(w), twin.device_m.copy_to(m), scalars.copy_to(after);
      expect(w == start && m == momenta, "a step with an infinite gradient is skipped without a trace");
      expect(after[1] == 1.0f, "... and says so");
      twin.g[twin.g.size() - 100] = 0.5f;
      twin.device_g.copy_from(twin.g);
      twin.step({.p = 1.1,
                 .rate = normalized ? 0.1 : 10,
                 .momentum = 0.5,
                 .normalized = normalized,
                 .skip_nonfinite = true},
                {nullptr, scalars.data() + 1});
      scalars.copy_to(after);
      expect(after[1] == 0.0f, "a finite step clears the flag");
      expect(twin.distance(start) < 1e-5, "... and is made");
      // A flag that somebody else has set.
      const std::vector<float> set{65536.0f, 1.0f};
      scalars.copy_from(set);
      twin.device_w.copy_to(w);
      fused_step_on_device(StepElement::float32, twin.device, {.p = 1.1, .rate = 1e-2, .momentum = 0.5},
                           nullptr, nullptr, {nullptr, scalars.data() + 1});
      std::vector<float> again(start.size());
      twin.device_w.copy_to(again);
      expect(w == again, "a step is skipped where a flag on the GPU says so");
    }
}

// The rate, and what decay leaves, from device memory: as good as from the options.
void check_device_rate() {
  const std::vector<float> numbers{0.25f};
  DeviceArray<float> rate{std::span<const float>(numbers)};
  for (const double p : {1.1, 1.5, 1.75, 2.0, 3.0})
    for (const double decay : {0.0, 0.1})
      for (const bool normalized : {false, true})
        for (const StepArithmetic arithmetic : {StepArithmetic::fast, StepArithmetic::exact}) {
          Twin by_option(many_sizes()), by_device(many_sizes());
          StepOptions options{.p = p,
                              .rate = 0.25,
                              .weight_decay = decay,
                              .normalized = normalized,
                              .arithmetic = arithmetic};
          expect(cuda_workspace_bytes(by_option.device, options, {.rate = rate.data()}) > 0,
                 "a rate on the GPU needs a workspace");
          fused_step_on_device(StepElement::float32, by_option.device, options, by_option.workspace.data(),
                               nullptr);
          options.rate = 0;
          fused_step_on_device(StepElement::float32, by_device.device, options, by_device.workspace.data(),
                               nullptr, {.rate = rate.data()});
          std::vector<float> a(by_option.w.size()), b(by_option.w.size());
          by_option.device_w.copy_to(a), by_device.device_w.copy_to(b);
          std::size_t different = 0;
          for (std::size_t i = 0; i < a.size(); ++i) different += !same_bits(a[i], b[i]);
          // What decay leaves may differ by an ulp of a double between the two machines' exp().
          expect(different <= (decay > 0 ? a.size() / 1000 : 0),
                 "p = " + std::to_string(p) + ": " + std::to_string(different) +
                     " numbers differ with a rate from the GPU");
        }
}

void check_maximize() {
  for (const double p : {1.1, 1.5, 1.75, 2.0, 3.0, 10.0})
    for (const StepRule rule : {StepRule::mirror, StepRule::steepest, StepRule::sign})
      for (const double momentum : {0.0, 0.9})
        for (const bool normalized : {false, true})
          for (const StepArithmetic arithmetic : {StepArithmetic::fast, StepArithmetic::exact}) {
            if (normalized && rule != StepRule::mirror) continue;
            Twin up(many_sizes()), down(many_sizes());
            for (float& g : down.g) g = -g;
            down.device_g.copy_from(down.g);
            StepOptions options{.rule = rule,
                                .p = p,
                                .rate = p > 3 ? 1e-14 : 0.1,
                                .momentum = momentum,
                                .weight_decay = 0.1,
                                .normalized = normalized,
                                .gradient_scale = 4,
                                .arithmetic = arithmetic};
            fused_step_on_device(StepElement::float32, down.device, options, down.workspace.data(), nullptr);
            options.maximize = true;
            fused_step_on_device(StepElement::float32, up.device, options, up.workspace.data(), nullptr);
            std::vector<float> a(up.w.size()), b(up.w.size()), m(up.w.size()), n(up.w.size());
            up.device_w.copy_to(a), down.device_w.copy_to(b);
            up.device_m.copy_to(m), down.device_m.copy_to(n);
            expect(a == b && m == n && a != up.w, "maximizing is stepping along minus the gradient, " +
                                                      std::string(to_string(rule)) +
                                                      " p = " + std::to_string(p));
          }
}

// A step in two calls, and a tensor in two parts that step by the norm of the whole.
void check_norms_from_outside() {
  for (const double p : {1.1, 1.5, 1.75, 2.0, 3.0})
    for (const StepRule rule : {StepRule::mirror, StepRule::steepest})
      for (const double momentum : {0.0, 0.9})
        for (const StepArithmetic arithmetic : {StepArithmetic::fast, StepArithmetic::exact}) {
          const StepOptions options{.rule = rule,
                                    .p = p,
                                    .rate = 0.1,
                                    .momentum = momentum,
                                    .normalized = rule == StepRule::mirror,
                                    .gradient_scale = 2,
                                    .arithmetic = arithmetic};
          Twin whole(many_sizes()), halves(many_sizes());
          const std::vector<float> start = whole.w;
          fused_step_on_device(StepElement::float32, whole.device, options, whole.workspace.data(), nullptr);
          DeviceArray<double> norms{halves.device.size()};
          measure_on_device(StepElement::float32, halves.device, options, norms.data(),
                            halves.workspace.data(), nullptr);
          std::vector<float> unchanged(start.size()), momenta(start.size());
          halves.device_w.copy_to(unchanged), halves.device_m.copy_to(momenta);
          expect(unchanged == start && momenta == halves.m, "measuring changes nothing");
          std::vector<double> measured(halves.device.size()), on_host(halves.host.size());
          norms.copy_to(measured);
          measure_step(StepElement::float32, halves.host, options, on_host);
          double error = 0;
          for (std::size_t i = 0; i < measured.size(); ++i)
            error = std::max(error, std::abs(measured[i] - on_host[i]) / std::max(on_host[i], 1e-300));
          report("norms of the two machines, p = " + std::to_string(p).substr(0, 4) + ", units of 1e-6",
                 error * 1e6, 1);
          fused_step_on_device(StepElement::float32, halves.device, options, halves.workspace.data(), nullptr,
                               {.norms = norms.data()});
          std::vector<float> a(start.size()), b(start.size());
          whole.device_w.copy_to(a), halves.device_w.copy_to(b);
          report("a step in two calls, units of 1e-5",
                 relative_distance({a.begin(), a.end()}, {b.begin(), b.end()}) * 1e5, 1);

          Twin parts({3'000, 201'003});
          Twin one({204'003});
          fused_step_on_device(StepElement::float32, one.device, options, one.workspace.data(), nullptr);
          measure_on_device(StepElement::float32, parts.device, options, norms.data(), parts.workspace.data(),
                            nullptr);
          std::vector<double> two(2);
          norms.copy_to(two);
          const double q = p / (p - 1), top = std::max(two[0], two[1]);
          two[0] = two[1] = top * std::pow(std::pow(two[0] / top, q) + std::pow(two[1] / top, q), 1 / q);
          norms.copy_from(two);
          fused_step_on_device(StepElement::float32, parts.device, options, parts.workspace.data(), nullptr,
                               {.norms = norms.data()});
          std::vector<float> c(one.w.size()), d(one.w.size());
          one.device_w.copy_to(c), parts.device_w.copy_to(d);
          report("two parts with the norm of the whole, units of 1e-5",
                 relative_distance({c.begin(), c.end()}, {d.begin(), d.end()}) * 1e5, 1);
        }
  // A norm that is not finite skips, where that is asked for, and says so.
  Twin twin({1000});
  const std::vector<double> infinite{std::numeric_limits<double>::infinity()};
  DeviceArray<double> norms{std::span<const double>(infinite)};
  const std::vector<float> zero{0.0f};
  DeviceArray<float> found{std::span<const float>(zero)};
  fused_step_on_device(
      StepElement::float32, twin.device, {.p = 2, .rate = 0.1, .normalized = true, .skip_nonfinite = true},
      twin.workspace.data(), nullptr, {.found_nonfinite = found.data(), .norms = norms.data()});
  std::vector<float> after(1000), flag(1);
  twin.device_w.copy_to(after), found.copy_to(flag);
  expect(after == twin.w && flag[0] == 1.0f, "an infinite norm from outside skips the step");
}

void check_hundred_double_steps() {
  for (const double p : {1.1, 1.5, 1.75, 2.0, 3.0, 10.0}) {
    const std::vector<float> w_start = normal_numbers(5001, 0.02, 7),
                             gradients = normal_numbers(5001, 1e-3, 8);
    std::vector<double> w(w_start.begin(), w_start.end()), g(gradients.begin(), gradients.end()),
        expected = w;
    DeviceArray<double> device_w{std::span<const double>(w)}, device_g{std::span<const double>(g)};
    const std::vector<StepTensor> tensors{{device_w.data(), device_g.data(), nullptr, nullptr, 5001}};
    const double rate = p > 3 ? 1e-12 : 1e-2;
    for (int i = 0; i < 100; ++i) {
      fused_step_on_device(StepElement::float64, tensors, {.p = p, .rate = rate}, nullptr, nullptr);
      for (std::size_t j = 0; j < w.size(); ++j) {
        const double y = std::copysign(std::pow(std::abs(expected[j]), p - 1), expected[j]);
        const double next = y - rate * g[j];
        expected[j] = std::copysign(std::pow(std::abs(next), 1 / (p - 1)), next);
      }
    }
    device_w.copy_to(w);
    report("100 steps in doubles, p = " + std::to_string(p).substr(0, 4) + ", units of 1e-12",
           relative_distance(w, expected) * 1e12, 1);
  }
}

void check_large() {
  // More numbers than one wave of blocks, at an odd address; every number must be written, by the same arithmetic.
  const std::size_t size = 3'000'001;
  Twin twin({1, size});
  const std::vector<float> before = twin.w;
  const StepOptions options{.p = 1.1, .rate = 0.1};
  const kernels::StepPlan plan = make_step_plan(options);
  fused_step_on_device(StepElement::float32, twin.device, options, nullptr, nullptr);
  std::vector<float> after(before.size());
  twin.device_w.copy_to(after);
  report("3 million numbers at an odd address, ulps of the image (each 37th)",
         largest(static_cast<std::ptrdiff_t>(size / 37),
                 [&](std::ptrdiff_t c) {
                   const auto i = static_cast<std::size_t>(c) * 37 + 1;
                   return mirror_error(before[i], twin.g[i], after[i], plan).image_ulps;
                 }),
         2);
  std::size_t unmoved = 0;
  for (std::size_t i = 0; i < after.size(); ++i) unmoved += after[i] == before[i] && twin.g[i] != 0;
  expect(unmoved < after.size() / 100, std::to_string(unmoved) + " numbers were not written");
}

void check_finding() {
  Twin twin(many_sizes());
  const std::vector<float> zero{0.0f};
  DeviceArray<float> found{std::span<const float>(zero)};
  const auto find = [&] {
    std::vector<float> result(1);
    find_nonfinite_on_device(StepElement::float32, twin.device, found.data(), twin.workspace.data(), nullptr);
    found.copy_to(result);
    return result[0];
  };
  expect(find() == 0.0f, "finite gradients are found to be so");
  twin.g[5] = -std::numeric_limits<float>::infinity();
  twin.device_g.copy_from(twin.g);
  expect(find() == 1.0f, "an infinite gradient is found");
  twin.g[5] = 0.0f;
  twin.device_g.copy_from(twin.g);
  expect(find() == 1.0f, "what has been found before stays");
}

void check_graph() {
  Twin twin(many_sizes());
  const std::vector<float> start = twin.w;
  cudaStream_t stream;
  require_cuda(cudaStreamCreate(&stream), "create a stream");
  cudaGraph_t graph;
  cudaGraphExec_t runnable;
  const StepOptions options{.p = 1.5, .rate = 1e-2, .normalized = true, .skip_nonfinite = true};
  require_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin a capture");
  fused_step_on_device(StepElement::float32, twin.device, options, twin.workspace.data(), stream);
  require_cuda(cudaStreamEndCapture(stream, &graph), "end a capture");
  require_cuda(cudaGraphInstantiate(&runnable, graph, 0), "make a graph");
  for (int i = 0; i < 3; ++i) {
    require_cuda(cudaGraphLaunch(runnable, stream), "run a graph");
    StepOptions on_host = options;
    on_host.arithmetic = StepArithmetic::exact;
    fused_step(StepElement::float32, twin.host, on_host, &pool());
  }
  require_cuda(cudaStreamSynchronize(stream), "run a graph");
  report("three replays of a captured step, units of 1e-5", twin.distance(start) * 1e5, 1);
  cudaGraphExecDestroy(runnable);
  cudaGraphDestroy(graph);

  // A captured step follows a rate that changes.
  Twin scheduled(many_sizes());
  DeviceArray<float> rate{1};
  require_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin a capture");
  fused_step_on_device(StepElement::float32, scheduled.device, {.p = 1.5, .weight_decay = 0.1},
                       scheduled.workspace.data(), stream, {.rate = rate.data()});
  require_cuda(cudaStreamEndCapture(stream, &graph), "end a capture");
  require_cuda(cudaGraphInstantiate(&runnable, graph, 0), "make a graph");
  for (const float lr : {2.0f, 1.0f, 0.5f}) {
    const std::vector<float> now{lr};
    rate.copy_from(now);
    require_cuda(cudaGraphLaunch(runnable, stream), "run a graph");
    require_cuda(cudaStreamSynchronize(stream), "run a graph");
    fused_step(StepElement::float32, scheduled.host,
               {.p = 1.5, .rate = lr, .weight_decay = 0.1, .arithmetic = StepArithmetic::exact}, &pool());
  }
  report("three replays at rates from the GPU, units of 1e-5", scheduled.distance(start) * 1e5, 1);
  cudaGraphExecDestroy(runnable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

void check_errors() {
  const auto message = [](const StepOptions& options, std::vector<StepTensor> tensors) -> std::string {
    try {
      fused_step_on_device(StepElement::float32, tensors, options, nullptr, nullptr);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  float number = 0;
  expect(message({.p = 1, .rate = 1}, {}).find("p is 1") != std::string::npos, "p = 1 is refused");
  expect(message({.rate = 1}, {{&number, nullptr, nullptr, nullptr, 1}}) == "tensors[0].gradient is null",
         "a missing gradient");
  expect(message({.rate = 1, .normalized = true}, {{&number, &number, nullptr, nullptr, 1}})
                 .find("workspace is null") == 0,
         "a missing workspace");
  expect(message({.rate = 1}, {}).empty(), "no tensors at all are fine");
}

}  // namespace

int main() {
  if (!has_gpu()) {
    std::printf("there is no GPU\n");
    return no_gpu;
  }
  check_errors();
  check_norms();
  check_momentum();
  check_scaling();
  check_device_rate();
  check_maximize();
  check_norms_from_outside();
  check_hundred_double_steps();
  check_large();
  check_finding();
  check_graph();
  std::printf("%s: %d failed\n", failures == 0 ? "all is well" : "NOT WELL", failures);
  return failures == 0 ? 0 : 1;
}

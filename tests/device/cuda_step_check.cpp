// Checks every number that a fused step on a GPU computes against the bounds of step_bounds.hpp, and prints the largest
// error of each kind: cuda_step_check [CASES]. Ends with 0 if all bounds hold, 1 if not, 77 where there is no GPU.
#include "device/device_cases.hpp"

#include <atomic>
#include <cstdlib>

namespace {

using namespace attmirror;
using namespace attmirror::test;

int per_kind = 300;

// One step over all hard cases. `bound` is in ulps of the image.
template <class T>
void check_step(double p, StepRule rule, bool has_master, double weight_decay, StepArithmetic arithmetic) {
  constexpr StepElement element = element_of<T>;
  StepOptions options{
      .rule = rule, .p = p, .rate = 0.1, .weight_decay = weight_decay, .arithmetic = arithmetic};
  StepOptions for_cases = options;
  if (rule == StepRule::sign) for_cases.rule = StepRule::mirror, for_cases.p = 2;
  const kernels::StepPlan plan = make_step_plan(options);
  test::StepCaseOptions case_options;
  case_options.per_kind = arithmetic == StepArithmetic::exact ? per_kind / 10 + 1 : per_kind;
  std::vector<StepCase> cases = test::step_cases(make_step_plan(for_cases), element, case_options);
  if (rule == StepRule::steepest)  // one norm for all: no huge numbers beside small ones
    for (StepCase& c : cases) c.d = widen(narrow<T>(std::clamp(c.d, -2.0, 2.0)));
  Arrays<T> arrays(cases, has_master, 0);
  const std::vector<T> before = arrays.w;
  if (has_master) fill_masters_on_device(element, arrays.tensors, options, nullptr);
  arrays.fetch();
  const std::vector<State<T>> masters = arrays.y;
  fused_step_on_device(element, arrays.tensors, options, arrays.workspace.data(), nullptr);
  require_cuda(cudaDeviceSynchronize(), "make a step");
  arrays.fetch();

  std::string what = std::string(to_string(element)) + " " + std::string(to_string(rule)) +
                     " p = " + std::to_string(p).substr(0, 5) + (has_master ? " master" : "") +
                     (weight_decay > 0 ? " decay" : "") +
                     (arithmetic == StepArithmetic::exact ? " exact" : "");
  expect(arrays.borders_hold(), what + ": wrote beyond a tensor");
  double worst = 0, worst_weight = 0, worst_fill = 0;
  std::atomic<int> moved{0};
  for (const auto& [begin, size] : arrays.ranges) {
    // Steepest: the tensor's own norm, in the arithmetic of the kernel or nearly so; each tensor has another.
    double shrink = 1;
    if (rule == StepRule::steepest) {
      DualNorm norm(plan.dual);
      for (std::ptrdiff_t i = begin; i < begin + size; ++i) {
        const double d = std::abs(widen(arrays.g[static_cast<std::size_t>(i)]));
        norm.add({d, d > 0 ? 1.0 : 0.0});
      }
      shrink = norm.value() == 0 ? 0 : 1 / norm.value();
    }
    const auto all = [&, first = begin](auto&& f) {
      return largest(size, [&](std::ptrdiff_t i) { return f(static_cast<std::size_t>(first + i)); });
    };
    if (weight_decay == 0)
      all([&](std::size_t i) {
        if (widen(arrays.g[i]) == 0 &&
            !(same_bits(arrays.w[i], before[i]) && same_bits(arrays.y[i], masters[i])))
          ++moved;
        return 0.0;
      });
    const auto d = [&](std::size_t i) { return widen(arrays.g[i]); };
    const auto count = [](double error, double& to) { to = error > to || std::isnan(error) ? error : to; };
    if (rule == StepRule::mirror && !has_master) {
      count(all([&](std::size_t i) {
              const auto error =
                  test::mirror_error(widen(before[i]), d(i), widen(arrays.w[i]), plan, 1, element);
              return arithmetic == StepArithmetic::exact ? error.ulps : error.image_ulps;
            }),
            worst);
    } else if (rule == StepRule::mirror) {
      count(
          all([&](std::size_t i) {
            return d(i) == 0 && weight_decay == 0
                       ? 0
                       : test::master_error(masters[i], d(i), arrays.y[i], plan, 1, element).ulps_of_largest;
          }),
          worst);
      count(all([&](std::size_t i) {
              return d(i) == 0 && weight_decay == 0
                         ? 0
                         : test::weight_error(arrays.y[i], widen(arrays.w[i]), plan, element).ulps;
            }),
            worst_weight);
      count(all([&](std::size_t i) {
              return test::fill_error(widen(before[i]), masters[i], plan, element).ulps;
            }),
            worst_fill);
    } else if (rule == StepRule::steepest) {
      count(all([&](std::size_t i) {
              const double from = has_master ? masters[i] : widen(before[i]),
                           to = has_master ? arrays.y[i] : widen(arrays.w[i]);
              if (d(i) == 0 && weight_decay == 0) return 0.0;
              return test::steepest_error(
                         from, d(i), to, plan, shrink,
                         has_master && element != StepElement::float64 ? StepElement::float32 : element)
                  .ulps_of_largest;
            }),
            worst);
    } else {
      count(all([&](std::size_t i) {
              const double from = has_master ? masters[i] : widen(before[i]),
                           to = has_master ? arrays.y[i] : widen(arrays.w[i]);
              if (d(i) == 0 && weight_decay == 0) return 0.0;
              return test::sign_error(
                         from, d(i), to, plan,
                         has_master && element != StepElement::float64 ? StepElement::float32 : element)
                  .ulps_of_largest;
            }),
            worst);
    }
  }
  expect(moved == 0, what + ": a zero gradient moved a weight");
  const bool is_exact = arithmetic == StepArithmetic::exact;
  const bool is_double = element == StepElement::float64;
  const double r = std::max(1.0, plan.inverse.value);
  // Norms are right to about 2^-21, which a power 1/(p - 1) multiplies; exact ones to all digits of a double.
  const double bound = is_exact ? 1 : is_double ? 64 : rule == StepRule::steepest ? 2 + 8 * r : 2;
  report(what, worst, bound);
  if (rule == StepRule::mirror && has_master) {
    // A weight is a power of its master: right to an ulp or so, and to a hundredth of what an ulp of the master makes.
    report(what + ": weights of masters", worst_weight, is_double ? 64 : 1.5 + 0.02 * r);
    if (!is_exact) report(what + ": masters as filled", worst_fill, is_double ? 64 : 2.5);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) per_kind = std::atoi(argv[1]);
  if (!has_gpu()) {
    std::printf("there is no GPU\n");
    return no_gpu;
  }
  const StepArithmetic fast = StepArithmetic::fast, exact = StepArithmetic::exact;
  for (const double p : {1.01, 1.1, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 10.0, 50.0}) {
    check_step<float>(p, StepRule::mirror, false, 0, fast);
    check_step<float>(p, StepRule::mirror, false, 0.2, fast);
    check_step<float>(p, StepRule::mirror, true, 0, fast);
    check_step<float>(p, StepRule::steepest, false, 0, fast);
    check_step<BFloat16>(p, StepRule::mirror, false, 0, fast);
    check_step<BFloat16>(p, StepRule::mirror, true, 0.2, fast);
    check_step<Half>(p, StepRule::mirror, false, 0, fast);
    check_step<Half>(p, StepRule::mirror, true, 0, fast);
    check_step<double>(p, StepRule::mirror, false, 0, fast);
    check_step<float>(p, StepRule::mirror, false, 0, exact);
  }
  check_step<float>(1.1, StepRule::mirror, true, 0, exact);
  check_step<double>(1.1, StepRule::mirror, false, 0, exact);
  check_step<BFloat16>(3, StepRule::mirror, false, 0.2, exact);
  check_step<Half>(1.75, StepRule::mirror, true, 0, exact);
  check_step<float>(1.5, StepRule::steepest, false, 0, exact);
  check_step<BFloat16>(1.1, StepRule::steepest, true, 0, fast);
  for (const bool has_master : {false, true}) {
    check_step<float>(2, StepRule::sign, has_master, 0.2, fast);
    check_step<Half>(2, StepRule::sign, has_master, 0, fast);
    check_step<double>(2, StepRule::sign, has_master, 0, fast);
  }
  std::printf("%s: %d failed\n", failures == 0 ? "all bounds hold" : "BOUNDS BROKEN", failures);
  return failures == 0 ? 0 : 1;
}

// The loops of the fast step over weights in doubles; the same shape as step_loops.cpp, with the vector math of
// doubles. Compiled once per instruction set.
#include "mirror/power_inline.hpp"
#include "mirror/scaled_step_inline.hpp"
#include "mirror/step_loops.hpp"

namespace attmirror::ATTMIRROR_ISA {

using namespace kernels;

namespace {

struct DoubleStep {
  double factor, moving;  // moving: the sign of the factor, 0 or NaN where it is
  double keep, keep_image;
  bool decays;
  double unscale, momentum;
  bool nesterov;
  Exponent map, inverse;
  double rate;
  bool leaves_range;  // whether images of doubles may be no doubles, p > 2
  Sum map_sum, inverse_sum;
};

DoubleStep double_step(const StepPlan& plan, const StepFactors& factors, bool has_momentum) {
  return {factors.factor,
          factors.factor > 0   ? 1.0
          : factors.factor < 0 ? -1.0
                               : factors.factor,
          plan.keep,
          plan.keep_image,
          plan.keep != 1,
          has_momentum ? plan.unscale : 1.0,
          plan.momentum,
          plan.nesterov,
          {plan.map.value, plan.map.rest},
          {plan.inverse.value, plan.inverse.rest},
          plan.rate,
          plan.map.value > 1,
          plan.map,
          plan.inverse};
}

struct Powers {
  Power map, inverse, dual;
};
constexpr Powers powers_of(StepPower power) {
  switch (power) {
    case StepPower::two:
      return {Power::one, Power::one, Power::two};
    case StepPower::three:
      return {Power::two, Power::half, Power::three_halves};
    case StepPower::three_halves:
      return {Power::half, Power::two, Power::three};
    case StepPower::eleven_tenths:
      return {Power::general, Power::ten, Power::eleven};
    case StepPower::general:
    case StepPower::count:
      break;
  }
  return {Power::general, Power::general, Power::general};
}

template <Power power>
[[gnu::always_inline]] inline Wide signed_power(Wide x, Exponent r) {
  return power == Power::one ? x : copy_sign(raise<power>(abs(x), r), x);
}

// d of one vector, and the momentum after it.
struct Direction {
  Wide d, momentum;
};
[[gnu::always_inline]] inline Direction direction(Wide gradient, Wide momentum, const DoubleStep& step) {
  const Wide d = gradient * step.unscale;
  const Wide m = mul_add(broadcast<Wide>(step.momentum), momentum, d);
  return {step.nesterov ? mul_add(broadcast<Wide>(step.momentum), m, d) : m, m};
}

[[gnu::noinline]] Wide step_out_of_range(Wide w, Wide t, Wide in_range, Int<Wide> out,
                                         const DoubleStep& step) {
  return out ? scaled_step(w, t, step.keep_image, step.map_sum, step.inverse_sum) : in_range;
}

template <StepPower power>
[[gnu::always_inline]] inline Wide mirror_step(Wide w, Wide d, const DoubleStep& step) {
  constexpr Powers powers = powers_of(power);
  const Wide image = signed_power<powers.map>(w, step.map);
  const Wide y =
      negative_mul_add(broadcast<Wide>(step.factor), d, step.decays ? image * step.keep_image : image);
  const Wide next = signed_power<powers.inverse>(y, step.inverse);
  if (power == StepPower::three || (power == StepPower::general && step.leaves_range)) {
    const Wide t = d * step.factor;
    const Wide size = max(abs(t), abs(y));
    const auto fine = ((size > 0x1p-960) & (size < 0x1p1000)) | (d == 0.0);
    if (__builtin_expect(!all(fine), 0)) return step_out_of_range(w, t, next, ~fine, step);
  }
  return next;
}

template <LoopRule rule, StepPower power>
[[gnu::always_inline]] inline Wide direct_step(Wide w, Wide d, const DoubleStep& step) {
  Wide t;
  if constexpr (rule == LoopRule::sign) {
    const Wide length = copy_sign(broadcast<Wide>(step.rate), d * step.moving);
    t = d == 0.0 ? broadcast<Wide>(0.0) : d == d ? length : d;
  } else {
    // Entries are at most as large as their norm: factor d is at most 1, and its power in range.
    t = signed_power<powers_of(power).inverse>(d * step.factor, step.inverse) * step.rate;
  }
  return (step.decays ? w * step.keep : w) - t;
}

struct Pointers {
  double* weights;
  const double* gradient;
  double* master;
  double* momentum;
};

template <LoopRule rule, StepPower power, bool has_master, bool has_momentum>
[[gnu::always_inline]] inline void update_vector(const Pointers& p, std::ptrdiff_t i,
                                                 const DoubleStep& step) {
  Wide d = load<Wide>(p.gradient + i);
  if constexpr (has_momentum) {
    const Direction next = direction(d, load<Wide>(p.momentum + i), step);
    store(p.momentum + i, next.momentum);
    d = next.d;
  }
  const auto still = d * step.moving == 0.0;
  const Wide w = load<Wide>(p.weights + i);
  const Wide state = has_master ? load<Wide>(p.master + i) : w;

  Wide next;
  if constexpr (rule == LoopRule::mirror && has_master) {
    const Wide kept = step.decays ? state * step.keep_image : state;
    next = negative_mul_add(broadcast<Wide>(step.factor), d, kept);
  } else if constexpr (rule == LoopRule::mirror) {
    next = mirror_step<power>(state, d, step);
  } else {
    next = direct_step<rule, power>(state, d, step);
  }

  // Where d is 0 and nothing decays, nothing changes.
  if constexpr (has_master) {
    next = still ? (step.decays ? next : state) : next;
    store(p.master + i, next);
    const Wide weight =
        rule == LoopRule::mirror ? signed_power<powers_of(power).inverse>(next, step.inverse) : next;
    store(p.weights + i, still ? (step.decays ? weight : w) : weight);
  } else {
    const Wide stay = step.decays ? w * step.keep : w;
    store(p.weights + i, still ? stay : next);
  }
}

// Whole vectors in place; the rest in buffers, with zeros behind.
template <class Body>
[[gnu::always_inline]] inline void for_vectors(const StepArrays& arrays, Body body) {
  constexpr std::ptrdiff_t width = lanes<Wide>;
  const Pointers p{static_cast<double*>(arrays.weights), static_cast<const double*>(arrays.gradient),
                   static_cast<double*>(arrays.master), static_cast<double*>(arrays.momentum)};
  std::ptrdiff_t i = 0;
  for (; i + width <= arrays.size; i += width) body(p, i);
  if (i == arrays.size) return;
  double weights[width] = {}, gradient[width] = {}, master[width] = {}, momentum[width] = {};
  const auto bytes = static_cast<std::size_t>(arrays.size - i) * sizeof(double);
  const auto take = [&](double* buffer, const double* array) {
    if (array) __builtin_memcpy(buffer, array + i, bytes);
  };
  const auto give = [&](double* array, const double* buffer) {
    if (array) __builtin_memcpy(array + i, buffer, bytes);
  };
  take(weights, p.weights);
  take(gradient, p.gradient);
  take(master, p.master);
  take(momentum, p.momentum);
  body(Pointers{weights, gradient, master, momentum}, std::ptrdiff_t{0});
  give(p.weights, weights);
  give(p.master, master);
  give(p.momentum, momentum);
}

template <LoopRule rule, StepPower power, bool has_master, bool has_momentum>
void update_with(const DoubleStep& step, const StepArrays& arrays) {
  for_vectors(arrays, [&](const Pointers& p, std::ptrdiff_t i) {
    update_vector<rule, power, has_master, has_momentum>(p, i, step);
  });
}

template <LoopRule rule, StepPower power>
void update(const StepPlan& plan, const StepFactors& factors, const StepArrays& arrays) {
  const bool has_momentum = arrays.momentum != nullptr;
  const DoubleStep step = double_step(plan, factors, has_momentum);
  if (arrays.master)
    has_momentum ? update_with<rule, power, true, true>(step, arrays)
                 : update_with<rule, power, true, false>(step, arrays);
  else
    has_momentum ? update_with<rule, power, false, true>(step, arrays)
                 : update_with<rule, power, false, false>(step, arrays);
}

template <LoopRule rule, StepPower power>
void fill_master(const StepPlan& plan, const StepArrays& arrays) {
  for_vectors(arrays, [&](const Pointers& p, std::ptrdiff_t i) {
    const Wide w = load<Wide>(p.weights + i);
    const Exponent map{plan.map.value, plan.map.rest};
    store(p.master + i, rule == LoopRule::mirror ? signed_power<powers_of(power).map>(w, map) : w);
  });
}

[[gnu::always_inline]] inline Wide direction_at(const Pointers& p, std::ptrdiff_t i, const DoubleStep& step) {
  const Wide gradient = load<Wide>(p.gradient + i);
  return p.momentum ? direction(gradient, load<Wide>(p.momentum + i), step).d : gradient * step.unscale;
}

// The directions, without the arrays that are not read.
StepArrays readable(const StepArrays& arrays) {
  return {nullptr, arrays.gradient, nullptr, arrays.momentum, arrays.size};
}

double largest(const StepPlan& plan, const StepArrays& arrays) {
  DoubleStep step = double_step(plan, {}, true);
  Int<Wide> top{};
  for_vectors(readable(arrays), [&](const Pointers& p, std::ptrdiff_t i) {
    // Magnitudes are ordered as their bits are; infinities and NaN come last.
    const auto bits = bit_cast<Int<Wide> >(abs(direction_at(p, i, step)));
    top = bits > top ? bits : top;
  });
  std::int64_t result = 0;
  for (std::ptrdiff_t lane = 0; lane < lanes<Wide>; ++lane) result = top[lane] > result ? top[lane] : result;
  return bit_cast<double>(result);
}

template <StepPower power>
double sum_of_powers(const StepPlan& plan, double largest_magnitude, const StepArrays& arrays) {
  const DoubleStep step = double_step(plan, {}, true);
  const Exponent q{plan.dual.value, plan.dual.rest};
  Wide sum{};
  for_vectors(readable(arrays), [&](const Pointers& p, std::ptrdiff_t i) {
    sum +=
        raise<powers_of(power).dual>(abs(direction_at(p, i, step)) / broadcast<Wide>(largest_magnitude), q);
  });
  return reduce_add(sum);
}

template <LoopRule rule>
constexpr StepLoops loops_of(StepPower power) {
  switch (power) {
    case StepPower::two:
      return {update<rule, StepPower::two>, fill_master<rule, StepPower::two>};
    case StepPower::three:
      return {update<rule, StepPower::three>, fill_master<rule, StepPower::three>};
    case StepPower::three_halves:
      return {update<rule, StepPower::three_halves>, fill_master<rule, StepPower::three_halves>};
    case StepPower::eleven_tenths:
      return {update<rule, StepPower::eleven_tenths>, fill_master<rule, StepPower::eleven_tenths>};
    case StepPower::general:
    case StepPower::count:
      break;
  }
  return {update<rule, StepPower::general>, fill_master<rule, StepPower::general>};
}
constexpr StepLoops sign_loops{update<LoopRule::sign, StepPower::two>,
                               fill_master<LoopRule::sign, StepPower::two>};

}  // namespace

const StepLoopTable double_step_loop_table{
    {{loops_of<LoopRule::mirror>(StepPower::two), loops_of<LoopRule::mirror>(StepPower::three),
      loops_of<LoopRule::mirror>(StepPower::three_halves),
      loops_of<LoopRule::mirror>(StepPower::eleven_tenths), loops_of<LoopRule::mirror>(StepPower::general)},
     {loops_of<LoopRule::steepest>(StepPower::two), loops_of<LoopRule::steepest>(StepPower::three),
      loops_of<LoopRule::steepest>(StepPower::three_halves),
      loops_of<LoopRule::steepest>(StepPower::eleven_tenths),
      loops_of<LoopRule::steepest>(StepPower::general)},
     {sign_loops, sign_loops, sign_loops, sign_loops, sign_loops}},
    largest,
    {sum_of_powers<StepPower::two>, sum_of_powers<StepPower::three>, sum_of_powers<StepPower::three_halves>,
     sum_of_powers<StepPower::eleven_tenths>, sum_of_powers<StepPower::general>}};

}  // namespace attmirror::ATTMIRROR_ISA

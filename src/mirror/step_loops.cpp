// The loops of the fast step over weights in floats, bfloat16 or half, with floats for state and arithmetic. Compiled once
// per instruction set.
//
// Every number is read and written once. What is left of an array after whole vectors goes through a buffer of one vector,
// with zeros behind, so that a number's result does not depend on where in the array it stands.
#include "mirror/step_loops.hpp"

#include "mirror/float_step_inline.hpp"

namespace attmirror::ATTMIRROR_ISA {

using namespace kernels;

namespace {

FloatStep float_step(const StepPlan& plan, const StepFactors& factors, LoopRule rule, bool has_momentum) {
  FloatStep step;
  step.factor = float_factor(factors.factor);
  step.keep = float_sum(plan.keep);
  step.keep_image = float_sum(plan.keep_image);
  step.decays = plan.keep != 1;
  step.leaves_range = plan.map.value > 1;
  step.map = float_exponent(plan.map.value, plan.map.rest, 0);
  step.inverse = float_exponent(plan.inverse.value, plan.inverse.rest,
                                rule == LoopRule::steepest ? factors.log2_step : 0);
  step.unscale = has_momentum ? static_cast<float>(plan.unscale) : 1;
  step.momentum = static_cast<float>(plan.momentum);
  step.nesterov = plan.nesterov;
  step.root_scale = 1;
  step.whole_factor = factors.factor;
  step.whole_keep_image = plan.keep_image;
  step.map_exponent = plan.map;
  step.inverse_exponent = plan.inverse;
  return step;
}

// d of one vector, and the momentum after it. Without momentum d is the gradient: the factor has the scale.
struct Direction {
  Floats d, momentum;
};
[[gnu::always_inline]] inline Direction direction(Floats gradient, Floats momentum, const FloatStep& step) {
  const Floats d = gradient * step.unscale;
  const Floats m = fused(spread(step.momentum), momentum, d);
  return {step.nesterov ? fused(spread(step.momentum), m, d) : m, m};
}

template <class T>
struct Pointers {
  T* weights;
  const T* gradient;
  float* master;
  float* momentum;
};

template <LoopRule rule, StepPower power, class T, bool has_master, bool has_momentum>
[[gnu::always_inline]] inline void update_vector(const Pointers<T>& p, std::ptrdiff_t i,
                                                 const FloatStep& step) {
  Floats d = load_floats(p.gradient + i);
  if constexpr (has_momentum) {
    const Direction next = direction(d, load_floats(p.momentum + i), step);
    store_floats(p.momentum + i, next.momentum);
    d = next.d;
  }
  const Floats scaled = d * step.factor.prescale;
  const auto still = scaled == 0.0f;
  const Floats w = load_floats(p.weights + i);
  const Floats state = has_master ? load_floats(p.master + i) : w;

  Floats next;
  if constexpr (rule == LoopRule::mirror && has_master)
    next = next_image(state, scaled, step.keep_image, step);
  else if constexpr (rule == LoopRule::mirror)
    next = mirror_step<power>(state, d, scaled, step);
  else if constexpr (rule == LoopRule::steepest)
    next = steepest_step<power>(state, d, scaled, step);
  else
    next = sign_step(state, d, step);

  // Where d is 0 and nothing decays, nothing changes.
  if constexpr (has_master) {
    const Floats stay = step.decays ? next : state;
    next = still ? stay : next;
    store_floats(p.master + i, next);
    const Floats weight = rule == LoopRule::mirror ? weight_of<power>(next, step) : next;
    store_floats(p.weights + i, still ? (step.decays ? weight : w) : weight);
  } else {
    const Floats stay = step.decays ? times(step.keep, w) : w;
    store_floats(p.weights + i, still ? stay : next);
  }
}

// Whole vectors in place, the rest in buffers.
template <class T, class Body>
[[gnu::always_inline]] inline void for_vectors(const Pointers<T>& p, std::ptrdiff_t size, Body body) {
  std::ptrdiff_t i = 0;
  for (; i + float_lanes <= size; i += float_lanes) body(p, i);
  if (i == size) return;
  T weights[float_lanes] = {}, gradient[float_lanes] = {};
  float master[float_lanes] = {}, momentum[float_lanes] = {};
  const auto left = static_cast<std::size_t>(size - i);
  const auto take = [&](auto* buffer, const auto* array) {
    if (array) __builtin_memcpy(buffer, array + i, left * sizeof *buffer);
  };
  const auto give = [&](auto* array, const auto* buffer) {
    if (array) __builtin_memcpy(array + i, buffer, left * sizeof *buffer);
  };
  take(weights, p.weights);
  take(gradient, p.gradient);
  take(master, p.master);
  take(momentum, p.momentum);
  body(Pointers<T>{weights, gradient, master, momentum}, std::ptrdiff_t{0});
  give(p.weights, weights);
  give(p.master, master);
  give(p.momentum, momentum);
}

template <class T>
Pointers<T> pointers(const StepArrays& arrays) {
  return {static_cast<T*>(arrays.weights), static_cast<const T*>(arrays.gradient),
          static_cast<float*>(arrays.master), static_cast<float*>(arrays.momentum)};
}

template <LoopRule rule, StepPower power, class T, bool has_master, bool has_momentum>
void update_with(const FloatStep& step, const StepArrays& arrays) {
  for_vectors(pointers<T>(arrays), arrays.size, [&](const Pointers<T>& p, std::ptrdiff_t i) {
    update_vector<rule, power, T, has_master, has_momentum>(p, i, step);
  });
}

template <LoopRule rule, StepPower power, class T>
void update(const StepPlan& plan, const StepFactors& factors, const StepArrays& arrays) {
  const bool has_momentum = arrays.momentum != nullptr;
  FloatStep step = float_step(plan, factors, rule, has_momentum);
  if (rule == LoopRule::steepest && power == StepPower::three) {
    // The radicand, at most rate^2, is brought to the upper end of the range of floats.
    const double exponent = parts_from_one(max(plan.rate, 0x1p-500)).exponent;
    const double lift = max(-500.0, min(500.0, 50.0 - exponent));
    step.factor = float_factor(factors.factor * scale(1.0, lift) * scale(1.0, lift));
    step.root_scale = static_cast<float>(scale(1.0, -lift));
  }
  if (arrays.master)
    has_momentum ? update_with<rule, power, T, true, true>(step, arrays)
                 : update_with<rule, power, T, true, false>(step, arrays);
  else
    has_momentum ? update_with<rule, power, T, false, true>(step, arrays)
                 : update_with<rule, power, T, false, false>(step, arrays);
}

template <LoopRule rule, StepPower power, class T>
void fill_master(const StepPlan& plan, const StepArrays& arrays) {
  const FloatStep step = float_step(plan, {}, rule, false);
  for_vectors(pointers<T>(arrays), arrays.size, [&](const Pointers<T>& p, std::ptrdiff_t i) {
    const Floats w = load_floats(p.weights + i);
    store_floats(p.master + i, rule == LoopRule::mirror ? image_of<power>(w, step) : w);
  });
}

template <class T>
[[gnu::always_inline]] inline Floats direction_at(const Pointers<T>& p, std::ptrdiff_t i,
                                                  const FloatStep& step) {
  const Floats gradient = load_floats(p.gradient + i);
  return p.momentum ? direction(gradient, load_floats(p.momentum + i), step).d : gradient;
}

// Magnitudes of floats are ordered as their bits are; infinities and NaN come last.
template <class T>
double largest(const StepPlan& plan, const StepArrays& arrays) {
  const FloatStep step = float_step(plan, {}, LoopRule::mirror, arrays.momentum != nullptr);
  Ints top{};
  StepArrays reading = arrays;
  reading.weights = reading.master = nullptr;
  for_vectors(pointers<T>(reading), arrays.size, [&](const Pointers<T>& p, std::ptrdiff_t i) {
    const Ints bits = bit_cast<Ints>(magnitude(direction_at(p, i, step)));
    top = bits > top ? bits : top;
  });
  std::int32_t result = 0;
  for (int lane = 0; lane < float_lanes; ++lane) result = top[lane] > result ? top[lane] : result;
  const auto magnitude_of_largest = static_cast<double>(bit_cast<float>(result));
  return arrays.momentum ? magnitude_of_largest : magnitude_of_largest * plan.unscale;
}

template <StepPower power, class T>
double sum_of_powers(const StepPlan& plan, double largest_magnitude, const StepArrays& arrays) {
  const FloatStep step = float_step(plan, {}, LoopRule::mirror, arrays.momentum != nullptr);
  // Where q is small enough for 2^-q to be a float, the numbers are scaled by a power of two, exactly; what that
  // lacks of the largest is a factor of the sum. General powers take the logarithm of the scale as a bias.
  const double unit = arrays.momentum ? largest_magnitude : largest_magnitude / plan.unscale;
  const Parts<double> parts = parts_from_one(unit);
  const double log2_unit = parts.exponent + log(parts.mantissa) * log2_e;
  const FloatExponent q =
      float_exponent(plan.dual.value, plan.dual.rest, -(plan.dual.value + plan.dual.rest) * log2_unit);
  // Of denormals 1/2^e is not a float: in two steps.
  const double half = max(-74.0, min(63.0, parts.exponent));
  const auto first = static_cast<float>(scale(1.0, -half));
  const auto second = static_cast<float>(scale(1.0, half - parts.exponent));

  HalfDoubles low{}, high{};
  StepArrays reading = arrays;
  reading.weights = reading.master = nullptr;
  for_vectors(pointers<T>(reading), arrays.size, [&](const Pointers<T>& p, std::ptrdiff_t i) {
    const Floats d = magnitude(direction_at(p, i, step));
    const Floats u = (d * first) * second;
    Floats term;
    if constexpr (power == StepPower::two) {
      term = u * u;
    } else if constexpr (power == StepPower::three) {
      term = u * square_root(u);
    } else if constexpr (power == StepPower::three_halves) {
      term = u * u * u;
    } else if constexpr (power == StepPower::eleven_tenths) {
      term = u * tenth_power(u);
    } else {
      term = raise_float<true>(d, q);
    }
    low += lower_doubles(term);
    high += upper_doubles(term);
  });
  const double sum = reduce_add(low + high);
  if constexpr (power == StepPower::general) return sum;
  return sum * pow_abs(parts.mantissa, -(plan.dual.value + plan.dual.rest));
}

template <LoopRule rule, StepPower power, class T>
constexpr StepLoops loops_of() {
  return {update<rule, power, T>, fill_master<rule, power, T>};
}

template <class T>
constexpr StepLoopTable table_of() {
  return {
      {{loops_of<LoopRule::mirror, StepPower::two, T>(), loops_of<LoopRule::mirror, StepPower::three, T>(),
        loops_of<LoopRule::mirror, StepPower::three_halves, T>(),
        loops_of<LoopRule::mirror, StepPower::eleven_tenths, T>(),
        loops_of<LoopRule::mirror, StepPower::general, T>()},
       {loops_of<LoopRule::steepest, StepPower::two, T>(),
        loops_of<LoopRule::steepest, StepPower::three, T>(),
        loops_of<LoopRule::steepest, StepPower::three_halves, T>(),
        loops_of<LoopRule::steepest, StepPower::general, T>(),
        loops_of<LoopRule::steepest, StepPower::general, T>()},
       // p plays no part.
       {loops_of<LoopRule::sign, StepPower::two, T>(), loops_of<LoopRule::sign, StepPower::two, T>(),
        loops_of<LoopRule::sign, StepPower::two, T>(), loops_of<LoopRule::sign, StepPower::two, T>(),
        loops_of<LoopRule::sign, StepPower::two, T>()}},
      largest<T>,
      {sum_of_powers<StepPower::two, T>, sum_of_powers<StepPower::three, T>,
       sum_of_powers<StepPower::three_halves, T>, sum_of_powers<StepPower::eleven_tenths, T>,
       sum_of_powers<StepPower::general, T>}};
}

}  // namespace

const StepLoopTable step_loop_tables[] = {table_of<float>(), table_of<Brain>(), table_of<HalfFloat>()};

}  // namespace attmirror::ATTMIRROR_ISA

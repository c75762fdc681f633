// The loops of the fast step over weights in floats, bfloat16 or half, with floats for state and arithmetic. Compiled
// once per instruction set.
//
// Every number is read and written once. What is left of an array after whole vectors goes through a buffer of one
// vector, with zeros behind, so that a number's result does not depend on where in the array it stands.
#include "mirror/step_loops.hpp"

#include "mirror/float_step_inline.hpp"
#include "mirror/step_vectors_inline.hpp"

namespace attmirror::ATTMIRROR_ISA {

using namespace kernels;

namespace {

// The last power of a step without a master is followed by nothing: its error is one of the image.
FloatStep float_step(const StepPlan& plan, const StepFactors& factors, LoopRule rule,
                     const StepArrays& arrays) {
  const bool has_momentum = arrays.momentum != nullptr;
  const auto length = [](double exponent) { return exponent <= 1 ? LogSeries::brief : LogSeries::full; };
  const bool is_last = rule == LoopRule::mirror && arrays.master == nullptr;
  FloatStep step;
  step.factor = float_factor(factors.factor);
  step.keep = float_sum(plan.keep);
  step.keep_image = float_sum(plan.keep_image);
  step.decays = plan.keep != 1;
  step.leaves_range = plan.map.value > 1;
  step.map = float_exponent(plan.map.value, plan.map.rest, 0, length(plan.map.value));
  step.inverse = float_exponent(plan.inverse.value, plan.inverse.rest,
                                rule == LoopRule::steepest ? factors.log2_step : 0,
                                is_last ? LogSeries::brief : length(plan.inverse.value));
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

// How many vectors are done at a time: many where there are general powers, whose halves take turns, one elsewhere.
constexpr int batch_of(LoopRule rule, StepPower power, bool has_master) {
  const bool maps = rule == LoopRule::mirror && !has_master;
  const bool halves = maps ? has_general_map(power) : has_general_inverse(power);
  return halves ? 16 : 1;
}

// The step of `count` vectors from i on. Where d is 0 and nothing decays, nothing changes.
template <LoopRule rule, StepPower power, bool has_master, bool has_momentum, class T, int count>
[[gnu::always_inline]] inline void update_vectors(const Pointers<T>& p, std::ptrdiff_t i,
                                                  const FloatStep& step, Count<count>) {
  constexpr int n = group<count>;
  Batch<PowerStart, count> starts;
  Batch<Floats, count> ys, directions;
  const auto at = [=](int v) { return i + v * float_lanes; };
  const auto weight_at = [&](int v) { return load_floats(p.weights + at(v)); };
  const auto state_at = [&](int v) { return has_master ? load_floats(p.master + at(v)) : weight_at(v); };
  const auto direction_at = [&](int v) {
    return has_momentum ? directions[v] : load_floats(p.gradient + at(v));
  };
  const auto scaled_at = [&](int v) {
    const Floats d = direction_at(v);
    return step.factor.prescale == 1 ? d : d * step.factor.prescale;
  };
  const auto store_weight = [&](int v, Floats next, Floats decayed) {
    const Floats stay = step.decays ? decayed : weight_at(v);
    store_floats(p.weights + at(v), scaled_at(v) == 0.0f ? stay : next);
  };

  for_groups<count>([&](int first) {
    Floats argument[n];
    PowerStart start[n];
    for (int k = 0; k < n; ++k) {
      const int v = first + k;
      if constexpr (has_momentum) {
        const Direction next =
            direction(load_floats(p.gradient + at(v)), load_floats(p.momentum + at(v)), step);
        store_floats(p.momentum + at(v), next.momentum);
        directions[v] = next.d;
      }
      argument[k] = rule == LoopRule::steepest ? direction_at(v) : weight_at(v);
    }
    if constexpr (rule == LoopRule::mirror && !has_master) start_images<power>(argument, step, start);
    if constexpr (rule == LoopRule::steepest) start_lengths<power>(argument, step, start);
    for (int k = 0; k < n; ++k) starts[first + k] = start[k];
  });

  for_groups<count>([&](int first) {
    for (int k = 0; k < n; ++k) {
      const int v = first + k;
      const Floats state = state_at(v);
      if constexpr (rule == LoopRule::mirror && !has_master && power != StepPower::two)
        ys[v] = step_image<power>(state, scaled_at(v), starts[v], step);
      else if constexpr (rule == LoopRule::mirror)
        ys[v] = next_image(state, scaled_at(v), step.keep_image, step);
      else if constexpr (rule == LoopRule::steepest)
        ys[v] = steepest_step<power>(state, direction_at(v), scaled_at(v), starts[v], step);
      else
        ys[v] = sign_step(state, direction_at(v), step);
      if constexpr (has_master) {
        const Floats stay = step.decays ? ys[v] : state;
        ys[v] = scaled_at(v) == 0.0f ? stay : ys[v];
        store_floats(p.master + at(v), ys[v]);
      }
    }
  });

  if constexpr (rule == LoopRule::mirror && has_general_inverse(power)) {
    for_groups<count>([&](int first) {
      Floats argument[n];
      PowerStart start[n];
      for (int k = 0; k < n; ++k) argument[k] = ys[first + k];
      start_weights<power>(argument, step, start);
      for (int k = 0; k < n; ++k) starts[first + k] = start[k];
    });
  }

  for_groups<count>([&](int first) {
    for (int k = 0; k < n; ++k) {
      const int v = first + k;
      Floats next = ys[v];
      if constexpr (rule == LoopRule::mirror) next = finish_weight<power>(next, starts[v]);
      if constexpr (has_master) {
        store_weight(v, next, next);
      } else {
        const Floats w = weight_at(v);
        if constexpr (rule == LoopRule::mirror && power != StepPower::two) next = flip(next, sign_of(w));
        if constexpr (rule == LoopRule::mirror && (power == StepPower::three || power == StepPower::general))
          next = checked_range<power>(next, w, ys[v], direction_at(v), scaled_at(v), step);
        store_weight(v, next, times(step.keep, w));
      }
    }
  });
}

template <LoopRule rule, StepPower power, class T, bool has_master, bool has_momentum>
void update_with(const FloatStep& step, const StepArrays& arrays) {
  const Pointers<T> all = pointers<T>(arrays);
  const auto body = [&](const Pointers<T>& p, std::ptrdiff_t i, auto count) {
    // While a batch is computed the memory would have nothing to do; a processor does not look so far ahead.
    if constexpr (decltype(count)::value > 1) {
      constexpr int ahead = 512;
      for (int v = 0; v < decltype(count)::value; ++v) {
        __builtin_prefetch(p.weights + i + ahead + v * float_lanes, 1);
        __builtin_prefetch(p.gradient + i + ahead + v * float_lanes);
      }
    }
    update_vectors<rule, power, has_master, has_momentum>(p, i, step, count);
  };
  std::ptrdiff_t i = before_line(all.weights, arrays.size);
  for (std::ptrdiff_t done = 0; done < i;) {
    const std::ptrdiff_t part = i - done < float_lanes ? i - done : float_lanes;
    in_buffers(all, done, part, body);
    done += part;
  }
  for_vectors<batch_of(rule, power, has_master)>(all, i, arrays.size, body);
}

template <LoopRule rule, StepPower power, class T>
void update(const StepPlan& plan, const StepFactors& factors, const StepArrays& arrays) {
  const bool has_momentum = arrays.momentum != nullptr;
  FloatStep step = float_step(plan, factors, rule, arrays);
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
  const FloatStep step = float_step(plan, {}, rule, arrays);
  for_vectors<1>(pointers<T>(arrays), 0, arrays.size, [&](const Pointers<T>& p, std::ptrdiff_t i, auto) {
    const Floats w = load_floats(p.weights + i);
    PowerStart start[1];
    const Floats weights[1] = {w};
    start_images<power>(weights, step, start);
    store_floats(p.master + i, rule == LoopRule::mirror ? finish_image<power>(w, start[0]) : w);
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
  const FloatStep step = float_step(plan, {}, LoopRule::mirror, arrays);
  Ints top{};
  StepArrays reading = arrays;
  reading.weights = reading.master = nullptr;
  for_vectors<1>(pointers<T>(reading), 0, arrays.size, [&](const Pointers<T>& p, std::ptrdiff_t i, auto) {
    const Ints bits = bit_cast<Ints>(magnitude(direction_at(p, i, step)));
    top = bits > top ? bits : top;
  });
  std::int32_t result = 0;
  for (int lane = 0; lane < float_lanes; ++lane) result = top[lane] > result ? top[lane] : result;
  const auto magnitude_of_largest = static_cast<double>(bit_cast<float>(result));
  return arrays.momentum ? magnitude_of_largest : magnitude_of_largest * __builtin_fabs(plan.unscale);
}

template <StepPower power, class T>
double sum_of_powers(const StepPlan& plan, double largest_magnitude, const StepArrays& arrays) {
  const FloatStep step = float_step(plan, {}, LoopRule::mirror, arrays);
  // Where q is small enough for 2^-q to be a float, the numbers are scaled by a power of two, exactly; what that
  // lacks of the largest is a factor of the sum. General powers take the logarithm of the scale as a bias.
  const double unit = arrays.momentum ? largest_magnitude : largest_magnitude / __builtin_fabs(plan.unscale);
  const Parts<double> parts = parts_from_one(unit);
  const double log2_unit = parts.exponent + log(parts.mantissa) * log2_e;
  const FloatExponent q = float_exponent(plan.dual.value, plan.dual.rest,
                                         -(plan.dual.value + plan.dual.rest) * log2_unit, LogSeries::full);
  // Of denormals 1/2^e is not a float: in two steps.
  const double half = max(-74.0, min(63.0, parts.exponent));
  const auto first = static_cast<float>(scale(1.0, -half));
  const auto second = static_cast<float>(scale(1.0, half - parts.exponent));

  HalfDoubles low{}, high{};
  StepArrays reading = arrays;
  reading.weights = reading.master = nullptr;
  constexpr int batch = power == StepPower::general ? 8 : 1;
  for_vectors<batch>(pointers<T>(reading), 0, arrays.size,
                     [&](const Pointers<T>& p, std::ptrdiff_t i, auto count) {
                       constexpr int batch_size = decltype(count)::value;
                       Floats d[batch_size];
                       PowerStart start[batch_size];
                       for (int v = 0; v < batch_size; ++v)
                         d[v] = magnitude(direction_at(p, i + v * float_lanes, step));
                       if constexpr (power == StepPower::general) start_powers<true>(d, q, start);
                       for (int v = 0; v < batch_size; ++v) {
                         const Floats u = (d[v] * first) * second;
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
                           term = finish_float(d[v], start[v]);
                         }
                         low += lower_doubles(term);
                         high += upper_doubles(term);
                       }
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

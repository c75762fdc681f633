// The l_p mirror map, its norms and its step on flat arrays. Compiled once per instruction set.
#include "mirror/power_kernels.hpp"

#include "mirror/power_inline.hpp"

namespace attmirror::ATTMIRROR_ISA {

using namespace kernels;

namespace {

// Calls body<V>(j) for whole vectors and then for what is left of a multiple of four.
template <class Body>
[[gnu::always_inline]] inline void for_vectors(std::ptrdiff_t size, Body body) {
  std::ptrdiff_t j = 0;
  for (; j + lanes<Wide> <= size; j += lanes<Wide>) body(Wide{}, j);
  for (; j < size; j += lanes<Narrow>) body(Narrow{}, j);
}

template <Power power>
void signed_power(const double* x, double* out, std::ptrdiff_t size, Exponent r) {
  for_vectors(size, [=]<class V>(V, std::ptrdiff_t j) {
    const V value = load<V>(x + j);
    store(out + j, power == Power::one ? value : copy_sign(raise<power>(abs(value), r), value));
  });
}

template <Power power>
double sum_power(const double* x, std::ptrdiff_t size, double scale, Exponent r) {
  // Two sums side by side; their order depends on the size only.
  Wide even{}, odd{};
  std::ptrdiff_t j = 0;
  const auto term = [=]<class V>(V, std::ptrdiff_t k) {
    return raise<power>(abs(load<V>(x + k)) * broadcast<V>(scale), r);
  };
  for (; j + 2 * lanes<Wide> <= size; j += 2 * lanes<Wide>) {
    even += term(Wide{}, j);
    odd += term(Wide{}, j + lanes<Wide>);
  }
  if (j + lanes<Wide> <= size) {
    even += term(Wide{}, j);
    j += lanes<Wide>;
  }
  double sum = reduce_add(even + odd);
  for (; j < size; j += lanes<Narrow>) sum += reduce_add(term(Narrow{}, j));
  return sum;
}

template <Power power>
void mirror_step(const double* g, double scale, double* y, double* w, std::ptrdiff_t size, Exponent r) {
  for_vectors(size, [=]<class V>(V, std::ptrdiff_t j) {
    const V dual = mul_add(load<V>(g + j), broadcast<V>(-scale), load<V>(y + j));
    store(y + j, dual);
    store(w + j, power == Power::one ? dual : copy_sign(raise<power>(abs(dual), r), dual));
  });
}

double max_abs(const double* x, std::ptrdiff_t size) {
  double result = 0;
  Wide largest{};
  auto nan = Int<Wide>{};
  std::ptrdiff_t j = 0;
  for (; j + lanes<Wide> <= size; j += lanes<Wide>) {
    const Wide value = load<Wide>(x + j);
    nan |= value != value;
    largest = max(abs(value), largest);
  }
  result = reduce_max(largest);
  for (std::ptrdiff_t k = 0; k < lanes<Wide>; ++k)
    if (nan[k] != 0) result = __builtin_nan("");
  for (; j < size; ++j) {
    if (x[j] != x[j]) result = x[j];
    result = max(abs(x[j]), result);
  }
  return result;
}

template <Power power>
constexpr PowerKernels kernels_of() {
  return {signed_power<power>, sum_power<power>, mirror_step<power>};
}

}  // namespace

const PowerTable power_table{
    {kernels_of<Power::general>(), kernels_of<Power::one>(), kernels_of<Power::two>(),
     kernels_of<Power::three>(), kernels_of<Power::four>(), kernels_of<Power::ten>(),
     kernels_of<Power::eleven>(), kernels_of<Power::half>(), kernels_of<Power::third>(),
     kernels_of<Power::three_quarters>(), kernels_of<Power::three_halves>(), kernels_of<Power::four_thirds>(),
     kernels_of<Power::seven_quarters>(), kernels_of<Power::seven_thirds>()},
    max_abs,
    root_of_sum<double>};

}  // namespace attmirror::ATTMIRROR_ISA

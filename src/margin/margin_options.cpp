#include <attmirror/base/error.hpp>
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/margin/max_margin.hpp>

#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr std::array<std::pair<MarginMethod, std::string_view>, 3> method_names = {
    {{MarginMethod::automatic, "auto"},
     {MarginMethod::active_set, "active-set"},
     {MarginMethod::interior_point, "interior-point"}}};

bool is_smooth_entrywise(const Norm& norm) {
  return norm.is_entrywise() && norm.p() > 1 && std::isfinite(norm.p());
}

}  // namespace

std::string_view to_string(MarginStatus status) {
  switch (status) {
    case MarginStatus::certified:
      return "certified";
    case MarginStatus::infeasible:
      return "infeasible";
    case MarginStatus::stopped:
      break;
  }
  return "stopped";
}

std::string_view to_string(MarginMethod method) {
  for (const auto& [value, name] : method_names)
    if (value == method) return name;
  return "";
}

MarginMethod parse_margin_method(std::string_view name) {
  for (const auto& [value, known] : method_names)
    if (known == name) return value;
  throw bad_input(fmt::format("method is \"{}\": expected auto, active-set or interior-point", name));
}

double MarginOptions::tolerance(const Norm& norm) const {
  return tol.value_or(is_smooth_entrywise(norm) ? 1e-10 : 1e-8);
}

void MarginOptions::validate(const Norm& norm) const {
  // Below 1e-14 the rounding of W's own entries decides.
  if (tol && !(*tol >= 1e-14 && *tol < 1))
    throw bad_input(fmt::format("tol is {}: expected a number from 1e-14 to below 1", *tol));
  if (!(max_norm > 0))
    throw bad_input(fmt::format("max_norm is {}: expected a number greater than 0", max_norm));
  if (max_iterations < 1)
    throw bad_input(fmt::format("max_iterations is {}: expected a number from 1", max_iterations));
  if (!(max_seconds > 0))
    throw bad_input(fmt::format("max_seconds is {}: expected a number greater than 0", max_seconds));
  if (threads < 0 || threads > ThreadPool::max_threads)
    throw bad_input(fmt::format("threads is {}: expected 0 to {}", threads, ThreadPool::max_threads));
  if (max_rank < 0) throw bad_input(fmt::format("max_rank is {}: expected a number from 0", max_rank));
  if (max_rank > 0 && norm != Norm::nuclear())
    throw bad_input(fmt::format("max_rank is {}: only the nuclear norm takes one, and the norm is {}",
                                max_rank, to_string(norm)));
  if (method == MarginMethod::active_set && !is_smooth_entrywise(norm))
    throw bad_input(fmt::format("method is active-set: it solves l_p with 1 < p < inf, and the norm is {}",
                                to_string(norm)));
}

}  // namespace attmirror

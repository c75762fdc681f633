// What a MarginSolution says about itself, in one line and in several.
#include <attmirror/margin/max_margin.hpp>

#include <fmt/format.h>

namespace attmirror {

std::string MarginSolution::brief() const {
  switch (status) {
    case MarginStatus::certified:
      return fmt::format("certified: norm {:.12g}, gap {:.1e}", norm, gap);
    case MarginStatus::infeasible:
      return fmt::format("infeasible: every solution would have a norm above {:.3g}", dual);
    case MarginStatus::stopped:
      break;
  }
  if (!certificate.feasible())
    return fmt::format("stopped without a solution, whose norm is at least {:.3g}: {}", dual, reason);
  return fmt::format("stopped with gap {:.1e}: {}", gap, reason);
}

std::string MarginSolution::report() const {
  std::string text = fmt::format("status       {}\nkind         {}\n", to_string(status), to_string(kind));
  if (status == MarginStatus::infeasible) {
    text += fmt::format("bound        {:.6g}, no W of a smaller norm satisfies the constraints\n", dual);
    text += fmt::format("conflict     {} constraints contradict each other\n", conflict.size());
  } else {
    text += fmt::format("norm         {:.15g}\nlower bound  {:.15g}\ngap          {:.2e}\n", norm, dual, gap);
    if (certificate.feasible())
      text += fmt::format("support      {} of {} constraints\n", support.size(), lambda.size());
    else
      text += fmt::format("violated     constraint {} most, by {:.2e} of its bound\n",
                          certificate.worst_constraint, certificate.worst_violation);
  }
  if (!kind.is_entrywise() && status != MarginStatus::infeasible)
    text += fmt::format("rank         at most {} by the dual's largest singular value\n", dual_multiplicity);
  text += fmt::format("method       {}, {} factorizations, {:.3g} s\n", method, iterations, seconds);
  if (!reason.empty()) text += fmt::format("reason       {}\n", reason);
  return text;
}

}  // namespace attmirror

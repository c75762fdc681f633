// Which assumptions of the theorems hold on data.
#include "bridge.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/margin/theory.hpp>

#include <fmt/format.h>

namespace attmirror::python {

namespace {

Parameterization theory_parameters(const std::string& params, const nb::object& key_weights) {
  if (params != "prompt" && !key_weights.is_none())
    throw bad_input(fmt::format("key_weights is given, but params is {}: only prompt has them", params));
  if (params == "W") return W{};
  if (params == "KQ") return KQ{};
  if (params != "prompt") throw bad_input(fmt::format("params is \"{}\": expected W, KQ or prompt", params));
  return Prompt{key_weights.is_none() ? Matrix() : matrix_of(nb::cast<Doubles>(key_weights), "key_weights")};
}

nb::dict theory_of(const DataHandle& data, const nb::object& tokens, const std::string& params,
                   const nb::object& key_weights, const std::string& loss, std::optional<double> lr,
                   const nb::object& start, int threads) {
  TheoryOptions options{
      .parameterization = theory_parameters(params, key_weights), .loss = parse_loss(loss), .lr = lr};
  if (!tokens.is_none()) options.tokens = to_selection(nb::cast<Integers>(tokens));
  if (!start.is_none()) options.start = to_parameters(nb::cast<nb::dict>(start));
  options.margin.threads = threads;
  const TheoryReport report = unlocked([&](const StopRequest& stop) {
    options.margin.stop = stop;
    return check_theory(*data.data, options);
  });
  nb::list checks;
  for (const AssumptionCheck& check : report.checks) {
    nb::dict one;
    one["name"] = std::string(to_string(check.what));
    one["status"] = std::string(to_string(check.status));
    one["value"] = check.value;
    one["meaning"] = std::string(meaning(check.what));
    one["detail"] = check.detail;
    checks.append(one);
  }
  nb::dict result;
  result["tokens"] = to_numpy(report.tokens, *data.data);
  result["norm"] = to_python(report.norm);
  result["lipschitz"] = report.lipschitz ? nb::cast(*report.lipschitz) : nb::none();
  result["checks"] = checks;
  return result;
}

}  // namespace

void bind_theory(nb::module_& module) {
  module.def("theory", &theory_of, nb::arg("data"), nb::arg("tokens").none(), nb::arg("params"),
             nb::arg("key_weights").none(), nb::arg("loss"), nb::arg("lr").none(), nb::arg("start").none(),
             nb::arg("threads"));
}

}  // namespace attmirror::python

#include "base/numbers.hpp"
#include "base/words.hpp"
#include "descent/update_rule.hpp"
#include <attmirror/base/error.hpp>

#include <fmt/format.h>

namespace attmirror {

std::string_view to_string(Geometry geometry) {
  switch (geometry) {
    case Geometry::lp:
      return "lp";
    case Geometry::schatten:
      return "schatten";
    case Geometry::hyperbolic_entropy:
      return "entropy";
  }
  return "unknown";
}

Geometry parse_geometry(std::string_view name) {
  for (const Geometry geometry : {Geometry::lp, Geometry::schatten, Geometry::hyperbolic_entropy})
    if (name == to_string(geometry)) return geometry;
  throw bad_value("geometry", name, expected_choice(name, {"lp", "schatten", "entropy"}));
}

SteepestDescent sign_descent(double lr) { return {.norm = Norm::l(infinity), .lr = lr}; }
SteepestDescent coordinate_descent(double lr) { return {.norm = Norm::l(1), .lr = lr}; }
SteepestDescent spectral_descent(double lr) { return {.norm = Norm::spectral(), .lr = lr}; }

SteepestDescent signum(double lr, double beta) {
  return {.norm = Norm::l(infinity), .lr = lr, .momentum = {MomentumKind::ema, beta}};
}

SteepestDescent muon(double lr, double beta, Orthogonalization orthogonalization) {
  return {.norm = Norm::spectral(),
          .lr = lr,
          .momentum = {MomentumKind::ema, beta},
          .orthogonalization = orthogonalization};
}

void validate(const Optimizer& optimizer) {
  std::visit([](const auto& options) { options.validate(); }, optimizer);
}

Jacobian jacobian_for(const Optimizer& optimizer) {
  return std::visit(
      [](const auto& options) {
        Jacobian usual = Jacobian::safe;
        if constexpr (requires { options.eps; })
          if (options.eps == EpsPolicy::paper) usual = Jacobian::textbook;
        return options.jacobian.value_or(usual);
      },
      optimizer);
}

std::optional<Norm> geometry_norm(const Optimizer& optimizer) {
  return std::visit([](const auto& options) { return options.geometry_norm(); }, optimizer);
}

Norm measuring_norm(const Optimizer& optimizer) {
  return geometry_norm(optimizer).value_or(Norm::frobenius());
}

double geometry_p(const Optimizer& optimizer) {
  const auto* md = std::get_if<MirrorDescent>(&optimizer);
  return md != nullptr && md->geometry == Geometry::lp ? md->p : 2.0;
}

void validate(const Optimizer& optimizer, const Loss& loss) {
  validate(optimizer);
  const auto schedule = std::visit([](const auto& options) { return options.schedule.kind; }, optimizer);
  if (schedule == ScheduleKind::polyak && std::holds_alternative<LinearLoss>(loss))
    throw bad_input(field_name("schedule") +
                    " is polyak with the linear loss, which has no lower bound for Polyak's step to aim at");
}

std::unique_ptr<UpdateRule> make_rule(const Optimizer& optimizer, const Attention& model,
                                      const ParameterBlocks& weights) {
  validate(optimizer, model.loss());
  return make_rule(optimizer, model.trained_blocks(), weights);
}

std::unique_ptr<UpdateRule> make_rule(const Optimizer& optimizer, const std::vector<BlockShape>& trained,
                                      const ParameterBlocks& weights) {
  validate(optimizer);
  return std::visit([&](const auto& options) { return options.make_rule(trained, weights); }, optimizer);
}

}  // namespace attmirror

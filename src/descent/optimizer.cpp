#include "descent/rules.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/descent/optimizer.hpp>

#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

void validate_step(double lr, double eps_value) {
  if (!(lr > 0) || std::isinf(lr))
    throw bad_input(fmt::format("lr is {}: expected a finite number greater than 0", lr));
  if (!(eps_value >= 0) || std::isinf(eps_value))
    throw bad_input(fmt::format("eps_value is {}: expected a finite number, 0 or greater", eps_value));
}

// Polyak's step length comes from the gradient's own size.
template <class Options>
void validate_schedule(const Options& options) {
  options.schedule.validate();
  options.momentum.validate();
  if (options.schedule.kind != ScheduleKind::polyak) return;
  if (options.normalized)
    throw bad_input(
        "schedule is polyak with normalized steps: Polyak's step is made from the gradient's size, which "
        "normalized steps divide out; expected one of the two");
  if (options.momentum.kind != MomentumKind::none)
    throw bad_input(
        fmt::format("schedule is polyak with momentum {}: Polyak's step is for the gradient itself; expected "
                    "momentum none",
                    to_string(options.momentum)));
}

void validate_weight(const char* name, double beta) {
  if (!(beta >= 0 && beta < 1))
    throw bad_input(fmt::format("{} is {}: expected a number in [0, 1)", name, beta));
}

template <class Options>
std::string common_text(const Options& options) {
  std::string text = fmt::format(", lr = {}", options.lr);
  if constexpr (requires { options.normalized; }) text += options.normalized ? ", normalized" : "";
  text += fmt::format(", eps {}", to_string(options.eps));
  if (options.eps == EpsPolicy::paper) text += fmt::format(" {}", options.eps_value);
  text += fmt::format(", {} Jacobian", to_string(jacobian_for(options)));
  if constexpr (requires { options.momentum; })
    if (options.momentum.kind != MomentumKind::none)
      text += fmt::format(", momentum {}", to_string(options.momentum));
  if (options.schedule.kind != ScheduleKind::constant)
    text += fmt::format(", schedule {}", to_string(options.schedule));
  return text;
}

// The names that a steepest descent goes by: the command's word for it, and what people call it.
struct KnownName {
  std::string_view word = "steepest", text = "";
};

KnownName known_name(const SteepestDescent& sd) {
  if (!sd.normalized) return {};
  const bool plain = sd.momentum.kind == MomentumKind::none, average = sd.momentum.kind == MomentumKind::ema;
  if (sd.norm == Norm::l(infinity) && plain) return {"sign", "sign descent"};
  if (sd.norm == Norm::l(infinity) && average) return {"signum", "Signum"};
  if (sd.norm == Norm::spectral() && plain) return {"spectral", "spectral descent"};
  if (sd.norm == Norm::spectral() && average) return {"muon", "Muon"};
  if (sd.norm == Norm::l(1) && plain) return {"coordinate", "coordinate descent"};
  return {};
}

struct Text {
  std::string operator()(const MirrorDescent& md) const {
    if (md.geometry == Geometry::hyperbolic_entropy)
      return fmt::format("mirror descent, hyperbolic entropy, beta = {}", md.beta) + common_text(md);
    if (md.geometry == Geometry::schatten)
      return fmt::format("mirror descent, Schatten p = {}", md.p) + common_text(md);
    const std::string text = fmt::format("mirror descent, p = {}", md.p) + common_text(md);
    return md.power_path == PowerPath::general ? text + ", general powers" : text;
  }
  std::string operator()(const GradientDescent& gd) const { return "gradient descent" + common_text(gd); }
  std::string operator()(const SteepestDescent& sd) const {
    const std::string_view name = known_name(sd).text;
    return fmt::format("{}steepest descent, norm {}{}{}", name.empty() ? "" : fmt::format("{} (", name),
                       to_string(sd.norm),
                       sd.orthogonalization == Orthogonalization::exact ? "" : " by Newton-Schulz",
                       name.empty() ? "" : ")") +
           common_text(sd);
  }
  std::string operator()(const Adam& adam) const {
    return fmt::format("Adam, beta1 = {}, beta2 = {}", adam.beta1, adam.beta2) + common_text(adam);
  }
};

struct GeometryNorm {
  Norm operator()(const MirrorDescent& md) const {
    if (md.geometry == Geometry::hyperbolic_entropy) return Norm::l(1);
    return md.geometry == Geometry::schatten ? Norm::schatten(md.p) : Norm::l(md.p);
  }
  Norm operator()(const GradientDescent&) const { return Norm::l(2); }
  Norm operator()(const SteepestDescent& sd) const { return sd.norm; }
  Norm operator()(const Adam&) const { return Norm::l(infinity); }
};

}  // namespace

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
  throw bad_input(fmt::format("geometry is \"{}\": expected lp, schatten or entropy", name));
}

void MirrorDescent::validate() const {
  validate_p(p);
  validate_step(lr, eps_value);
  if (!(beta > 0) || std::isinf(beta))
    throw bad_input(fmt::format("beta is {}: expected a finite number greater than 0", beta));
  if (power_path == PowerPath::general && geometry != Geometry::lp)
    throw bad_input(fmt::format("powers is general with geometry {}: only lp has special cases to switch off",
                                to_string(geometry)));
  validate_schedule(*this);
  if (schedule.kind == ScheduleKind::polyak && (geometry != Geometry::lp || p != 2))
    throw bad_input(fmt::format(
        "schedule is polyak with mirror descent, geometry {}{}: Polyak's step bounds the way "
        "to a minimum in the weights, and mirror descent steps in their dual images; expected "
        "geometry lp with p = 2, gradient descent or steepest descent",
        to_string(geometry), geometry == Geometry::hyperbolic_entropy ? "" : fmt::format(", p = {}", p)));
}

void GradientDescent::validate() const {
  validate_step(lr, eps_value);
  validate_schedule(*this);
}

void SteepestDescent::validate() const {
  validate_step(lr, eps_value);
  validate_schedule(*this);
  if (orthogonalization == Orthogonalization::newton_schulz && norm != Norm::spectral())
    throw bad_input(
        fmt::format("orthogonalization is newton-schulz with norm {}: only the spectral norm's direction is "
                    "an orthogonal "
                    "matrix",
                    to_string(norm)));
}

void Adam::validate() const {
  validate_step(lr, eps_value);
  validate_weight("beta1", beta1);
  validate_weight("beta2", beta2);
  schedule.validate();
  if (schedule.kind == ScheduleKind::polyak)
    throw bad_input(
        "schedule is polyak with Adam: Adam divides the gradient's size out, which Polyak's step is made "
        "from; "
        "expected constant or power");
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

std::string to_string(const Optimizer& optimizer) { return std::visit(Text{}, optimizer); }

std::string_view method_name(const Optimizer& optimizer) {
  if (std::holds_alternative<MirrorDescent>(optimizer)) return "md";
  if (std::holds_alternative<GradientDescent>(optimizer)) return "gd";
  if (std::holds_alternative<Adam>(optimizer)) return "adam";
  return known_name(std::get<SteepestDescent>(optimizer)).word;
}

Jacobian jacobian_for(const Optimizer& optimizer) {
  return std::visit(
      [](const auto& options) {
        return options.jacobian.value_or(options.eps == EpsPolicy::paper ? Jacobian::textbook
                                                                         : Jacobian::safe);
      },
      optimizer);
}

Norm geometry_norm(const Optimizer& optimizer) { return std::visit(GeometryNorm{}, optimizer); }

double geometry_p(const Optimizer& optimizer) {
  const auto* md = std::get_if<MirrorDescent>(&optimizer);
  return md != nullptr && md->geometry == Geometry::lp ? md->p : 2.0;
}

void validate(const Optimizer& optimizer, const Loss& loss) {
  validate(optimizer);
  const auto schedule = std::visit([](const auto& options) { return options.schedule.kind; }, optimizer);
  if (schedule == ScheduleKind::polyak && std::holds_alternative<Linear>(loss))
    throw bad_input(
        "schedule is polyak with the linear loss, which has no lower bound for Polyak's step to aim at");
}

std::unique_ptr<UpdateRule> make_rule(const Optimizer& optimizer, const Attention& model,
                                      const ParameterBlocks& weights) {
  validate(optimizer, model.loss());
  return make_rule(optimizer, model.trained_blocks(), weights);
}

std::unique_ptr<UpdateRule> make_rule(const Optimizer& optimizer, const std::vector<BlockShape>& trained,
                                      const ParameterBlocks& weights) {
  validate(optimizer);
  struct Make {
    std::span<const BlockShape> trained;
    const ParameterBlocks& weights;
    std::unique_ptr<UpdateRule> operator()(const MirrorDescent& o) const {
      return make_mirror_descent_rule(o, trained, weights);
    }
    std::unique_ptr<UpdateRule> operator()(const GradientDescent& o) const {
      return make_gradient_descent_rule(o, trained, weights);
    }
    std::unique_ptr<UpdateRule> operator()(const SteepestDescent& o) const {
      return make_steepest_descent_rule(o, trained, weights);
    }
    std::unique_ptr<UpdateRule> operator()(const Adam& o) const {
      return make_adam_rule(o, trained, weights);
    }
  };
  return std::visit(Make{trained, weights}, optimizer);
}

}  // namespace attmirror

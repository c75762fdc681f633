// What each optimizer takes, in the order in which its fields depend on each other, what must hold between them, and
// the text by which checkpoints know it.
#include "descent/optimizer_fields.hpp"

#include <map>

#include <fmt/ranges.h>

namespace attmirror {

namespace {

// ---- fields that several optimizers have

template <class Options>
Field<Options> lr_field() {
  return field<&Options::lr>({.name = "lr", .help = "step size", .range = Range::above(0), .headline = true});
}

template <class Options>
Field<Options> normalized_field() {
  return field<&Options::normalized>({.name = "normalized",
                                      .help = "divide each block's gradient by its dual norm",
                                      .opposite = "unnormalized"});
}

template <class Options>
Field<Options> momentum_field() {
  return field<&Options::momentum, parse_momentum>(
      {.name = "momentum",
       .help =
           "heavy-ball steps along M <- BETA M + g, ema along a moving average of the gradients; BETA is 0.9 unless given",
       .choices = "none|heavy-ball|heavy-ball:BETA|ema|ema:BETA",
       .instead = fmt::format("adam and lion have {}", field_name("beta1")),
       .may_lack = true});
}

template <class Options>
Field<Options> schedule_field() {
  return field<&Options::schedule, parse_schedule>(
      {.name = "schedule",
       .help =
           "power: lr (t+1)^-EXPONENT, 0.5 unless given; polyak: lr (loss - LOWER) / |gradient|^2, LOWER 0 unless given",
       .choices = "constant|power|power:EXPONENT|polyak|polyak:LOWER",
       .may_lack = true});
}

template <class Options>
Field<Options> eps_field() {
  return field<&Options::eps, parse_eps_policy>(
      {.name = "eps",
       .help = "exact: normalized steps never freeze; paper: g/(|g| + eps) as the published code rounds it",
       .choices = "exact|paper"});
}

template <class Options>
Field<Options> eps_value_field() {
  return only_if(
      field<&Options::eps_value>({.name = "eps_value",
                                  .help = "the number eps of the policy paper",
                                  .range = Range::from(0),
                                  .kept_idle = true}),
      +[](const Options& options) {
        if constexpr (requires { options.normalized; })
          if (!options.normalized) return false;
        return options.eps == EpsPolicy::paper;
      },
      +[](const Options& options) -> std::string {
        if (options.eps == EpsPolicy::paper)
          return "steps are not normalized: only normalized ones divide by |g| + eps";
        return fmt::format("{} is exact: only paper uses it", field_name("eps"));
      });
}

// Left empty where it is what the eps policy says anyway.
template <class Options>
Field<Options> jacobian_field() {
  return made_field<Options>(
      {.name = "jacobian",
       .help = "how the derivative of the softmax is evaluated",
       .choices = "safe|textbook",
       .shown_default = "safe; textbook for eps paper"},
      FieldKind::word,
      [](const Options& options) -> FieldValue { return std::string(to_string(jacobian_for(options))); },
      [](Options& options, const FieldValue& value) {
        options.jacobian.reset();
        const Jacobian jacobian = parse_jacobian(std::get<std::string>(value));
        if (jacobian != jacobian_for(options)) options.jacobian = jacobian;
      });
}

template <class Options>
Field<Options> beta1_field() {
  return field<&Options::beta1>({.name = "beta1",
                                 .help = "weight of the past in the direction of a step",
                                 .range = Range::from_to_below(0, 1)});
}

template <class Options>
Field<Options> beta2_field() {
  return field<&Options::beta2>(
      {.name = "beta2",
       .help =
           "weight of the past in the average of squared gradients; of lion: in its long average of gradients",
       .range = Range::from_to_below(0, 1)});
}

// ---- what must hold between fields

[[noreturn]] void refuse_polyak(std::string_view with, std::string_view why) {
  throw Error(ErrorKind::bad_input,
              fmt::format("{} is polyak with {}: {}", field_name("schedule"), with, why),
              {.field = "schedule", .index = std::nullopt, .value = "polyak"});
}

// Polyak's step length comes from the gradient's own size.
template <class Options>
void validate_step(const Options& options) {
  check_ranges(fields_of(options), options);
  options.schedule.validate();
  if constexpr (requires { options.momentum; }) options.momentum.validate();
  if (options.schedule.kind != ScheduleKind::polyak) return;
  if constexpr (requires { options.normalized; }) {
    if (options.normalized)
      refuse_polyak(
          "normalized steps",
          "Polyak's step is made from the gradient's size, which normalized steps divide out; expected one of the two");
    if (options.momentum.kind != MomentumKind::none)
      refuse_polyak(fmt::format("momentum {}", to_string(options.momentum)),
                    "Polyak's step is for the gradient itself; expected momentum none");
  } else {
    const std::string_view method = method_of(options).title;
    refuse_polyak(
        method,
        fmt::format(
            "{} divides the gradient's size out, which Polyak's step is made from; expected constant or power",
            method));
  }
}

// ---- texts, which checkpoints compare: they stay as they are

template <class Options>
std::string common_text(const Options& options) {
  std::string text = fmt::format(", lr = {}", options.lr);
  if constexpr (requires { options.normalized; }) text += options.normalized ? ", normalized" : "";
  if constexpr (requires { options.eps; }) {
    text += fmt::format(", eps {}", to_string(options.eps));
    if (options.eps == EpsPolicy::paper) text += fmt::format(" {}", options.eps_value);
  }
  text += fmt::format(", {} Jacobian", to_string(jacobian_for(options)));
  if constexpr (requires { options.momentum; })
    if (options.momentum.kind != MomentumKind::none)
      text += fmt::format(", momentum {}", to_string(options.momentum));
  if (options.schedule.kind != ScheduleKind::constant)
    text += fmt::format(", schedule {}", to_string(options.schedule));
  return text;
}

struct OptimizerText {
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
    const OptimizerMethod& method = method_of(sd);
    const std::string_view name = method.name == "steepest" ? "" : method.title;
    return fmt::format("{}steepest descent, norm {}{}{}", name.empty() ? "" : fmt::format("{} (", name),
                       to_string(sd.norm),
                       sd.orthogonalization == Orthogonalization::exact ? "" : " by Newton-Schulz",
                       name.empty() ? "" : ")") +
           common_text(sd);
  }
  std::string operator()(const Adam& adam) const {
    return fmt::format("Adam, beta1 = {}, beta2 = {}", adam.beta1, adam.beta2) + common_text(adam);
  }
  std::string operator()(const Lion& lion) const {
    return fmt::format("Lion, beta1 = {}, beta2 = {}", lion.beta1, lion.beta2) + common_text(lion);
  }
  std::string operator()(const AdaGrad& adagrad) const { return "AdaGrad" + common_text(adagrad); }
};

}  // namespace

std::string to_string(const Optimizer& optimizer) { return std::visit(OptimizerText{}, optimizer); }

const Fields<MirrorDescent>& fields_of(const MirrorDescent&) {
  using O = MirrorDescent;
  static const Fields<O> fields{
      field<&O::geometry, parse_geometry>({.name = "geometry",
                                           .help = "the potential of mirror descent",
                                           .choices = "lp|schatten|entropy",
                                           .may_lack = true}),
      only_if(
          field<&O::p>(
              {.name = "p",
               .help =
                   "exponent of the lp and schatten potentials, 1 < p < infinity; near 1 the weights become sparse, or of low rank",
               .range = Range::above(1),
               .instead = fmt::format("steepest takes {}", field_name("norm")),
               .headline = true}),
          +[](const O& md) { return md.geometry != Geometry::hyperbolic_entropy; },
          +[](const O&) -> std::string {
            return fmt::format("{} is entropy: it has {} instead", field_name("geometry"),
                               field_name("entropy_beta"));
          }),
      only_if(
          field<&O::beta>(
              {.name = "entropy_beta",
               .help =
                   "beta of the entropy potential: a small one acts like l1, a large one like gradient descent",
               .range = Range::above(0),
               .member = "beta",
               .key = "beta"}),
          +[](const O& md) { return md.geometry == Geometry::hyperbolic_entropy; },
          +[](const O& md) -> std::string {
            return fmt::format("{} is {}: only entropy has one", field_name("geometry"),
                               to_string(md.geometry));
          }),
      lr_field<O>(),
      normalized_field<O>(),
      momentum_field<O>(),
      schedule_field<O>(),
      eps_field<O>(),
      eps_value_field<O>(),
      jacobian_field<O>(),
      only_if(
          field<&O::power_path, parse_power_path>(
              {.name = "powers",
               .help =
                   "general switches off the shortcuts for p = 2, 3, 3/2, 4/3, 4, 1.75 and 1.1, to check them",
               .choices = "fast|general",
               .member = "power_path"}),
          +[](const O& md) { return md.geometry == Geometry::lp; },
          +[](const O& md) -> std::string {
            return fmt::format("{} is {}: only lp takes powers", field_name("geometry"),
                               to_string(md.geometry));
          }),
  };
  return fields;
}

void MirrorDescent::validate() const {
  validate_step(*this);
  if (power_path == PowerPath::general && geometry != Geometry::lp)
    throw bad_input(fmt::format("{} is general with {} {}: only lp has special cases to switch off",
                                field_name("power_path"), field_name("geometry"), to_string(geometry)));
  if (schedule.kind == ScheduleKind::polyak && (geometry != Geometry::lp || p != 2))
    refuse_polyak(
        fmt::format("mirror descent, geometry {}{}", to_string(geometry),
                    geometry == Geometry::hyperbolic_entropy ? "" : fmt::format(", p = {}", p)),
        "Polyak's step bounds the way to a minimum in the weights, and mirror descent steps in their dual images; expected geometry lp with p = 2, gradient descent or steepest descent");
}

const Fields<GradientDescent>& fields_of(const GradientDescent&) {
  using O = GradientDescent;
  static const Fields<O> fields{
      // Said, it must be 2.
      made_field<O>(
          {.name = "p", .may_lack = true}, FieldKind::number, [](const O&) { return FieldValue{}; },
          [](O&, const FieldValue& value) {
            if (const double p = std::get<double>(value); p != 2)
              throw bad_value(
                  "p", p,
                  fmt::format("2, the p of gradient descent; {} md takes any", field_name("optimizer")));
          }),
      lr_field<O>(),
      normalized_field<O>(),
      momentum_field<O>(),
      schedule_field<O>(),
      eps_field<O>(),
      eps_value_field<O>(),
      jacobian_field<O>(),
  };
  return fields;
}

void GradientDescent::validate() const { validate_step(*this); }

const Fields<SteepestDescent>& fields_of(const SteepestDescent&) {
  using O = SteepestDescent;
  static const Fields<O> fields = [] {
    Fields<O> list{
        field<&O::norm, parse_norm>({.name = "norm",
                                     .help = "the norm of steepest descent, which steepest must be given",
                                     .choices = "1|2|inf|NUMBER|frobenius|nuclear|spectral|schatten:P",
                                     .needed = true}),
        lr_field<O>(),
        normalized_field<O>(),
        momentum_field<O>(),
        schedule_field<O>(),
        only_if(
            field<&O::orthogonalization, parse_orthogonalization>(
                {.name = "orthogonalization",
                 .help = "how spectral directions are computed",
                 .choices = "exact|newton-schulz",
                 .kept_idle = true}),
            +[](const O& sd) { return sd.norm == Norm::spectral(); },
            +[](const O& sd) -> std::string {
              return fmt::format("{} is {}: only spectral directions have one", field_name("norm"),
                                 to_string(sd.norm));
            }),
        eps_field<O>(),
        eps_value_field<O>(),
        jacobian_field<O>(),
    };
    list.front().kind = FieldKind::norm;
    return list;
  }();
  return fields;
}

void SteepestDescent::validate() const {
  validate_step(*this);
  if (orthogonalization == Orthogonalization::newton_schulz && norm != Norm::spectral())
    throw bad_input(fmt::format(
        "{} is newton-schulz with {} {}: only the spectral norm's direction is an orthogonal matrix",
        field_name("orthogonalization"), field_name("norm"), to_string(norm)));
}

const Fields<Adam>& fields_of(const Adam&) {
  using O = Adam;
  static const Fields<O> fields{
      lr_field<O>(),  schedule_field<O>(),  beta1_field<O>(),    beta2_field<O>(),
      eps_field<O>(), eps_value_field<O>(), jacobian_field<O>(),
  };
  return fields;
}

void Adam::validate() const { validate_step(*this); }

const Fields<Lion>& fields_of(const Lion&) {
  using O = Lion;
  static const Fields<O> fields{lr_field<O>(), schedule_field<O>(), beta1_field<O>(), beta2_field<O>(),
                                jacobian_field<O>()};
  return fields;
}

void Lion::validate() const { validate_step(*this); }

const Fields<AdaGrad>& fields_of(const AdaGrad&) {
  using O = AdaGrad;
  static const Fields<O> fields{lr_field<O>(), schedule_field<O>(), eps_field<O>(), eps_value_field<O>(),
                                jacobian_field<O>()};
  return fields;
}

void AdaGrad::validate() const { validate_step(*this); }

const std::vector<OptimizerMethod>& optimizer_methods() {
  static const std::vector<OptimizerMethod> methods = [] {
    const std::map<std::string_view, Optimizer> presets{
        {"md", MirrorDescent{}},
        {"gd", GradientDescent{}},
        {"steepest", SteepestDescent{}},
        {"sign", sign_descent()},
        {"coordinate", coordinate_descent()},
        {"spectral", spectral_descent()},
        {"signum", signum()},
        {"muon", muon()},
        {"adam", Adam{}},
        {"lion", Lion{}},
        {"adagrad", AdaGrad{}},
    };
    std::vector<OptimizerMethod> list;
    for (const MethodName& method : method_names)
      list.push_back({method, method.in_descent ? std::optional(presets.at(method.name)) : std::nullopt});
    return list;
  }();
  return methods;
}

}  // namespace attmirror

#include "cli/optimizer_options.hpp"

#include <attmirror/base/error.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

// The methods by name. All but the first two and the last are steepest descent in a norm.
constexpr std::array methods{"md",       "gd",     "steepest", "sign", "coordinate",
                             "spectral", "signum", "muon",     "adam"};

std::string all_methods(const char* separator) {
  std::string text;
  for (const char* method : methods) text += fmt::format("{}{}", text.empty() ? "" : separator, method);
  return text;
}

// The options as they were given, with the questions that they are asked here.
class Reader {
 public:
  Reader(const CLI::App& app, const OptimizerOptions& options) : app_(app), options_(options) {}

  bool is(std::string_view method) const { return options_.optimizer == method; }
  bool given(const std::string& option) const { return app_.count("--" + option) > 0; }

  // An option that the optimizer takes only sometimes.
  void allow_if(bool taken, const std::string& option, std::string_view otherwise) const {
    if (!taken && given(option))
      throw bad_input(
          fmt::format("{} is given, but optimizer is {}: {}", option, options_.optimizer, otherwise));
  }

  // What all optimizers have in common.
  template <class Options>
  Options common(Options result) const {
    result.lr = options_.lr;
    result.eps = parse_eps_policy(options_.eps);
    if (given("eps-value")) result.eps_value = options_.eps_value;
    if (!options_.jacobian.empty()) result.jacobian = parse_jacobian(options_.jacobian);
    result.schedule = parse_schedule(options_.schedule);
    if constexpr (requires { result.momentum; })
      if (!options_.momentum.empty()) result.momentum = parse_momentum(options_.momentum);
    return result;
  }

  void check_words() const;
  MirrorDescent mirror_descent() const;
  GradientDescent gradient_descent() const;
  SteepestDescent steepest_descent() const;
  Adam adam() const;

 private:
  SteepestDescent named_method() const;

  const CLI::App& app_;
  const OptimizerOptions& options_;
};

// Which optimizer takes which option.
void Reader::check_words() const {
  const bool md = is("md"), gd = is("gd"), adam = is("adam"), any_norm = is("steepest");
  allow_if(md, "geometry", "only md has one");
  allow_if(md, "entropy-beta", "only md with --geometry entropy has one");
  allow_if(md, "powers", "only md takes powers");
  if (gd && options_.p != 2)
    throw bad_input(fmt::format("p is {}, but gradient descent has p = 2: use --optimizer md", options_.p));
  allow_if(md || gd, "p", any_norm ? "give --norm" : "only md has one; steepest takes --norm");
  allow_if(any_norm, "norm",
           md || gd || adam ? "only steepest takes one" : "it has its own; steepest takes any");
  allow_if(!adam, "momentum", "its own is --beta1");
  allow_if(adam, "beta1", "only adam has one; the others take --momentum");
  allow_if(adam, "beta2", "only adam has one");
  allow_if(any_norm || is("spectral") || is("muon"), "orthogonalization",
           "only spectral, muon and steepest with --norm spectral have one");
  allow_if(!adam, "normalized", "its steps do not depend on the gradient's size anyway");
  allow_if(any_norm, "unnormalized",
           md || gd ? "its steps are not normalized unless --normalized is given"
           : adam   ? "its steps never depend on the gradient's size"
                    : "its steps are normalized by definition; steepest takes any norm and --unnormalized");
  if (options_.normalized && options_.unnormalized)
    throw bad_input("both --normalized and --unnormalized are given: expected one of them");
  if (parse_eps_policy(options_.eps) == EpsPolicy::exact && given("eps-value"))
    throw bad_input("eps-value is given, but eps is exact: only --eps paper uses it");
  if (given("eps-value") && ((md || gd) ? !options_.normalized : options_.unnormalized))
    throw bad_input(
        "eps-value is given, but steps are not normalized: only normalized ones divide by |g| + eps");
}

MirrorDescent Reader::mirror_descent() const {
  MirrorDescent md = common(MirrorDescent{.normalized = options_.normalized});
  md.geometry = parse_geometry(options_.geometry);
  const bool entropy = md.geometry == Geometry::hyperbolic_entropy;
  if (entropy && given("p"))
    throw bad_input("p is given, but geometry is entropy: it has --entropy-beta instead");
  if (!entropy && given("entropy-beta"))
    throw bad_input(
        fmt::format("entropy-beta is given, but geometry is {}: only entropy has one", options_.geometry));
  if (md.geometry != Geometry::lp && given("powers"))
    throw bad_input(
        fmt::format("powers is given, but geometry is {}: only lp takes powers", options_.geometry));
  md.p = options_.p;
  md.beta = options_.entropy_beta;
  md.power_path = parse_power_path(options_.powers);
  return md;
}

GradientDescent Reader::gradient_descent() const {
  return common(GradientDescent{.normalized = options_.normalized});
}

SteepestDescent Reader::named_method() const {
  if (is("sign")) return sign_descent();
  if (is("coordinate")) return coordinate_descent();
  if (is("spectral")) return spectral_descent();
  if (is("signum")) return signum();
  return muon();
}

SteepestDescent Reader::steepest_descent() const {
  SteepestDescent steepest;
  if (is("steepest")) {
    if (options_.norm.empty())
      throw bad_input(
          "norm is missing: --optimizer steepest takes --norm 1, 2, inf, any other P, nuclear, spectral or "
          "schatten:P");
    steepest.norm = parse_norm(options_.norm);
    steepest.normalized = !options_.unnormalized;
  } else {
    steepest = named_method();
  }
  const bool remembers = steepest.momentum.kind != MomentumKind::none;
  steepest = common(steepest);
  if (remembers && steepest.momentum.kind == MomentumKind::none)
    throw bad_input(
        fmt::format("momentum is none, but optimizer is {}: without momentum it is --optimizer {}",
                    options_.optimizer, is("signum") ? "sign" : "spectral"));
  if (!options_.orthogonalization.empty() && steepest.norm != Norm::spectral())
    throw bad_input(
        fmt::format("orthogonalization is given, but norm is {}: only spectral directions have one",
                    to_string(steepest.norm)));
  if (!options_.orthogonalization.empty())
    steepest.orthogonalization = parse_orthogonalization(options_.orthogonalization);
  return steepest;
}

Adam Reader::adam() const {
  Adam adam = common(Adam{});
  adam.beta1 = options_.beta1;
  adam.beta2 = options_.beta2;
  return adam;
}

}  // namespace

void add_optimizer_options(CLI::App& app, OptimizerOptions& o) {
  const char* group = "Descent";
  add_text(app, "--optimizer", o.optimizer, all_methods("|"),
           "mirror descent, gradient descent, steepest descent in a norm, or one of those by name")
      ->group(group);
  add_text(app, "--geometry", o.geometry, "lp|schatten|entropy", "the potential of md")->group(group);
  add_number(app, "--p", o.p,
             "p of md's lp and schatten, 1 < p < infinity; near 1 gives sparse weights, or low rank")
      ->group(group);
  add_number(app, "--entropy-beta", o.entropy_beta,
             "of md's entropy: small is like l1, large like gradient descent")
      ->group(group);
  add_text(app, "--norm", o.norm, "1|2|inf|NUMBER|frobenius|nuclear|spectral|schatten:P",
           "of steepest: the norm that its steps are steepest in")
      ->group(group);
  add_number(app, "--lr", o.lr, "step size")->group(group);
  add_flag(app, "--normalized", o.normalized, "md, gd: divide each block's gradient by its dual norm")
      ->group(group);
  add_flag(app, "--unnormalized", o.unnormalized, "steepest: steps in proportion to the gradient's dual norm")
      ->group(group);
  add_text(app, "--momentum", o.momentum, "none|heavy-ball|heavy-ball:BETA|ema|ema:BETA",
           "step along M <- beta M + g, or an average; by default none, ema:0.9 for signum and ema:0.95 for "
           "muon; a word alone has beta 0.9")
      ->group(group);
  add_text(app, "--schedule", o.schedule, "constant|power|power:EXPONENT|polyak|polyak:LOWER",
           "power: lr (t+1)^-EXPONENT (0.5); polyak: lr (loss - LOWER) / |gradient|^2, LOWER 0")
      ->group(group);
  add_number(app, "--beta1", o.beta1, "of adam: weight of the past in the average of gradients")
      ->group(group);
  add_number(app, "--beta2", o.beta2, "of adam: weight of the past in the average of their squares")
      ->group(group);
  add_text(app, "--orthogonalization", o.orthogonalization, "exact|newton-schulz",
           "how spectral and muon find their direction; by default exact, and newton-schulz for muon")
      ->group(group);
  add_text(app, "--eps", o.eps, "exact|paper",
           "exact: normalized steps never freeze; paper: g/(|g| + eps) as the published code rounds it")
      ->group(group);
  add_number(app, "--eps-value", o.eps_value, "the eps of --eps paper; 1e-8 for adam")->group(group);
  add_text(app, "--jacobian", o.jacobian, "safe|textbook",
           "how the derivative of the softmax is evaluated; by default safe, and textbook for --eps paper")
      ->group(group);
  add_text(app, "--powers", o.powers, "fast|general",
           "general: no shortcuts for p = 2, 3, 3/2, 4/3, 4, 1.75, 1.1, to check them")
      ->group(group);
}

Optimizer make_optimizer(const CLI::App& app, const OptimizerOptions& options) {
  const Reader reader(app, options);
  if (std::ranges::find(methods, std::string_view(options.optimizer)) == methods.end())
    throw bad_input(
        fmt::format("optimizer is \"{}\": expected one of {}", options.optimizer, all_methods(", ")));
  reader.check_words();
  Optimizer optimizer = reader.is("md")     ? Optimizer(reader.mirror_descent())
                        : reader.is("gd")   ? Optimizer(reader.gradient_descent())
                        : reader.is("adam") ? Optimizer(reader.adam())
                                            : Optimizer(reader.steepest_descent());
  validate(optimizer);
  return optimizer;
}

}  // namespace attmirror::cli

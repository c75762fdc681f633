#include <attmirror/base/error.hpp>
#include <attmirror/descent/optimizer_words.hpp>

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

// The words as they were given, with the questions that they are asked here.
class Reader {
 public:
  explicit Reader(const OptimizerWords& words)
      : words_(words),
        method_(words.optimizer ? std::string_view(*words.optimizer) : "md"),
        eps_(words.eps ? parse_eps_policy(*words.eps) : EpsPolicy::exact) {}

  bool is(std::string_view method) const { return method_ == method; }

  Optimizer optimizer() const {
    if (std::ranges::find(optimizer_methods(), method_) == optimizer_methods().end())
      throw bad_input(fmt::format("optimizer is \"{}\": expected one of {}", method_,
                                  fmt::join(optimizer_methods(), ", ")));
    check_words();
    if (is("md")) return mirror_descent();
    if (is("gd")) return common(GradientDescent{.normalized = words_.normalized.value_or(false)});
    if (is("adam")) return adam();
    return steepest_descent();
  }

 private:
  // A word that the optimizer takes only sometimes.
  template <class T>
  void allow_if(bool taken, const std::optional<T>& word, std::string_view name,
                std::string_view otherwise) const {
    if (!taken && word)
      throw bad_input(fmt::format("{} is given, but optimizer is {}: {}", name, method_, otherwise));
  }

  // What all optimizers have in common.
  template <class Options>
  Options common(Options result) const {
    if (words_.lr) result.lr = *words_.lr;
    result.eps = eps_;
    if (words_.eps_value) result.eps_value = *words_.eps_value;
    if (words_.jacobian) result.jacobian = parse_jacobian(*words_.jacobian);
    if (words_.schedule) result.schedule = parse_schedule(*words_.schedule);
    if constexpr (requires { result.momentum; })
      if (words_.momentum) result.momentum = parse_momentum(*words_.momentum);
    return result;
  }

  void check_words() const;
  MirrorDescent mirror_descent() const;
  SteepestDescent named_method() const;
  SteepestDescent steepest_descent() const;
  Adam adam() const;

  const OptimizerWords& words_;
  std::string_view method_;
  EpsPolicy eps_;
};

// Which optimizer takes which word.
void Reader::check_words() const {
  const bool md = is("md"), gd = is("gd"), adam = is("adam"), any_norm = is("steepest");
  allow_if(md, words_.geometry, "geometry", "only md has one");
  allow_if(md, words_.entropy_beta, "entropy-beta", "only md with --geometry entropy has one");
  allow_if(md, words_.powers, "powers", "only md takes powers");
  if (gd && words_.p && *words_.p != 2)
    throw bad_input(fmt::format("p is {}, but gradient descent has p = 2: use --optimizer md", *words_.p));
  allow_if(md || gd, words_.p, "p", any_norm ? "give --norm" : "only md has one; steepest takes --norm");
  allow_if(any_norm, words_.norm, "norm",
           md || gd || adam ? "only steepest takes one" : "it has its own; steepest takes any");
  allow_if(!adam, words_.momentum, "momentum", "its own is --beta1");
  allow_if(adam, words_.beta1, "beta1", "only adam has one; the others take --momentum");
  allow_if(adam, words_.beta2, "beta2", "only adam has one");
  allow_if(any_norm || is("spectral") || is("muon"), words_.orthogonalization, "orthogonalization",
           "only spectral, muon and steepest with --norm spectral have one");
  allow_if(!adam, words_.normalized, "normalized", "its steps do not depend on the gradient's size anyway");
  const bool normalized = words_.normalized.value_or(!(md || gd));
  if (!normalized && !md && !gd && !any_norm)
    throw bad_input(
        fmt::format("normalized is false, but optimizer is {}: its steps are normalized by definition; "
                    "steepest takes any norm and need not be",
                    method_));
  if (eps_ == EpsPolicy::exact && words_.eps_value)
    throw bad_input("eps-value is given, but eps is exact: only --eps paper uses it");
  if (words_.eps_value && !normalized)
    throw bad_input(
        "eps-value is given, but steps are not normalized: only normalized ones divide by |g| + eps");
}

MirrorDescent Reader::mirror_descent() const {
  MirrorDescent md = common(MirrorDescent{.normalized = words_.normalized.value_or(false)});
  if (words_.geometry) md.geometry = parse_geometry(*words_.geometry);
  const bool entropy = md.geometry == Geometry::hyperbolic_entropy;
  if (entropy && words_.p)
    throw bad_input("p is given, but geometry is entropy: it has --entropy-beta instead");
  if (!entropy && words_.entropy_beta)
    throw bad_input(fmt::format("entropy-beta is given, but geometry is {}: only entropy has one",
                                to_string(md.geometry)));
  if (md.geometry != Geometry::lp && words_.powers)
    throw bad_input(
        fmt::format("powers is given, but geometry is {}: only lp takes powers", to_string(md.geometry)));
  if (words_.p) md.p = *words_.p;
  if (words_.entropy_beta) md.beta = *words_.entropy_beta;
  if (words_.powers) md.power_path = parse_power_path(*words_.powers);
  return md;
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
    if (!words_.norm)
      throw bad_input(
          "norm is missing: --optimizer steepest takes --norm 1, 2, inf, any other P, nuclear, spectral or "
          "schatten:P");
    steepest.norm = parse_norm(*words_.norm);
    steepest.normalized = words_.normalized.value_or(true);
  } else {
    steepest = named_method();
  }
  const bool remembers = steepest.momentum.kind != MomentumKind::none;
  steepest = common(steepest);
  if (remembers && steepest.momentum.kind == MomentumKind::none)
    throw bad_input(
        fmt::format("momentum is none, but optimizer is {}: without momentum it is --optimizer {}", method_,
                    is("signum") ? "sign" : "spectral"));
  if (words_.orthogonalization && steepest.norm != Norm::spectral())
    throw bad_input(
        fmt::format("orthogonalization is given, but norm is {}: only spectral directions have one",
                    to_string(steepest.norm)));
  if (words_.orthogonalization)
    steepest.orthogonalization = parse_orthogonalization(*words_.orthogonalization);
  return steepest;
}

Adam Reader::adam() const {
  Adam adam = common(Adam{});
  if (words_.beta1) adam.beta1 = *words_.beta1;
  if (words_.beta2) adam.beta2 = *words_.beta2;
  return adam;
}

// From an optimizer to its words.
struct Words {
  std::string_view method;

  template <class Options>
  OptimizerWords common(const Options& options) const {
    OptimizerWords words;
    words.optimizer = std::string(method);
    words.lr = options.lr;
    bool divides = true;  // by |g| + eps
    if constexpr (requires { options.normalized; }) {
      words.normalized = options.normalized;
      divides = options.normalized;
    }
    if constexpr (requires { options.momentum; }) words.momentum = to_string(options.momentum);
    words.schedule = to_string(options.schedule);
    words.eps = std::string(to_string(options.eps));
    if (options.eps == EpsPolicy::paper && divides) words.eps_value = options.eps_value;
    words.jacobian = std::string(to_string(jacobian_for(options)));
    return words;
  }

  OptimizerWords operator()(const MirrorDescent& md) const {
    OptimizerWords words = common(md);
    words.geometry = std::string(to_string(md.geometry));
    if (md.geometry == Geometry::hyperbolic_entropy)
      words.entropy_beta = md.beta;
    else
      words.p = md.p;
    if (md.geometry == Geometry::lp) words.powers = std::string(to_string(md.power_path));
    return words;
  }
  OptimizerWords operator()(const GradientDescent& gd) const { return common(gd); }
  OptimizerWords operator()(const SteepestDescent& sd) const {
    OptimizerWords words = common(sd);
    if (method == "steepest") words.norm = to_string(sd.norm);
    if (sd.norm == Norm::spectral()) words.orthogonalization = std::string(to_string(sd.orthogonalization));
    return words;
  }
  OptimizerWords operator()(const Adam& adam) const {
    OptimizerWords words = common(adam);
    words.beta1 = adam.beta1;
    words.beta2 = adam.beta2;
    return words;
  }
};

}  // namespace

const std::vector<std::string_view>& optimizer_methods() {
  static const std::vector<std::string_view> methods{"md",       "gd",     "steepest", "sign", "coordinate",
                                                     "spectral", "signum", "muon",     "adam"};
  return methods;
}

Optimizer make_optimizer(const OptimizerWords& words) {
  Optimizer optimizer = Reader(words).optimizer();
  validate(optimizer);
  return optimizer;
}

OptimizerWords words_of(const Optimizer& optimizer, std::string_view method) {
  return std::visit(Words{method}, optimizer);
}

}  // namespace attmirror

#include <attmirror/base/error.hpp>
#include <attmirror/descent/optimizer.hpp>

#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

void validate_step(double lr, double eps_value) {
  if (!(lr > 0) || std::isinf(lr))
    throw bad_input(fmt::format("lr is {}: expected a finite number greater than 0", lr));
  if (!(eps_value >= 0) || std::isinf(eps_value))
    throw bad_input(fmt::format("eps_value is {}: expected a finite number, 0 or greater", eps_value));
}

// Positions of the trained blocks among all blocks of the model.
std::vector<std::ptrdiff_t> trained_positions(const Attention& model, const ParameterBlocks& weights) {
  std::vector<std::ptrdiff_t> result;
  for (const Block block : model.trained()) result.push_back(weights.find(block));
  return result;
}

// The factor that a block's stored gradient is multiplied with: lr, times what `normalized`, the eps policy and the
// gradient's scale ask for. A zero gradient moves nothing.
template <class Options>
double step_factor(const Options& options, double dual_norm, double log_scale) {
  if (options.normalized && options.eps == EpsPolicy::exact)
    return dual_norm == 0 ? 0.0 : options.lr / dual_norm;
  const double scale = std::exp(log_scale);
  if (!options.normalized) return options.lr * scale;
  const double size = dual_norm * scale + options.eps_value;
  return size == 0 ? 0.0 : options.lr * scale / size;
}

class MirrorDescentRule final : public UpdateRule {
 public:
  MirrorDescentRule(const MirrorDescent& options, const Attention& model, const ParameterBlocks& weights)
      : options_(options),
        map_(options.p, options.power_path),
        positions_(trained_positions(model, weights)),
        dual_(model.trained_blocks()) {
    for (std::ptrdiff_t b = 0; b < dual_.count(); ++b) map_.map(weights.view(position(b)), dual_.view(b));
  }

  void step(const Gradient& gradient, ParameterBlocks& weights) override {
    for (std::ptrdiff_t b = 0; b < dual_.count(); ++b) {
      const ConstMatrixView g = gradient.blocks.view(b);
      const double norm = options_.normalized ? map_.dual_norm(g) : 0.0;
      const double factor = step_factor(options_, norm, gradient.log_scale[static_cast<std::size_t>(b)]);
      map_.step(g, factor, dual_.view(b), weights.view(position(b)));
    }
  }

  std::vector<std::pair<std::string, ParameterBlocks*>> state() override { return {{"dual", &dual_}}; }

 private:
  std::ptrdiff_t position(std::ptrdiff_t b) const { return positions_[static_cast<std::size_t>(b)]; }

  MirrorDescent options_;
  LpMap map_;
  std::vector<std::ptrdiff_t> positions_;
  ParameterBlocks dual_;
};

class GradientDescentRule final : public UpdateRule {
 public:
  GradientDescentRule(const GradientDescent& options, const Attention& model, const ParameterBlocks& weights)
      : options_(options), positions_(trained_positions(model, weights)) {}

  void step(const Gradient& gradient, ParameterBlocks& weights) override {
    for (std::ptrdiff_t b = 0; b < gradient.blocks.count(); ++b) {
      const ConstMatrixView g = gradient.blocks.view(b);
      const double norm = options_.normalized ? euclid_.norm(g) : 0.0;
      const double factor = step_factor(options_, norm, gradient.log_scale[static_cast<std::size_t>(b)]);
      MatrixView w = weights.view(positions_[static_cast<std::size_t>(b)]);
      euclid_.step(g, factor, w, w);
    }
  }

  std::vector<std::pair<std::string, ParameterBlocks*>> state() override { return {}; }

 private:
  GradientDescent options_;
  LpMap euclid_{2};
  std::vector<std::ptrdiff_t> positions_;
};

template <class Options>
std::string common_text(const Options& options) {
  std::string text = fmt::format(", lr = {}{}, eps {}", options.lr, options.normalized ? ", normalized" : "",
                                 to_string(options.eps));
  if (options.eps == EpsPolicy::paper) text += fmt::format(" {}", options.eps_value);
  return text + fmt::format(", {} Jacobian", to_string(jacobian_for(options)));
}

}  // namespace

std::string_view to_string(EpsPolicy policy) { return policy == EpsPolicy::exact ? "exact" : "paper"; }

EpsPolicy parse_eps_policy(std::string_view name) {
  if (name == "exact") return EpsPolicy::exact;
  if (name == "paper") return EpsPolicy::paper;
  throw bad_input(fmt::format("eps is \"{}\": expected exact or paper", name));
}

void MirrorDescent::validate() const {
  validate_p(p);
  validate_step(lr, eps_value);
}

void GradientDescent::validate() const { validate_step(lr, eps_value); }

void validate(const Optimizer& optimizer) {
  std::visit([](const auto& options) { options.validate(); }, optimizer);
}

std::string to_string(const Optimizer& optimizer) {
  if (const auto* md = std::get_if<MirrorDescent>(&optimizer)) {
    std::string text = fmt::format("mirror descent, p = {}", md->p);
    text += common_text(*md);
    return md->power_path == PowerPath::general ? text + ", general powers" : text;
  }
  const auto& gd = std::get<GradientDescent>(optimizer);
  return "gradient descent" + common_text(gd);
}

Jacobian jacobian_for(const Optimizer& optimizer) {
  return std::visit(
      [](const auto& options) {
        return options.jacobian.value_or(options.eps == EpsPolicy::paper ? Jacobian::textbook
                                                                         : Jacobian::safe);
      },
      optimizer);
}

double geometry_p(const Optimizer& optimizer) {
  const auto* md = std::get_if<MirrorDescent>(&optimizer);
  return md != nullptr ? md->p : 2.0;
}

std::unique_ptr<UpdateRule> make_rule(const Optimizer& optimizer, const Attention& model,
                                      const ParameterBlocks& weights) {
  validate(optimizer);
  if (const auto* md = std::get_if<MirrorDescent>(&optimizer))
    return std::make_unique<MirrorDescentRule>(*md, model, weights);
  return std::make_unique<GradientDescentRule>(std::get<GradientDescent>(optimizer), model, weights);
}

}  // namespace attmirror

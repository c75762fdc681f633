// The optimizers as users name them: their methods and the fields of each.
//
//   const Optimizer optimizer = make_optimizer({{"optimizer", "steepest"}, {"norm", "nuclear"}, {"lr", 0.01}});
//
// A method is a name with a preset: `muon` is SteepestDescent in the spectral norm with a momentum. A new optimizer
// is a struct of optimizer.hpp, its rule, its name and its table here (CONTRIBUTING). Internal.
#pragma once

#include "base/fields.hpp"
#include "base/json.hpp"
#include <attmirror/descent/optimizer.hpp>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

const Fields<MirrorDescent>& fields_of(const MirrorDescent&);
const Fields<GradientDescent>& fields_of(const GradientDescent&);
const Fields<SteepestDescent>& fields_of(const SteepestDescent&);
const Fields<Adam>& fields_of(const Adam&);
const Fields<Lion>& fields_of(const Lion&);
const Fields<AdaGrad>& fields_of(const AdaGrad&);

struct MethodName {
  std::string_view name;    // in the command, sweeps, trainer and Python
  std::string_view title;   // what people call it
  bool in_trainer = false;  // whether `attmirror deep train` has it
  bool in_descent = true;   // whether `attmirror train` and sweeps have it
};

// The name of every optimizer of descent, sweep and deep, once.
inline constexpr std::array method_names{
    MethodName{"md", "mirror descent", true},
    MethodName{"gd", "gradient descent", true},
    MethodName{"steepest", "steepest descent"},
    MethodName{"sign", "sign descent", true},
    MethodName{"coordinate", "coordinate descent"},
    MethodName{"spectral", "spectral descent"},
    MethodName{"signum", "Signum", true},
    MethodName{"muon", "Muon"},
    MethodName{"adam", "Adam", true},
    MethodName{"lion", "Lion"},
    MethodName{"adagrad", "AdaGrad"},
    MethodName{"adamw", "AdamW", true, false},
    MethodName{"muon-adamw", "Muon for matrices, AdamW for the rest", true, false},
};

struct OptimizerMethod : MethodName {
  std::optional<Optimizer> preset{};  // its defaults; none: a method of `attmirror deep` alone
};

// Every optimizer of descent, sweep and deep, by its one name (method_names).
const std::vector<OptimizerMethod>& optimizer_methods();

// The method that was given, or `otherwise`. Throws Error (bad input) for a name that is none, or one of the
// trainer alone.
const OptimizerMethod& method_given(const Given& given, std::string_view otherwise = "md");

// The method that an optimizer is: `sign` for SteepestDescent in l_inf, `steepest` where it has no name of its own.
const OptimizerMethod& method_of(const Optimizer& optimizer);

// All fields that any optimizer has, each once, after `optimizer` itself: the options of the command, the settings of
// a sweep.
const std::vector<const FieldInfo*>& optimizer_fields();

// The default of each, with the methods that have another: "none; ema:0.9 for signum; ema:0.95 for muon".
std::string optimizer_default(const FieldInfo& field);

// Throws Error (bad input) for words that do not parse, for values out of range and for fields that the method does not
// take. `start` replaces the method's preset.
Optimizer make_optimizer(const Given& given);
Optimizer make_optimizer(const Given& given, const OptimizerMethod& method, Optimizer start);

// The method and every field that has an effect, defaults included: make_optimizer() gives an equal optimizer. Several
// names may fit one (sign descent is steepest descent in the norm inf).
Given given_of(const Optimizer& optimizer, const OptimizerMethod& method);

// The object "optimizer" of config.json: its kind, and all that decides the rule. parse_optimizer() throws Error (bad
// input) or a nlohmann exception when the object is not such a description.
Json optimizer_json(const Optimizer& optimizer);
Optimizer parse_optimizer(const Json& json);

}  // namespace attmirror

#include "descent/optimizer_config.hpp"

#include <attmirror/base/error.hpp>

#include <fmt/format.h>

namespace attmirror {

namespace {

// What all optimizers have; those that have one also write `normalized` and momentum.
template <class Options>
void put_step(Json& json, const Options& options) {
  json["lr"] = options.lr;
  if constexpr (requires { options.normalized; }) json["normalized"] = options.normalized;
  json["eps"] = to_string(options.eps);
  json["eps_value"] = options.eps_value;
  json["jacobian"] = to_string(jacobian_for(options));
  if constexpr (requires { options.momentum; }) json["momentum"] = to_string(options.momentum);
  json["schedule"] = to_string(options.schedule);
}

template <class Options>
void get_step(const Json& json, Options& options) {
  options.lr = json.at("lr");
  if constexpr (requires { options.normalized; }) options.normalized = json.at("normalized");
  options.eps = parse_eps_policy(json.at("eps").get<std::string>());
  options.eps_value = json.at("eps_value");
  // Left empty where it is what the eps policy says anyway.
  const Jacobian jacobian = parse_jacobian(json.at("jacobian").get<std::string>());
  if (jacobian != jacobian_for(options)) options.jacobian = jacobian;
  if constexpr (requires { options.momentum; })
    options.momentum = parse_momentum(json.value("momentum", std::string("none")));
  options.schedule = parse_schedule(json.value("schedule", std::string("constant")));
}

struct ToJson {
  Json operator()(const MirrorDescent& md) const {
    Json json;
    json["kind"] = kind_of(md);
    json["geometry"] = to_string(md.geometry);
    if (md.geometry == Geometry::hyperbolic_entropy)
      json["beta"] = md.beta;
    else
      json["p"] = md.p;
    put_step(json, md);
    if (md.geometry == Geometry::lp) json["powers"] = to_string(md.power_path);
    return json;
  }
  Json operator()(const GradientDescent& gd) const {
    Json json;
    json["kind"] = kind_of(gd);
    put_step(json, gd);
    return json;
  }
  Json operator()(const SteepestDescent& sd) const {
    Json json;
    json["kind"] = kind_of(sd);
    json["norm"] = to_string(sd.norm);
    put_step(json, sd);
    json["orthogonalization"] = to_string(sd.orthogonalization);
    return json;
  }
  Json operator()(const Adam& adam) const {
    Json json;
    json["kind"] = kind_of(adam);
    json["beta1"] = adam.beta1;
    json["beta2"] = adam.beta2;
    put_step(json, adam);
    return json;
  }
};

MirrorDescent parse_mirror_descent(const Json& json) {
  MirrorDescent md;
  md.geometry = parse_geometry(json.value("geometry", std::string(to_string(Geometry::lp))));
  if (md.geometry == Geometry::hyperbolic_entropy)
    md.beta = json.at("beta");
  else
    md.p = json.at("p");
  get_step(json, md);
  if (md.geometry == Geometry::lp) md.power_path = parse_power_path(json.at("powers").get<std::string>());
  return md;
}

SteepestDescent parse_steepest_descent(const Json& json) {
  SteepestDescent sd;
  sd.norm = parse_norm(json.at("norm").get<std::string>());
  get_step(json, sd);
  sd.orthogonalization = parse_orthogonalization(json.at("orthogonalization").get<std::string>());
  return sd;
}

Adam parse_adam(const Json& json) {
  Adam adam;
  adam.beta1 = json.at("beta1");
  adam.beta2 = json.at("beta2");
  get_step(json, adam);
  return adam;
}

}  // namespace

std::string_view kind_of(const Optimizer& optimizer) {
  struct Kind {
    std::string_view operator()(const MirrorDescent&) const { return "md"; }
    std::string_view operator()(const GradientDescent&) const { return "gd"; }
    std::string_view operator()(const SteepestDescent&) const { return "steepest"; }
    std::string_view operator()(const Adam&) const { return "adam"; }
  };
  return std::visit(Kind{}, optimizer);
}

Json optimizer_json(const Optimizer& optimizer) { return std::visit(ToJson{}, optimizer); }

Optimizer parse_optimizer(const Json& json) {
  const std::string kind = json.at("kind");
  if (kind == "md") return parse_mirror_descent(json);
  if (kind == "steepest") return parse_steepest_descent(json);
  if (kind == "adam") return parse_adam(json);
  if (kind != "gd")
    throw bad_input(fmt::format("optimizer is \"{}\": expected md, gd, steepest or adam", kind));
  GradientDescent gd;
  get_step(json, gd);
  return gd;
}

}  // namespace attmirror

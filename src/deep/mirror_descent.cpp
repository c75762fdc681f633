#include "deep/archive_fields.hpp"
#include <attmirror/deep/mirror_descent.hpp>

#include <memory>

namespace attmirror::deep {

namespace {

// The fields, once for reading and writing.
template <class Options, class Visit>
void visit_mirror_fields(Options& options, Visit visit) {
  visit("lr", options.lr());
  visit("p", options.p());
  visit("momentum", options.momentum());
  visit("nesterov", options.nesterov());
  visit("weight_decay", options.weight_decay());
  visit("normalized", options.normalized());
  visit("maximize", options.maximize());
  visit("gradient_scale", options.gradient_scale());
  visit("skip_nonfinite", options.skip_nonfinite());
  visit("dual_state", options.dual_state());
  visit("exact", options.exact());
  visit("fused", options.fused());
}

}  // namespace

void MirrorDescentOptions::serialize(torch::serialize::OutputArchive& archive) const {
  visit_mirror_fields(*this, [&](const char* name, const auto& value) { write_field(archive, name, value); });
}

void MirrorDescentOptions::serialize(torch::serialize::InputArchive& archive) {
  visit_mirror_fields(*this, [&](const char* name, auto& value) { read_option(archive, name, value); });
}

MirrorDescent::MirrorDescent(std::vector<torch::optim::OptimizerParamGroup> groups,
                             MirrorDescentOptions defaults)
    : FusedOptimizer(std::move(groups), std::make_unique<MirrorDescentOptions>(defaults)) {
  validate_groups();
}

MirrorDescent::MirrorDescent(std::vector<at::Tensor> parameters, MirrorDescentOptions defaults)
    : MirrorDescent({torch::optim::OptimizerParamGroup(std::move(parameters))}, std::move(defaults)) {}

GroupRule MirrorDescent::rule(const torch::optim::OptimizerOptions& options) const {
  const auto& own = options_as<MirrorDescentOptions>(options, "MirrorDescentOptions");
  GroupRule result;
  result.step.rule = StepRule::mirror;
  result.step.p = own.p();
  result.step.rate = own.lr();
  result.step.momentum = own.momentum();
  result.step.nesterov = own.nesterov();
  result.step.weight_decay = own.weight_decay();
  result.step.normalized = own.normalized();
  result.step.maximize = own.maximize();
  result.step.gradient_scale = own.gradient_scale();
  result.step.skip_nonfinite = own.skip_nonfinite();
  result.step.arithmetic = own.exact() ? StepArithmetic::exact : StepArithmetic::fast;
  result.masters = own.dual_state();
  result.fused = own.fused();
  return result;
}

}  // namespace attmirror::deep

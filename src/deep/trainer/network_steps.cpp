#include "deep/trainer/network_steps.hpp"

#include "deep/trainer/made_ahead.hpp"

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>

namespace attmirror::deep {

DeviceSums::DeviceSums(at::Device device, const EpochSums& start)
    : loss_(at::full({}, start.loss, at::TensorOptions(at::kDouble).device(device))),
      correct_(at::full({}, start.correct, at::TensorOptions(at::kLong).device(device))) {}

void DeviceSums::add(const at::Tensor& loss, const at::Tensor& correct_count) {
  loss_.add_(loss);
  correct_.add_(correct_count);
}

StepResult NetworkSteps::train_on(const PlannedBatch& planned, std::int64_t step, Network& network,
                                  OptimizerSet& optimizers, PauseWishes wishes, DeviceSums& sums) const {
  Computed computed;
  optimizers.forget_gradients();
  if (!planned.samples.empty()) {
    const Batch batch = sources_.train->on_device(planned);
    const at::Tensor logits = network.logits(batch), loss = summed_loss(logits, batch.labels);
    (config_.train.loss == "mean" ? loss / planned.all_samples : loss).backward();
    computed.loss = loss.detach();
    computed.hits = correct(logits.detach(), batch.labels).sum();
  }
  StepResult result;
  if (!processes_.alone()) result.wishes = add_up(network, computed, wishes, step);
  const at::NoGradGuard no_gradients;
  optimizers.step();
  sums.add(computed.loss, computed.hits);
  result.loss = computed.loss;
  return result;
}

// One buffer: all gradients, the loss, the hits, and who wishes to pause.
std::optional<PauseWishes> NetworkSteps::add_up(Network& network, Computed& computed, PauseWishes wishes,
                                                std::int64_t step) const {
  const std::vector<at::Tensor> parameters = network.parameters();
  const auto options = at::TensorOptions(at::kFloat).device(machine_.device);
  const auto number_or_0 = [&](const at::Tensor& number) {
    return number.defined() ? number.to(at::kFloat).view({1}) : at::zeros({1}, options);
  };
  std::vector<at::Tensor> parts;
  for (const at::Tensor& parameter : parameters)
    parts.push_back(parameter.grad().defined() ? parameter.grad().flatten()
                                               : at::zeros({parameter.numel()}, options));
  parts.push_back(number_or_0(computed.loss));
  parts.push_back(number_or_0(computed.hits));
  parts.push_back(at::full({1}, wishes.stop ? 1.0 : 0.0, options));
  parts.push_back(at::full({1}, wishes.late ? 1.0 : 0.0, options));
  at::Tensor all = at::cat(parts);
  processes_.add_up(all);
  std::int64_t next = 0;
  for (at::Tensor parameter : parameters) {
    parameter.mutable_grad() = all.narrow(0, next, parameter.numel()).view_as(parameter);
    next += parameter.numel();
  }
  computed.loss = all[next];
  computed.hits = all[next + 1].to(at::kLong);
  // A GPU is not waited for at every step; all processes look at the same ones.
  if (!machine_.device.is_cpu() && step % steps_between_looks != 0) return std::nullopt;
  return PauseWishes{.stop = all[next + 2].item<float>() > 0, .late = all[next + 3].item<float>() > 0};
}

std::pair<double, double> NetworkSteps::evaluate(Network& network) const {
  const at::NoGradGuard no_gradients;
  const std::int64_t rows = sources_.test->rows();
  const std::int64_t size = config_.train.batch * (machine_.device.is_cuda() ? 4 : 1);
  const std::int64_t batches = (rows + size - 1) / size;
  const ProcessPlace place = processes_.place();
  MadeAhead<PlannedBatch> ahead(0, batches, batches_ahead, [&](std::int64_t index) {
    std::vector<std::int64_t> samples;
    for (std::int64_t r = index * size; r < std::min(rows, (index + 1) * size); ++r) samples.push_back(r);
    PlannedBatch planned = sources_.test->plan(samples, std::nullopt, place.rank, place.size);
    sources_.test->prepare(planned);
    return planned;
  });
  DeviceSums sums(machine_.device, {});
  for (std::int64_t index = 0; index < batches; ++index) {
    const PlannedBatch planned = ahead.next();
    if (planned.samples.empty()) continue;
    const Batch batch = sources_.test->on_device(planned);
    const at::Tensor logits = network.logits(batch);
    sums.add(summed_loss(logits, batch.labels), correct(logits, batch.labels).sum());
  }
  at::Tensor both = at::empty({2}, at::kDouble);
  both[0] = sums.loss();
  both[1] = static_cast<double>(sums.correct());
  if (!processes_.alone()) {
    both = both.to(machine_.device);
    processes_.add_up(both);
    both = both.to(at::kCPU);
  }
  const auto count = static_cast<double>(rows);
  return {both[0].item<double>() / count, both[1].item<double>() / count};
}

}  // namespace attmirror::deep

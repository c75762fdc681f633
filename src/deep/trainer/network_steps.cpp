#include "deep/trainer/network_steps.hpp"

#include "deep/trainer/made_ahead.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace attmirror::deep {

namespace {

// Plain attention asks the host where samples begin, and the host would have to wait for the GPU: such a step cannot
// be recorded. What the fused kernels take is said in network_kernels.cpp.
bool attention_stays_on_gpu(const ModelConfig& model, const Machine& machine) {
  const std::int64_t width = model.kind == "encoder" ? model.width / model.heads : model.head_width;
  return machine.compute == at::kBFloat16 && model.attention != "plain" && width <= 256 && width % 8 == 0;
}

}  // namespace

DeviceSums::DeviceSums(at::Device device)
    : loss_(at::zeros({}, at::TensorOptions(at::kDouble).device(device))),
      correct_(at::zeros({}, at::TensorOptions(at::kLong).device(device))) {}

void DeviceSums::start(const EpochSums& from) {
  loss_.fill_(from.loss);
  correct_.fill_(from.correct);
}

void DeviceSums::add(const at::Tensor& loss, const at::Tensor& correct_count) {
  loss_.add_(loss);
  correct_.add_(correct_count);
}

NetworkSteps::NetworkSteps(const TrainConfig& config, const BatchSources& sources, const Machine& machine,
                           Processes& processes, std::function<void(const std::string&)> on_note)
    : config_(config),
      sources_(sources),
      machine_(machine),
      processes_(processes),
      on_note_(std::move(on_note)),
      evaluated_sums_(machine.device) {
  const bool must = config_.train.graphs == "on";
  if (must && !processes_.alone())
    throw bad_input("train.graphs is \"on\": steps of several processes are not recorded");
  if (must && !StepGraphs::available(machine_.device))
    throw bad_input(fmt::format("train.graphs is \"on\": it is for GPUs, and this training runs on {}",
                                machine_.device.str()));
  if (config_.train.graphs != "off" && processes_.alone() && StepGraphs::available(machine_.device))
    graphs_.emplace(machine_.device);
}

void NetworkSteps::begin_trial(OptimizerSet& optimizers) {
  trained_.shapes.clear();
  evaluated_.clear();
  if (!graphs_) return;
  graphs_->forget();
  optimizers.keep_rates_on(machine_.device);
  trained_.records = records_evaluations_ = attention_stays_on_gpu(config_.model, machine_);
  if (!trained_.records)
    stop_recording(trained_, "plain attention asks the host");
  else if (!optimizers.can_be_recorded())
    stop_recording(trained_, fmt::format("steps of {} ask the host", config_.optimizer.name));
}

void NetworkSteps::stop_recording(RecordedWork& recorded, const std::string& why) {
  recorded.records = false;
  if (config_.train.graphs == "on")
    throw environment_error(
        fmt::format("train.graphs is \"on\", and {} cannot be recorded: {}", recorded.what, why));
  if (on_note_)
    on_note_(fmt::format("{} are not recorded as CUDA graphs, which takes longer: {}", recorded.what, why));
  on_note_ = nullptr;
}

NetworkSteps::Computed NetworkSteps::computed_on(const PlannedBatch& sent, Network& network) const {
  const Batch batch = sources_.train->on_device(sent);
  const at::Tensor logits = network.logits(batch), loss = summed_loss(logits, batch.labels);
  (config_.train.loss == "mean" ? loss / sent.all_samples : loss).backward();
  return {loss.detach(), correct(logits.detach(), batch.labels).sum()};
}

bool NetworkSteps::repeats(RecordedWork& recorded, const PlannedBatch& planned, const Work& work) {
  const Shape shape{static_cast<std::int64_t>(planned.samples.size()), planned.batch.row_count};
  const bool is_new = !recorded.shapes.contains(shape);
  if (is_new && recorded.shapes.size() >= most_recorded_shapes) {
    graphs_->run([&] { work(planned.to(machine_.device)); });
    return false;
  }
  ShapeWork& own = recorded.shapes[shape];
  if (is_new)
    own.sent = planned.to(machine_.device);
  else
    own.sent.refill(planned);
  const std::uint64_t seed = own.sent.batch.dropout_seed;
  if (own.recorded) {
    graphs_->repeat(*own.recorded, seed);
    return true;
  }
  const auto on_sent = [&] { work(own.sent); };
  // The first work on a shape lets libraries load what they need, and optimizers make their states.
  if (recorded.records && !is_new) {
    try {
      own.recorded = graphs_->record(on_sent);
    } catch (const Error& error) {
      stop_recording(recorded, error.what());
    }
  }
  if (own.recorded)
    graphs_->repeat(*own.recorded, seed);
  else
    graphs_->run(on_sent);
  return false;
}

void NetworkSteps::train_recorded(const PlannedBatch& planned, Network& network, OptimizerSet& optimizers,
                                  DeviceSums& sums) {
  const bool repeated = repeats(trained_, planned, [&](const PlannedBatch& sent) {
    optimizers.forget_gradients();  // those of a recording that failed
    const Computed computed = computed_on(sent, network);
    const at::NoGradGuard no_gradients;
    optimizers.step();
    sums.add(computed.loss, computed.hits);
    optimizers.forget_gradients();
  });
  if (repeated) optimizers.count_repeated_step();
}

StepResult NetworkSteps::train_on(const PlannedBatch& planned, std::int64_t step, Network& network,
                                  OptimizerSet& optimizers, PauseWishes wishes, DeviceSums& sums) {
  Computed computed;
  optimizers.forget_gradients();
  if (graphs_) {
    train_recorded(planned, network, optimizers, sums);
    return {};
  }
  if (!planned.samples.empty()) computed = computed_on(planned.to(machine_.device), network);
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

std::pair<double, double> NetworkSteps::evaluate(Network& network, const BatchSource& source) {
  const at::NoGradGuard no_gradients;
  const std::int64_t rows = source.rows();
  const std::int64_t size = config_.train.batch * (machine_.device.is_cuda() ? 4 : 1);
  const std::int64_t batches = (rows + size - 1) / size;
  const ProcessPlace place = processes_.place();
  MadeAhead<PlannedBatch> ahead(0, batches, batches_ahead, [&](std::int64_t index) {
    std::vector<std::int64_t> samples;
    for (std::int64_t r = index * size; r < std::min(rows, (index + 1) * size); ++r) samples.push_back(r);
    PlannedBatch planned = source.plan(samples, std::nullopt, place.rank, place.size);
    source.prepare(planned);
    return planned;
  });
  DeviceSums& sums = evaluated_sums_;
  sums.start({});
  const auto work = [&](const PlannedBatch& sent) {
    const Batch batch = source.on_device(sent);
    const at::Tensor logits = network.logits(batch);
    sums.add(summed_loss(logits, batch.labels), correct(logits, batch.labels).sum());
  };
  RecordedWork& recorded =
      evaluated_.try_emplace(&source, RecordedWork{"evaluations", records_evaluations_}).first->second;
  for (std::int64_t index = 0; index < batches; ++index) {
    const PlannedBatch planned = ahead.next();
    if (planned.samples.empty()) continue;
    if (recorded.records)
      repeats(recorded, planned, work);
    else
      work(planned.to(machine_.device));
  }
  records_evaluations_ = recorded.records;
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

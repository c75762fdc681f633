// Work that is recorded as CUDA graphs and repeated does what work that is started kernel by kernel does: steps,
// evaluations, and what follows a recording that failed.
#include "deep/host_tensor.hpp"
#include "deep/step_graphs.hpp"
#include "deep/trainer/network_steps.hpp"
#include "network_checks.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/encoder_classifier.hpp>
#include <attmirror/deep/fused_adam.hpp>
#include <attmirror/deep/mirror_descent.hpp>
#include <attmirror/deep/packed_batch.hpp>
#include <attmirror/deep/steepest_descent.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace am = attmirror::deep;

namespace device_checks {

namespace {

// Steps that are recorded and repeated do what steps that are started kernel by kernel do, dropout of
// attention included.
void check_recorded_steps(const std::string& optimizer_name) {
  const attmirror::TokenSet set = texts({40, 7, 300, 9, 128, 33, 64, 250}, 500);
  const auto trained = [&](bool record) {
    am::EncoderOptions options{.vocabulary = 500, .width = 128, .blocks = 2, .heads = 2};
    auto network = std::make_shared<am::EncoderClassifier>(options, 5, at::kBFloat16);
    std::optional<am::StepGraphs> graphs;
    if (record) graphs.emplace(gpu);
    network->to(gpu);
    std::unique_ptr<torch::optim::Optimizer> optimizer;
    if (optimizer_name == "adam")
      optimizer = std::make_unique<am::FusedAdam>(network->parameters(), torch::optim::AdamOptions(1e-3));
    else if (optimizer_name == "adamw")
      optimizer = std::make_unique<am::FusedAdamW>(network->parameters(), torch::optim::AdamWOptions(1e-3));
    else if (optimizer_name == "sign")
      optimizer = std::make_unique<am::SteepestDescent>(
          network->parameters(), am::SteepestDescentOptions(1e-4).norm(std::string("linf")).momentum(0.9));
    else if (optimizer_name == "spectral")
      optimizer = std::make_unique<am::SteepestDescent>(
          network->parameters(), am::SteepestDescentOptions(1e-3).norm(std::string("spectral")));
    else
      optimizer = std::make_unique<am::MirrorDescent>(network->parameters(),
                                                      am::MirrorDescentOptions(1e-3).p(1.1).momentum(0.9));
    auto& recordable = dynamic_cast<am::RecordableOptimizer&>(*optimizer);
    at::Tensor rates = at::full({1}, 1e-3f, at::TensorOptions(at::kFloat).device(gpu));
    recordable.set_device_rates(rates);
    const std::vector<std::int64_t> samples{4, 0, 2, 1, 3, 5, 6, 7};
    at::Tensor losses = at::zeros({12}, at::TensorOptions(at::kFloat).device(gpu));
    am::Batch sent;
    std::optional<std::size_t> recorded;
    at::Tensor current = at::zeros({}, losses.options());
    for (std::int64_t step = 0; step < 12; ++step) {
      rates.fill_(1e-3 / (1 + step % 3));  // a schedule
      const am::Batch batch = am::pack(set, samples, am::DropoutPlace{1, step}, 0, 256);
      if (step == 0) {
        sent = batch.to(gpu);
      } else {
        sent.dropout_keys.copy_(batch.dropout_keys);
        sent.dropout_seed = batch.dropout_seed;
      }
      const auto work = [&] {
        const at::Tensor loss = am::summed_loss(network->logits(sent), sent.labels);
        loss.backward();
        optimizer->step();
        current.copy_(loss.detach());
        for (at::Tensor parameter : network->parameters()) parameter.mutable_grad() = at::Tensor();
      };
      if (!graphs) {
        work();
      } else if (step < 2) {
        graphs->run(work);
      } else {
        if (recorded)
          recordable.count_repeated_step();
        else
          recorded = graphs->record(work);
        graphs->repeat(*recorded, sent.dropout_seed);
      }
      losses[step].copy_(current);
    }
    std::vector<at::Tensor> result{losses.cpu()};
    for (const at::Tensor& parameter : network->parameters()) result.push_back(parameter.detach().cpu());
    return result;
  };
  const auto plain = trained(false), again = trained(false), recorded = trained(true);
  double noise = 0, worst = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    noise = std::max(noise, distance(again[i], plain[i]));
    worst = std::max(worst, distance(recorded[i], plain[i]));
  }
  char text[160];
  std::snprintf(text, sizeof text,
                "recorded steps, %s: losses and weights %.2e from plain ones, those differ by %.2e",
                optimizer_name.c_str(), worst, noise);
  report(text, worst <= 10 * noise + 1e-4);
}

// ---- the trainer's steps and evaluations

attmirror::TrainConfig small_config(const std::string& kind, const std::string& graphs) {
  attmirror::TrainConfig config;
  if (kind == "vit") {
    config.data.kind = "images";
    config.model = {.kind = "vit",
                    .width = 128,
                    .blocks = 2,
                    .heads = 2,
                    .hidden = 128,
                    .dropout = 0.1,
                    .image = 16,
                    .head_width = 64};
  } else {
    config.model.width = 128;
    config.model.blocks = config.model.heads = 2;
  }
  config.data.validation = 0.12;  // 8 rows, as in a batch of training
  config.train.batch = 8;
  config.train.device = "cuda";
  config.train.graphs = graphs;
  // So small that no weight moves: evaluations can be compared to the bit, whatever is trained between them.
  config.optimizer.name = "gd";
  config.optimizer.lr = 1e-30;
  return config;
}

am::TrainData small_data(const std::string& kind) {
  am::TrainData data;
  if (kind == "vit") {
    attmirror::ImageSet images;
    images.channels = 3;
    images.height = images.width = 16;
    images.classes = 10;
    for (std::int32_t i = 0; i < 70; ++i) images.labels.push_back(i % 10);
    for (std::size_t i = 0; i < 70 * 3 * 16 * 16; ++i)
      images.pixels.push_back(static_cast<std::uint8_t>(i * i * 31 % 251));
    data.train_images = data.test_images = images;
    return data;
  }
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < 70; ++i) lengths.push_back(5 + i * i * 37 % 300);
  data.train_texts = data.test_texts = texts(lengths, 500);
  return data;
}

// A source whose batches make the host wait for the GPU, which a recording forbids.
class AskingSource : public am::BatchSource {
 public:
  explicit AskingSource(std::unique_ptr<am::BatchSource> source) : source_(std::move(source)) {}
  std::int64_t rows() const override { return source_->rows(); }
  std::int64_t length(std::int64_t row) const override { return source_->length(row); }
  std::uint64_t fingerprint() const override { return source_->fingerprint(); }
  bool longest_first() const override { return source_->longest_first(); }
  void prepare(am::PlannedBatch& planned) const override { source_->prepare(planned); }
  am::Batch on_device(const am::PlannedBatch& sent) const override {
    const am::Batch batch = source_->on_device(sent);
    if (batch.labels.sum().item<std::int64_t>() < 0) throw attmirror::bad_input("a label below 0");
    return batch;
  }

 private:
  std::unique_ptr<am::BatchSource> source_;
};

enum class Asking { nobody, training, test };

struct Measured {
  std::vector<double> numbers;  // loss and accuracy of each evaluation
  double trained_loss = 0;      // of all steps
  std::vector<std::string> notes;
  std::size_t recordings = 0;
};

// Evaluations of test and validation rows, with steps of training between them and weights that change after the third.
Measured measured(const std::string& kind, const std::string& graphs, bool train, Asking asking) {
  const attmirror::TrainConfig config = small_config(kind, graphs);
  const am::TrainData data = small_data(kind);
  const am::Machine machine = am::chosen_machine(config.train, 0);
  am::BatchSources sources = am::batch_sources(config, data, machine.device);
  if (asking == Asking::training) sources.train = std::make_unique<AskingSource>(std::move(sources.train));
  if (asking == Asking::test) sources.test = std::make_unique<AskingSource>(std::move(sources.test));
  const auto processes = am::join_processes({}, machine.device, {});
  Measured result;
  am::NetworkSteps steps(config, sources, machine, *processes,
                         [&](const std::string& note) { result.notes.push_back(note); });
  const auto network = am::make_network(config, data, 1, machine);
  am::OptimizerSet optimizers(config.optimizer, *network);
  am::DeviceSums sums(machine.device);
  sums.start({});
  steps.begin_trial(optimizers);
  for (std::int64_t round = 0; round < 5; ++round) {
    for (std::int64_t step = 0; train && step < 4; ++step) {
      std::vector<std::int64_t> samples;
      for (std::int64_t i = 0; i < config.train.batch; ++i) samples.push_back(i);
      am::PlannedBatch planned = sources.train->plan(samples, am::DropoutPlace{3, 4 * round + step}, 0, 1);
      sources.train->prepare(planned);
      steps.train_on(planned, step, *network, optimizers, {}, sums);
    }
    for (const am::BatchSource* source : {sources.test.get(), sources.validation.get()}) {
      const auto [loss, accuracy] = steps.evaluate(*network, *source);
      result.numbers.insert(result.numbers.end(), {loss, accuracy});
    }
    if (round != 2) continue;
    const at::NoGradGuard no_gradients;
    // Not by 0.75: such products end halfway between two floats so often that a bias of 1e-30 shows.
    for (at::Tensor& parameter : network->parameters()) parameter.mul_(0.7);
  }
  result.trained_loss = sums.loss();
  result.recordings = steps.recordings();
  return result;
}

void check_evaluations(const std::string& kind) {
  const Measured plain = measured(kind, "off", false, Asking::nobody),
                 recorded = measured(kind, "on", false, Asking::nobody),
                 between = measured(kind, "on", true, Asking::nobody);
  const std::size_t last = plain.numbers.size() - 4;
  report(kind + ": other weights have another loss", plain.numbers[0] != plain.numbers[last]);
  report(kind + ": nothing is recorded where graphs are off", plain.recordings == 0);
  // 70 test rows are two batches of 32 and one of 6, 8 validation rows are one batch.
  report(kind + ": evaluations are recorded, " + std::to_string(recorded.recordings) + " shapes",
         recorded.recordings >= 3);
  report(kind + ": recorded evaluations have the same bits", recorded.numbers == plain.numbers);
  report(kind + ": and with recorded steps between them", between.numbers == plain.numbers);
  report(kind + ": steps are recorded apart from evaluations", between.recordings > recorded.recordings);
}

void check_refused_recordings(const std::string& kind) {
  const Measured plain = measured(kind, "off", true, Asking::nobody),
                 steps = measured(kind, "auto", true, Asking::training),
                 evaluations = measured(kind, "auto", true, Asking::test);
  const auto same_loss = [&](const Measured& other) {
    return std::abs(other.trained_loss - plain.trained_loss) <= 1e-3 * std::abs(plain.trained_loss);
  };
  report(kind + ": steps that cannot be recorded are taken all the same, with one note",
         same_loss(steps) && steps.numbers == plain.numbers && steps.notes.size() == 1);
  report(kind + ": so are evaluations",
         same_loss(evaluations) && evaluations.numbers == plain.numbers && evaluations.notes.size() == 1);
  if (!steps.notes.empty()) std::printf("       %s\n", steps.notes.front().c_str());
  bool refused = false;
  try {
    measured(kind, "on", true, Asking::training);
  } catch (const attmirror::Error& error) {
    refused = error.kind() == attmirror::ErrorKind::environment;
  }
  report(kind + ": where graphs must be on, that is an error", refused);
}

// What was recorded before a failure can be repeated, random numbers included, and other work can be run and recorded.
void check_failed_recording() {
  am::StepGraphs graphs(gpu);
  const at::Tensor x = at::arange(1000, at::TensorOptions(at::kFloat).device(gpu));
  at::Tensor y = at::zeros_like(x), drawn = at::zeros_like(x);
  const auto draw = [&] { drawn.copy_(at::dropout(at::ones_like(x), 0.5, /*train=*/true)); };
  graphs.run(draw);
  const std::size_t first = graphs.record(draw);
  const auto repeated = [&](std::size_t recorded, std::uint64_t seed) {
    graphs.repeat(recorded, seed);
    return drawn.cpu();
  };
  const at::Tensor before = repeated(first, 7);
  report("a recording draws by its seed",
         !at::equal(before, repeated(first, 8)) && at::equal(before, repeated(first, 7)));
  for (int attempt = 1; attempt <= 2; ++attempt) {
    const std::string name = "after failed recording " + std::to_string(attempt);
    bool refused = false;
    try {
      graphs.record([&] {
        draw();
        y.copy_(x * static_cast<double>(x.sum().item<float>()));
      });
    } catch (const attmirror::Error& error) {
      refused = error.kind() == attmirror::ErrorKind::environment;
    }
    report("a recording that asks the host is refused", refused);
    graphs.run([&] { y.copy_(x * 3); });
    report(name + ", work is run", at::equal(y.cpu(), x.cpu() * 3));
    const at::Tensor sent = am::host_tensor(1000, at::kFloat);
    sent.fill_(2);
    report(name + ", page-locked memory is served", at::equal((x * sent.to(gpu)).cpu(), x.cpu() * 2));
    const std::size_t next = graphs.record([&] { y.copy_(x * (4 + attempt)); });
    graphs.repeat(next, 0);
    report(name + ", other work is recorded", at::equal(y.cpu(), x.cpu() * (4 + attempt)));
    report(name + ", earlier work is repeated", at::equal(before, repeated(first, 7)));
    report(name + ", and draws by its seed", !at::equal(before, repeated(first, 8)));
  }
  report("failed recordings are not counted", graphs.size() == 3);
  graphs.forget();
  const std::size_t again = graphs.record(draw);
  report("the same work, recorded once more, draws the same", at::equal(before, repeated(again, 7)));
}

}  // namespace

void check_graphs() {
  for (const char* name : {"md", "sign", "spectral", "adam", "adamw"}) check_recorded_steps(name);
  for (const char* kind : {"encoder", "vit"}) {
    check_evaluations(kind);
    check_refused_recordings(kind);
  }
  check_failed_recording();
}

}  // namespace device_checks

#include "deep/trainer/batch_source.hpp"

#include <attmirror/base/error.hpp>
#include <attmirror/base/fingerprint.hpp>
#include <attmirror/deep/packed_batch.hpp>

#include <algorithm>
#include <cmath>
#include <functional>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace attmirror::deep {

namespace {

// packed_batch.hpp says why. Larger batches vary by more rows; in larger multiples there are not more of them.
constexpr std::int64_t gpu_row_multiple = 256, gpu_multiples = 128;

class TextSource : public BatchSource {
 public:
  TextSource(const TokenSet& tokens, ChosenRows chosen, at::Device device)
      : tokens_(tokens), chosen_(std::move(chosen)), device_(device) {
    if (!device_.is_cuda()) return;
    for (std::int64_t r = 0; r < rows(); ++r) {
      mean_length_ += length(r);
      longest_ = std::max(longest_, length(r));
    }
    if (rows() > 0) mean_length_ /= rows();
  }

  std::int64_t rows() const override { return chosen_.count(); }
  std::int64_t length(std::int64_t row) const override {
    return static_cast<std::int64_t>(tokens_.row(chosen_[row]).size());
  }
  std::uint64_t fingerprint() const override {
    Fingerprint print;
    print.add(static_cast<std::ptrdiff_t>(rows()));
    for (std::int64_t r = 0; r < rows(); ++r) {
      print.add(std::ptrdiff_t{tokens_.labels[static_cast<std::size_t>(chosen_[r])]});
      for (const std::int32_t id : tokens_.row(chosen_[r])) print.add(std::ptrdiff_t{id});
    }
    return print.value();
  }

  bool longest_first() const override { return device_.is_cuda(); }
  void prepare(PlannedBatch& planned) const override {
    if (planned.samples.empty()) return;
    const std::int64_t multiple = row_multiple(planned.all_samples);
    planned.batch =
        pack(tokens_, chosen_.of(planned.samples), planned.random, planned.first_sample, multiple);
    planned.batch.all_samples = planned.all_samples;
    // The same for all batches of so many samples: what is recorded has it in it.
    if (device_.is_cuda()) planned.batch.longest = std::max(longest_, multiple);
  }
  Batch on_device(const PlannedBatch& sent) const override { return sent.batch; }

 private:
  std::int64_t row_multiple(std::int64_t samples) const {
    if (!device_.is_cuda()) return 1;
    std::int64_t multiple = gpu_row_multiple;
    while (mean_length_ * samples > multiple * gpu_multiples) multiple *= 2;
    return multiple;
  }

  const TokenSet& tokens_;
  ChosenRows chosen_;
  at::Device device_;
  std::int64_t mean_length_ = 0, longest_ = 0;
};

// The tensors of a batch that travel to the device.
std::vector<at::Tensor*> travelers(PlannedBatch& planned) {
  std::vector<at::Tensor*> tensors;
  for (at::Tensor* tensor :
       {&planned.batch.tokens, &planned.batch.positions, &planned.batch.offsets, &planned.batch.labels,
        &planned.batch.dropout_keys, &planned.draws.numbers, &planned.draws.dropout_keys})
    if (tensor->defined()) tensors.push_back(tensor);
  return tensors;
}

}  // namespace

PlannedBatch PlannedBatch::to(at::Device device) const {
  PlannedBatch moved = *this;
  if (device.is_cpu()) return moved;
  for (at::Tensor* tensor : travelers(moved))
    *tensor = tensor->to(device, tensor->scalar_type(), /*non_blocking=*/true);
  return moved;
}

void PlannedBatch::refill(const PlannedBatch& from) {
  PlannedBatch source = from;
  const auto here = travelers(*this), there = travelers(source);
  for (std::size_t i = 0; i < here.size(); ++i) here[i]->copy_(*there[i], /*non_blocking=*/true);
  for (std::size_t i = 0; i < here.size(); ++i) *there[i] = *here[i];
  *this = std::move(source);
}

PlannedBatch BatchSource::plan(std::span<const std::int64_t> rows, std::optional<DropoutPlace> random,
                               std::int64_t rank, std::int64_t size) const {
  std::vector<std::int64_t> ordered(rows.begin(), rows.end()), lengths;
  if (longest_first())
    std::ranges::stable_sort(ordered, std::greater(), [&](std::int64_t row) { return length(row); });
  lengths.reserve(rows.size());
  PlannedBatch planned;
  for (const std::int64_t row : ordered) {
    lengths.push_back(length(row));
    planned.all_tokens += lengths.back();
  }
  const BatchPart part = batch_part(lengths, rank, size);
  planned.samples.assign(ordered.begin() + static_cast<std::ptrdiff_t>(part.begin),
                         ordered.begin() + static_cast<std::ptrdiff_t>(part.end));
  planned.first_sample = static_cast<std::int64_t>(part.begin);
  planned.all_samples = static_cast<std::int64_t>(rows.size());
  planned.random = random;
  return planned;
}

// Row i goes where i share passes another whole number.
ChosenRows ChosenRows::held_out(double share, std::int64_t block) {
  ChosenRows out(0, 0);
  std::vector<std::int64_t> kept;
  const auto size = static_cast<std::size_t>(block);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const auto passed = [&](std::size_t n) { return std::floor(static_cast<double>(n) * share); };
    (passed(i / size + 1) > passed(i / size) ? out.rows_ : kept).push_back(rows_[i]);
  }
  rows_ = std::move(kept);
  return out;
}

BatchSources batch_sources(const TrainConfig& config, const TrainData& data, at::Device device) {
  BatchSources sources;
  const bool are_texts = config.data.kind == "text";
  if (are_texts && (!data.train_texts || !data.test_texts))
    throw bad_input("data.kind is \"text\", and the data hold no texts");
  if (!are_texts && (!data.train_images || !data.test_images))
    throw bad_input("data.kind is \"images\", and the data hold no images");
  ChosenRows train(are_texts ? data.train_texts->rows() : data.train_images->count(), config.data.limit);
  const ChosenRows validation = train.held_out(config.data.validation, config.data.validation_block);
  const ChosenRows test(are_texts ? data.test_texts->rows() : data.test_images->count(),
                        config.data.test_limit);
  if (are_texts) {
    const auto source = [&](const TokenSet& set, const ChosenRows& rows) {
      return std::make_unique<TextSource>(set, rows, device);
    };
    sources.train = source(*data.train_texts, train);
    sources.test = source(*data.test_texts, test);
    if (validation.count() > 0) sources.validation = source(*data.train_texts, validation);
  } else {
    const auto send = [&](const ImageSet& set) {
      return std::make_shared<const DeviceImages>(device_images(set, device));
    };
    const auto there = send(*data.train_images);
    sources.train = image_source(config, *data.train_images, there, train);
    sources.test = image_source(config, *data.test_images, send(*data.test_images), test);
    if (validation.count() > 0)
      sources.validation = image_source(config, *data.train_images, there, validation);
  }
  if (sources.train->rows() == 0) throw bad_input("data.train holds no rows");
  if (sources.test->rows() == 0) throw bad_input("data.test holds no rows");
  if (config.data.validation > 0 && !sources.validation)
    throw bad_input(fmt::format(
        "data.validation is {}: of {} rows{} it holds out none", config.data.validation, train.count(),
        config.data.validation_block > 1 ? fmt::format(", in blocks of {},", config.data.validation_block)
                                         : ""));
  return sources;
}

}  // namespace attmirror::deep

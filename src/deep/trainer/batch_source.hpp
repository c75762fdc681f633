// Batches of a data set, in two halves: what a thread can do ahead, and what the device does when its turn
// comes. Internal.
#pragma once

#include "deep/image_draws.hpp"
#include "deep/trainer/data_order.hpp"
#include <attmirror/deep/network.hpp>
#include <attmirror/deep/train_config.hpp>
#include <attmirror/deep/trainer.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace attmirror::deep {

// A batch on its way to the device.
struct PlannedBatch {
  std::vector<std::int64_t> samples;  // of this process
  std::int64_t first_sample = 0;      // its place in the batch that all processes share
  std::int64_t all_samples = 0;       // of that batch
  std::int64_t all_tokens = 0;
  std::optional<DropoutPlace> random = {};  // of dropout and augmentation; none for evaluation
  // What travels to the device: texts that are packed already, or what is drawn for images.
  Batch batch = {};
  ImageDraws draws = {};

  // The same on the device. refill() copies another of the same shape into the memory of this one.
  PlannedBatch to(at::Device device) const;
  void refill(const PlannedBatch& from);
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual std::int64_t rows() const = 0;
  virtual std::int64_t length(std::int64_t row) const = 0;  // tokens
  virtual std::uint64_t fingerprint() const = 0;            // of the rows and their labels
  // Whether the samples of a batch are sorted: a GPU's attention then ends with short work, and waits for little.
  virtual bool longest_first() const { return false; }
  virtual void prepare(PlannedBatch& planned) const = 0;        // on any thread
  virtual Batch on_device(const PlannedBatch& sent) const = 0;  // of one that is there

  // The part of process `rank` of `size` of a batch of these rows.
  PlannedBatch plan(std::span<const std::int64_t> rows, std::optional<DropoutPlace> random, std::int64_t rank,
                    std::int64_t size) const;
};

// Rows of a set that is used in part.
class ChosenRows {
 public:
  ChosenRows(std::int64_t rows, std::int64_t limit) : rows_(limited_rows(rows, limit)) {}
  // Takes a share of the rows out, in evenly spaced blocks of neighbors, and returns it.
  ChosenRows held_out(double share, std::int64_t block);
  std::int64_t count() const { return static_cast<std::int64_t>(rows_.size()); }
  std::int64_t operator[](std::int64_t i) const { return rows_[static_cast<std::size_t>(i)]; }
  std::vector<std::int64_t> of(std::span<const std::int64_t> samples) const {
    std::vector<std::int64_t> chosen;
    chosen.reserve(samples.size());
    for (const std::int64_t sample : samples) chosen.push_back((*this)[sample]);
    return chosen;
  }

 private:
  std::vector<std::int64_t> rows_;
};

// `there` are the images on their device, which sources of the same set share.
std::unique_ptr<BatchSource> image_source(const TrainConfig& config, const ImageSet& images,
                                          std::shared_ptr<const DeviceImages> there, ChosenRows chosen);

// Sources view the data, which must outlive them.
struct BatchSources {
  std::unique_ptr<BatchSource> train, test;
  std::unique_ptr<BatchSource> validation =
      nullptr;  // rows of the training set, where data.validation says so
};
BatchSources batch_sources(const TrainConfig& config, const TrainData& data, at::Device device);

}  // namespace attmirror::deep

#include "deep/trainer/batch_source.hpp"
#include <attmirror/base/fingerprint.hpp>

namespace attmirror::deep {

namespace {

class ImageSource : public BatchSource {
 public:
  ImageSource(const TrainConfig& config, const ImageSet& images, std::shared_ptr<const DeviceImages> there,
              ChosenRows chosen)
      : images_(images), chosen_(std::move(chosen)), there_(std::move(there)) {
    options_.padding = config.data.padding;
    options_.mirror = config.data.mirror;
    options_.size = config.model.image;
    options_.validate();
    const std::int64_t side = config.model.image / config.model.patch;
    tokens_ = side * side + 1;
    normalizer_ = image_normalizer(options_, there_->pixels.device());
  }

  std::int64_t rows() const override { return chosen_.count(); }
  std::int64_t length(std::int64_t) const override { return tokens_; }
  std::uint64_t fingerprint() const override {
    Fingerprint print;
    print.add(static_cast<std::ptrdiff_t>(rows()));
    const auto bytes = static_cast<std::size_t>(images_.image_bytes());
    for (std::int64_t r = 0; r < rows(); ++r) {
      const auto image = static_cast<std::size_t>(chosen_[r]);
      print.add(std::ptrdiff_t{images_.labels[image]});
      for (std::size_t i = 0; i < bytes; ++i)
        print.add(static_cast<std::uint64_t>(images_.pixels[image * bytes + i]));
    }
    return print.value();
  }

  void prepare(PlannedBatch& planned) const override {
    if (planned.samples.empty()) return;
    planned.draws =
        draw_images(*there_, chosen_.of(planned.samples), options_, tokens_, planned.random, planned.random);
  }
  Batch on_device(const PlannedBatch& sent) const override {
    return batch_of_draws(*there_, sent.draws, normalizer_, options_, tokens_, sent.first_sample);
  }

 private:
  const ImageSet& images_;
  ChosenRows chosen_;
  std::shared_ptr<const DeviceImages> there_;
  at::Tensor normalizer_;
  Augmentation options_;
  std::int64_t tokens_ = 0;
};

}  // namespace

std::unique_ptr<BatchSource> image_source(const TrainConfig& config, const ImageSet& images,
                                          std::shared_ptr<const DeviceImages> there, ChosenRows chosen) {
  return std::make_unique<ImageSource>(config, images, std::move(there), std::move(chosen));
}

}  // namespace attmirror::deep

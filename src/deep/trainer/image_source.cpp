#include "deep/trainer/batch_source.hpp"
#include <attmirror/base/fingerprint.hpp>
#include <attmirror/deep/image_batch.hpp>

namespace attmirror::deep {

namespace {

class ImageSource : public BatchSource {
 public:
  ImageSource(const TrainConfig& config, const ImageSet& images, std::int64_t limit, at::Device device)
      : images_(images), chosen_(images.count(), limit), on_device_(device_images(images, device)) {
    options_.padding = config.data.padding;
    options_.mirror = config.data.mirror;
    options_.size = config.model.image;
    options_.validate();
    const std::int64_t side = config.model.image / config.model.patch;
    tokens_ = side * side + 1;
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

  void prepare(PlannedBatch&) const override {}
  Batch on_device(const PlannedBatch& planned) const override {
    return image_batch(on_device_, chosen_.of(planned.samples), options_, tokens_, planned.random,
                       planned.random, planned.first_sample);
  }

 private:
  const ImageSet& images_;
  ChosenRows chosen_;
  DeviceImages on_device_;
  Augmentation options_;
  std::int64_t tokens_ = 0;
};

}  // namespace

std::unique_ptr<BatchSource> image_source(const TrainConfig& config, const ImageSet& images,
                                          std::int64_t limit, at::Device device) {
  return std::make_unique<ImageSource>(config, images, limit, device);
}

}  // namespace attmirror::deep

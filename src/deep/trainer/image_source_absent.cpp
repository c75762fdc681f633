#include "deep/trainer/batch_source.hpp"
#include <attmirror/base/error.hpp>

namespace attmirror::torch {

std::unique_ptr<BatchSource> image_source(const TrainConfig&, const ImageSet&, std::int64_t, ::at::Device) {
  throw bad_input("data.kind is \"images\": this build has no batches of images");
}

}  // namespace attmirror::torch

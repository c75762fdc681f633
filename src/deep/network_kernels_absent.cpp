// For builds without CUDA's compiler.
#include "deep/network_kernels.hpp"
#include "deep/step_graphs.hpp"
#include <attmirror/base/error.hpp>

namespace attmirror::deep {

namespace {
Error no_gpu_kernels() {
  return bad_input("this build has no kernels for GPUs: build it where nvcc is found");
}
}  // namespace

at::Tensor masked_on_gpu(const at::Tensor&, const at::Tensor&, std::uint32_t, double) {
  throw no_gpu_kernels();
}
bool has_residual_norm_on_gpu(const at::Tensor&) { return false; }
NormedRows residual_norm_on_gpu(const at::Tensor&, const Branch&, const Affine&, const Dropout&, double,
                                const NormOutputs&) {
  throw no_gpu_kernels();
}
bool has_embedding_on_gpu(const at::Tensor&, const at::Tensor&, at::ScalarType) { return false; }
at::Tensor embedded_on_gpu(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                           at::ScalarType) {
  throw no_gpu_kernels();
}
bool has_patches_on_gpu(const at::Tensor&, std::int64_t, at::ScalarType) { return false; }
at::Tensor patches_on_gpu(const Branch&, const at::Tensor&, const at::Tensor&, const Dropout&) {
  throw no_gpu_kernels();
}
std::vector<at::Tensor> brief_on_gpu(const std::vector<at::Tensor>& weights) { return weights; }
bool has_gelu_on_gpu(const at::Tensor&, std::int64_t) { return false; }
bool has_plain_gelu_on_gpu(const at::Tensor&) { return false; }
at::Tensor plain_gelu_on_gpu(const at::Tensor&) { throw no_gpu_kernels(); }
at::Tensor gelu_on_gpu(const at::Tensor&, const at::Tensor&, const Dropout&) { throw no_gpu_kernels(); }

bool has_fused_attention(const at::Tensor&) { return false; }
at::Tensor fused_attention(const at::Tensor&, const at::Tensor&, const at::Tensor&, const PackedRows&,
                           const PackedRows&, const AttentionDropout&) {
  throw no_gpu_kernels();
}

struct StepGraphs::State {};
bool StepGraphs::available(at::Device) { return false; }
StepGraphs::StepGraphs(at::Device) { throw no_gpu_kernels(); }
StepGraphs::~StepGraphs() = default;
std::size_t StepGraphs::size() const { return 0; }
void StepGraphs::forget() {}
void StepGraphs::run(const std::function<void()>& work) { work(); }
std::size_t StepGraphs::record(const std::function<void()>&) { throw no_gpu_kernels(); }
void StepGraphs::repeat(std::size_t, std::uint64_t) {}

}  // namespace attmirror::deep

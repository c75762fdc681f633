// Device memory for the programs that check and time kernels on a GPU. No GoogleTest: they also run on machines that
// have CUDA and a compiler only.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>

#include <cuda_runtime_api.h>

namespace attmirror::test {

inline void require_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "CUDA could not %s: %s\n", what, cudaGetErrorString(status));
  std::exit(3);
}

// The programs end with this code where there is no GPU, which ctest takes for "skipped".
inline constexpr int no_gpu = 77;
inline bool has_gpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t size) : size_(size) {
    require_cuda(cudaMalloc(&data_, size * sizeof(T) + 1), "allocate memory");
  }
  explicit DeviceArray(std::span<const T> values) : DeviceArray(values.size()) { copy_from(values); }
  DeviceArray(DeviceArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  DeviceArray& operator=(DeviceArray&&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  T* data() const { return static_cast<T*>(data_); }
  std::size_t size() const { return size_; }
  void copy_from(std::span<const T> values) {
    require_cuda(cudaMemcpy(data_, values.data(), values.size_bytes(), cudaMemcpyHostToDevice),
                 "copy to the GPU");
  }
  void copy_to(std::span<T> values) const {
    require_cuda(cudaMemcpy(values.data(), data_, values.size_bytes(), cudaMemcpyDeviceToHost),
                 "copy from the GPU");
  }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace attmirror::test

// From the structs of attmirror_step.h to those of the library, and from exceptions to sentences.
#pragma once

#include "attmirror_step.h"
#include <attmirror/base/error.hpp>
#include <attmirror/mirror/fused_step.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string_view>

namespace attmirror::bridge {

// A tensor is handed on as it is.
static_assert(sizeof(attmirror_tensor) == sizeof(StepTensor) &&
              offsetof(attmirror_tensor, weights) == offsetof(StepTensor, weights) &&
              offsetof(attmirror_tensor, gradient) == offsetof(StepTensor, gradient) &&
              offsetof(attmirror_tensor, master) == offsetof(StepTensor, master) &&
              offsetof(attmirror_tensor, momentum) == offsetof(StepTensor, momentum) &&
              offsetof(attmirror_tensor, size) == offsetof(StepTensor, size));

inline std::span<const StepTensor> tensors_of(const attmirror_tensor* tensors, std::int64_t count) {
  return {reinterpret_cast<const StepTensor*>(tensors), static_cast<std::size_t>(count)};
}

// Throws Error (bad input) for a number that is none of the elements'.
inline StepElement element_of(const attmirror_options& options) {
  if (options.element < 0 || options.element > 3)
    throw bad_input("element is " + std::to_string(options.element) + ": expected a number from 0 to 3");
  return static_cast<StepElement>(options.element);
}

inline StepOptions options_of(const attmirror_options& options) {
  StepOptions result;
  result.rule = static_cast<StepRule>(options.rule);  // looked at by validate()
  result.p = options.p;
  result.rate = options.rate;
  result.momentum = options.momentum;
  result.nesterov = options.nesterov != 0;
  result.weight_decay = options.weight_decay;
  result.normalized = options.normalized != 0;
  result.gradient_scale = options.gradient_scale;
  result.skip_nonfinite = options.skip_nonfinite != 0;
  result.maximize = options.maximize != 0;
  result.arithmetic = options.exact != 0 ? StepArithmetic::exact : StepArithmetic::fast;
  return result;
}

inline void tell(std::string_view text, char* message) {
  const std::size_t size = std::min<std::size_t>(text.size(), ATTMIRROR_MESSAGE_SIZE - 1);
  std::memcpy(message, text.data(), size);
  message[size] = 0;
}

template <class F>
std::int32_t guarded(char* message, F&& f) noexcept {
  try {
    f();
    return 0;
  } catch (const Error& error) {
    tell(error.what(), message);
    return error.kind() == ErrorKind::bad_input ? 2 : 3;
  } catch (const std::bad_alloc&) {
    tell("there is not enough memory for a step", message);
  } catch (const std::exception& error) {
    tell(error.what(), message);
  } catch (...) {
    tell("an unknown error", message);
  }
  return 3;
}

}  // namespace attmirror::bridge

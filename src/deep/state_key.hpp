// Under what key an optimizer of LibTorch keeps the state of a parameter. Internal.
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include <c10/util/StringUtil.h>
#include <torch/optim/optimizer.h>

namespace attmirror::deep {

// LibTorch 1.13 keys states by the address as text, 2.x by the address.
using StateMap = std::remove_cvref_t<decltype(std::declval<torch::optim::Optimizer&>().state())>;
using StateKey = std::remove_const_t<StateMap::value_type::first_type>;

template <class Key = StateKey>
Key state_key(const at::Tensor& parameter) {
  if constexpr (std::is_same_v<Key, std::string>)
    return c10::str(parameter.unsafeGetTensorImpl());
  else
    return parameter.unsafeGetTensorImpl();
}

}  // namespace attmirror::deep

// Fields of options and states in LibTorch's archives, by name. Internal.
#pragma once

#include <attmirror/base/error.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

#include <c10/util/StringUtil.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

namespace attmirror::deep {

template <class T>
void write_field(torch::serialize::OutputArchive& archive, const std::string& name, const T& value) {
  if constexpr (std::is_enum_v<T>)
    archive.write(name, c10::IValue(static_cast<std::int64_t>(value)));
  else if constexpr (std::is_same_v<T, at::Tensor>)
    archive.write(name, value, /*is_buffer=*/true);
  else
    archive.write(name, c10::IValue(value));
}

template <class T>
T read_field(torch::serialize::InputArchive& archive, const std::string& name) {
  c10::IValue value;
  if (!archive.try_read(name, value)) throw bad_input(c10::str("the archive has no field ", name));
  const auto expect = [&](bool right, const char* what) {
    if (!right) throw bad_input(c10::str("the archive's field ", name, " is no ", what));
  };
  if constexpr (std::is_same_v<T, bool>) {
    expect(value.isBool(), "truth value");
    return value.toBool();
  } else if constexpr (std::is_same_v<T, double>) {
    expect(value.isDouble(), "number");
    return value.toDouble();
  } else if constexpr (std::is_same_v<T, std::string>) {
    expect(value.isString(), "text");
    return value.toStringRef();
  } else {
    expect(value.isInt(), "whole number");
    return static_cast<T>(value.toInt());
  }
}

// An option into `value`. Archives that are older than `maximize` are of optimizers that minimized.
template <class T>
void read_option(torch::serialize::InputArchive& archive, const std::string& name, T& value) {
  c10::IValue found;
  const bool is_missing = name == "maximize" && !archive.try_read(name, found);
  value = is_missing ? T() : read_field<T>(archive, name);
}

// The options of a group as its optimizer's own class; throws Error (bad input) for another's.
template <class Options>
const Options& options_as(const torch::optim::OptimizerOptions& options, const char* name) {
  const auto* own = dynamic_cast<const Options*>(&options);
  if (own == nullptr) throw bad_input(c10::str("the options are another optimizer's: expected ", name));
  return *own;
}

}  // namespace attmirror::deep

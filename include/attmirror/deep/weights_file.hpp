// Weights of networks as safetensors files, by the names of their parameters: what other programs read.
#pragma once

#include <attmirror/data/safetensors.hpp>
#include <attmirror/deep/network.hpp>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace attmirror::torch {

// A tensor as an array of the data room and back: same numbers, same type (float64, float32, float16, bfloat16, integers, bytes). Arrays are copies on the
// CPU; tensors are new.
Array to_array(const ::at::Tensor& tensor);
::at::Tensor to_tensor(const Array& array);

// The parameters by name; metadata says which network it is (its kind and options), so that load_network() can build it.
Safetensors weights_of(const Network& network);
void save_weights(const std::filesystem::path& path, const Network& network);

// Copies into the network's parameters. Throws Error (bad input), naming the parameter, where one is missing, not asked for, or of another
// shape or type; then nothing is changed.
void load_weights(Network& network, const Safetensors& weights, const std::string& name);

// Builds the network that a file of save_weights() holds.
std::shared_ptr<Network> load_network(const std::filesystem::path& path,
                                      ::at::ScalarType compute = ::at::kFloat);

}  // namespace attmirror::torch

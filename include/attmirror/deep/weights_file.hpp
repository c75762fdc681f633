// Weights of networks as safetensors files, by the names of their parameters: what other programs read.
//
// Metadata says which network it is: "network.format" (1), "network.kind" ("encoder", "vit") and every option as
// "network.NAME". Files of other programs lack it, and files of later versions of this one may have more of it: both
// are refused rather than guessed at. Metadata without "network." in front are left alone, for those who have more
// to say.
#pragma once

#include <attmirror/data/safetensors.hpp>
#include <attmirror/deep/network.hpp>

#include <filesystem>
#include <memory>
#include <string>

namespace attmirror::deep {

// A tensor as an array of the data room and back: same numbers, same type (float64, float32, float16, bfloat16, signed
// integers, bytes, booleans; others throw Error, bad input). Arrays are copies on the CPU; tensors are new.
Array to_array(const at::Tensor& tensor);
at::Tensor to_tensor(const Array& array);

// The parameters by name, and the metadata.
Safetensors weights_of(const Network& network);
void save_weights(const std::filesystem::path& path, const Network& network);

// Copies into the network's parameters, on whatever device they are. Throws Error (bad input), naming the file `name`
// and the parameter, where one is missing, not asked for, or of another shape or type; then nothing is changed.
// Metadata are not looked at.
void load_weights(Network& network, const Safetensors& weights, const std::string& name);

// Builds the network that weights_of() described, with its weights, on the CPU. Throws Error (bad input), naming the
// file, for metadata that is missing, unknown or makes no sense, and as load_weights() does.
std::shared_ptr<Network> network_from(const Safetensors& weights, const std::string& name,
                                      at::ScalarType compute = at::kFloat);
std::shared_ptr<Network> load_network(const std::filesystem::path& path, at::ScalarType compute = at::kFloat);

}  // namespace attmirror::deep

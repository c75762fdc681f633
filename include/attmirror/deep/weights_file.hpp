// Weights of networks as safetensors files, by the names of their parameters, for other programs to read.
//
// The metadata say which network it is: "network.format" (1), "network.kind" ("encoder", "vit") and every
// option as "network.NAME". Files from other programs lack them, and files from later versions may have more:
// both are refused rather than guessed at. Metadata without the prefix "network." are left alone, so you may
// add your own.
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

// Copies into the network's parameters, on whatever device they are. Throws Error (bad input), naming the
// file `name` and the parameter, if one is missing, unexpected, or of another shape or type; then nothing is
// changed. Metadata are ignored.
void load_weights(Network& network, const Safetensors& weights, const std::string& name);

// Builds the network that weights_of() described, with its weights, on the CPU. Throws Error (bad input),
// naming the file, for metadata that are missing, unknown or invalid, and as load_weights() does.
std::shared_ptr<Network> network_from(const Safetensors& weights, const std::string& name,
                                      at::ScalarType compute = at::kFloat);
std::shared_ptr<Network> load_network(const std::filesystem::path& path, at::ScalarType compute = at::kFloat);

}  // namespace attmirror::deep

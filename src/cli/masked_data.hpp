// A dataset as --mask asks for it.
#pragma once

#include <attmirror/data/dataset.hpp>

#include <filesystem>

namespace attmirror::cli {

// The file as it is, or with a causal mask. A mask that does not go with the data is an error that names the file.
Dataset load_masked_dataset(const std::filesystem::path& path, Mask mask);

}  // namespace attmirror::cli

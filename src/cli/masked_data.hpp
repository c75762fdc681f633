// A dataset as --mask asks for it, and what there is to say of its file.
#pragma once

#include <attmirror/data/dataset.hpp>

#include <filesystem>
#include <optional>

namespace attmirror::cli {

// The file as it is, or with a causal mask. A mask that does not go with the data is an error that names the file; data
// that seem to be padded are warned of.
Dataset load_masked_dataset(const std::filesystem::path& path, Mask mask);

// warn() of what was found in the file, if anything. Without a finding, the file is looked through, and not kept.
void warn_of_padding(const std::filesystem::path& path, const std::optional<SuspectedPadding>& padding);
void warn_of_padding(const std::filesystem::path& path);

}  // namespace attmirror::cli

#include "cli/masked_data.hpp"

#include <attmirror/base/error.hpp>

#include <utility>

#include <fmt/format.h>

namespace attmirror::cli {

Dataset load_masked_dataset(const std::filesystem::path& path, Mask mask) {
  Dataset data = load_dataset(path);
  if (mask != Mask::causal) return data;
  try {
    return with_causal_mask(std::move(data));
  } catch (const Error& error) {
    throw error.in(fmt::format("{}: mask is causal", path.string()));
  }
}

}  // namespace attmirror::cli

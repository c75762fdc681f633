#include "cli/masked_data.hpp"

#include "cli/console.hpp"
#include "data/dataset_reader.hpp"
#include "data/padding.hpp"
#include <attmirror/base/error.hpp>

#include <utility>

#include <fmt/format.h>

namespace attmirror::cli {

void warn_of_padding(const std::filesystem::path& path, const std::optional<SuspectedPadding>& padding) {
  if (padding) warn(fmt::format("{}: {}", path.string(), to_string(*padding)));
}

void warn_of_padding(const std::filesystem::path& path) {
  const NpzReader file(path);
  const DatasetReader reader(file);
  if (reader.frame().lengths_given()) return;
  TrailingZeroRows zeros(reader.frame());
  reader.look_through([&](std::ptrdiff_t first, ConstMatrixView rows) { zeros.add(first, rows); });
  warn_of_padding(path, zeros.found());
}

Dataset load_masked_dataset(const std::filesystem::path& path, Mask mask) {
  Dataset data = load_dataset(path);
  warn_of_padding(path, suspected_padding(data));
  if (mask != Mask::causal) return data;
  try {
    return with_causal_mask(std::move(data));
  } catch (const Error& error) {
    throw error.in(fmt::format("{}: mask is causal", path.string()));
  }
}

}  // namespace attmirror::cli

// Named arrays in numpy's .npz format: a zip archive with one .npy file per array, stored or deflated.
//
// np.savez, np.savez_compressed and np.load read and write the same files. Archives may come from anywhere,
// so the reader checks what an archive says about itself before it allocates: a file of one kilobyte cannot
// ask for a terabyte.
#pragma once

#include <attmirror/data/array.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace attmirror {

// How large a file may be that is read. What exceeds a limit is refused before memory is taken for it.
struct NpzLimits {
  // All arrays of an archive together, inflated. 64 GiB is more than every data set of the papers and fits
  // into a big machine's memory; anything above it, by mistake or by attack, is refused at once instead of
  // driving the machine into swap.
  std::uint64_t max_bytes = std::uint64_t{64} << 30;

  void validate() const;
};

// Whether arrays of an .npz file are compressed.
enum class NpzCompression { stored, deflated };

// How an .npz file is written.
struct NpzOptions {
  // Trained weights and random data hardly compress, and stored entries are read at the speed of the disk;
  // deflate pays for masks, labels and one-hot tokens.
  NpzCompression compression = NpzCompression::stored;
};

// Reads all arrays; their names are those of the entries without ".npy". `name` is the name of the file in
// messages. Throws Error (bad input) for anything that is not a zip archive, is truncated or damaged, has two
// entries of the same name, is encrypted, uses a compression other than deflate, exceeds the limits, or has
// an entry that parse_npy() refuses.
NamedArrays parse_npz(std::span<const std::byte> file, std::string_view name, const NpzLimits& limits = {});
NamedArrays load_npz(const std::filesystem::path& path, const NpzLimits& limits = {});

// The bytes of a file. Equal arrays give equal bytes: entries are sorted by name and carry the zip epoch
// (1980-01-01) as their time.
std::vector<std::byte> format_npz(const NamedArrays& arrays, const NpzOptions& options = {});

// Writes atomically (base/atomic_file.hpp).
void save_npz(const std::filesystem::path& path, const NamedArrays& arrays, const NpzOptions& options = {});

}  // namespace attmirror

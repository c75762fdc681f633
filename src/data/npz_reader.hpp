// An .npz archive that is read array by array: what it lists is known at once, the numbers come when they are asked
// for, whole or in pieces. So whoever needs a look at a large file, or wants its numbers somewhere else, holds no more
// of it than a piece. Internal.
#pragma once

#include "data/npy_header.hpp"
#include <attmirror/data/npz.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

class NpzReader {
 public:
  struct Entry {
    std::uint64_t index = 0;
    std::uint64_t size = 0;  // of the .npy file, inflated
    std::string key;         // its name without ".npy"
  };

  // Reads the directory of the archive and checks what it claims; see npz.hpp for what is refused. A regular file stays
  // open until the end. Pipes are read whole.
  explicit NpzReader(const std::filesystem::path& path, const NpzLimits& limits = {});
  // The bytes must outlive the reader. `name` is what messages call the file.
  NpzReader(std::span<const std::byte> file, std::string_view name, const NpzLimits& limits);
  ~NpzReader();
  NpzReader(const NpzReader&) = delete;
  NpzReader& operator=(const NpzReader&) = delete;

  const std::string& name() const;
  const std::vector<Entry>& entries() const;  // in the order of the archive
  const Entry* find(std::string_view key) const;
  std::string called(const Entry& entry) const;  // "data.npz: entry 'X'"

  // What the array is, of which nothing but the beginning is read. Its size has been checked against the header.
  NpyHeader header(const Entry& entry) const;

  // The whole array. Takes no more memory than the array has, unless it is in Fortran order.
  Array read(const Entry& entry) const;

  // The numbers in C order, piece by piece: `use` gets the position of the first number of a piece, and the bytes of
  // whole rows of the last axis, or of whole numbers where a row is large. At the end the checksum has been compared.
  // (An array in Fortran order comes in one piece.)
  using UsePiece = std::function<void(std::size_t first, std::span<const std::byte> bytes)>;
  NpyHeader read_pieces(const Entry& entry, const UsePiece& use) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attmirror

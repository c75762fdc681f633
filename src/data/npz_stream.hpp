// An .npz archive whose arrays are made one after the other, each when its turn comes: a file of many gigabytes needs
// the memory of its largest array. Internal.
#pragma once

#include <attmirror/data/array.hpp>
#include <attmirror/data/npz.hpp>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace attmirror {

struct NpzEntry {
  std::string name;   // without ".npy"
  std::string descr;  // numpy's type: "<f8", "<i8", or "<U12" for texts of up to 12 letters in UCS-4
  std::size_t item_bytes = 8;
  Shape shape;
  std::function<std::vector<std::byte>()> make;  // the items in C order, as many as the shape says
  NpzCompression compression = NpzCompression::stored;
};

// Written atomically. Throws what `make` throws; Error (bad input) for two entries of one name or a path that is no
// regular file (an archive is not written from front to back); environment where the disk is full.
void save_npz_entries(const std::filesystem::path& path, const std::vector<NpzEntry>& entries);

}  // namespace attmirror

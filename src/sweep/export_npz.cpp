// Two passes over the database: the first finds out how wide, how long and how complete each column and array is, the
// second, driven by the archive, makes a block of columns or one stack of arrays at a time.
#include "base/utf8.hpp"
#include "data/npz_stream.hpp"
#include "sweep/export_target.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/sweep/export.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace attmirror {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

// Unicode's numbers of the letters of UTF-8 text; bytes that are none become U+FFFD.
std::u32string letters_of(std::string_view text) {
  std::u32string letters;
  letters.reserve(text.size());
  while (!text.empty()) {
    const Letter letter = first_letter(text);
    letters += letter.code;
    text.remove_prefix(letter.bytes);
  }
  return letters;
}

// What the first pass learns of a column.
struct ColumnExtent {
  RowColumn column;
  bool complete = true;
  std::size_t letters = 1;  // numpy has no type for texts of none
};

std::string type_of(const ColumnExtent& extent) {
  if (extent.column.type == CellType::text) return fmt::format("<U{}", extent.letters);
  return extent.column.type == CellType::integer && extent.complete ? "<i8" : "<f8";
}

std::size_t item_bytes(const ColumnExtent& extent) {
  return extent.column.type == CellType::text ? extent.letters * sizeof(char32_t) : sizeof(double);
}

void append_cell(std::vector<std::byte>& bytes, const Cell& cell, const ColumnExtent& extent) {
  const auto append = [&bytes](const void* data, std::size_t size) {
    const auto* begin = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), begin, begin + size);
  };
  const auto* whole = std::get_if<std::int64_t>(&cell);
  if (extent.column.type == CellType::text) {
    const auto* text = std::get_if<std::string>(&cell);
    std::u32string letters = text ? letters_of(*text) : std::u32string();
    letters.resize(extent.letters);
    append(letters.data(), letters.size() * sizeof(char32_t));
  } else if (whole && extent.complete && extent.column.type == CellType::integer) {
    append(whole, sizeof *whole);
  } else {
    const auto* real = std::get_if<double>(&cell);
    const double value = whole ? static_cast<double>(*whole) : real ? *real : nothing;
    append(&value, sizeof value);
  }
}

// Columns that are read together. A pass over the table costs the same for one as for all, so there are as many in a
// block as fit into memory with ease.
class ColumnBlock {
 public:
  static constexpr std::size_t most_bytes = std::size_t{256} << 20;

  ColumnBlock(const SweepDatabase& database, std::int64_t runs) : database_(database), runs_(runs) {}
  bool has_room_for(const ColumnExtent& extent) const {
    return extents_.empty() || bytes_ + bytes_of(extent) <= most_bytes;
  }
  std::size_t add(const ColumnExtent& extent) {
    bytes_ += bytes_of(extent);
    extents_.push_back(extent);
    return extents_.size() - 1;
  }
  // Hands a column out; it is gone from here then.
  std::vector<std::byte> take(std::size_t index) {
    if (columns_.empty()) load();
    std::vector<std::byte> column = std::move(columns_[index]);
    if (++taken_ == extents_.size()) columns_.clear();
    return column;
  }

 private:
  std::size_t bytes_of(const ColumnExtent& extent) const {
    return static_cast<std::size_t>(runs_) * item_bytes(extent);
  }
  void load() {
    std::vector<std::string> names;
    columns_.resize(extents_.size());
    for (std::size_t i = 0; i < extents_.size(); ++i) {
      names.push_back(extents_[i].column.name);
      columns_[i].reserve(bytes_of(extents_[i]));
    }
    database_.for_each_run(names, [&](std::span<const Cell> cells) {
      for (std::size_t i = 0; i < cells.size(); ++i) append_cell(columns_[i], cells[i], extents_[i]);
    });
  }

  const SweepDatabase& database_;
  std::int64_t runs_;
  std::vector<ColumnExtent> extents_;
  std::vector<std::vector<std::byte>> columns_;
  std::size_t bytes_ = 0, taken_ = 0;
};

std::vector<NpzEntry> column_entries(const SweepDatabase& database, const std::vector<ColumnExtent>& extents,
                                     std::int64_t runs) {
  std::vector<NpzEntry> entries;
  std::shared_ptr<ColumnBlock> block;
  for (const ColumnExtent& extent : extents) {
    if (!block || !block->has_room_for(extent)) block = std::make_shared<ColumnBlock>(database, runs);
    NpzEntry entry;
    entry.name = extent.column.name;
    entry.descr = type_of(extent);
    entry.item_bytes = item_bytes(extent);
    entry.shape = {runs};
    entry.make = [block, index = block->add(extent)] { return block->take(index); };
    if (extent.column.type == CellType::text) entry.compression = NpzCompression::deflated;
    entries.push_back(std::move(entry));
  }
  return entries;
}

// The smallest shape that all of them fit into.
Shape common_shape(const std::string& name, const std::vector<Shape>& shapes) {
  Shape common = shapes.front();
  for (const Shape& shape : shapes) {
    if (common.size() != shape.size())
      throw bad_input(
          fmt::format("array \"{}\" has {} axes in some runs and {} in others: they cannot be stacked", name,
                      std::min(common.size(), shape.size()), std::max(common.size(), shape.size())));
    for (std::size_t axis = 0; axis < common.size(); ++axis)
      common[axis] = std::max(common[axis], shape[axis]);
  }
  return common;
}

// Copies an array into the corner of a larger one, both row by row.
void copy_corner(const RowArray& from, const Shape& shape, double* to) {
  if (from.values.empty()) return;
  const std::size_t axes = shape.size();
  if (axes == 0 || from.shape == shape) {
    std::copy(from.values.begin(), from.values.end(), to);
    return;
  }
  const auto length = static_cast<std::size_t>(from.shape[axes - 1]);
  Shape index(axes, 0);
  for (std::size_t at = 0; at < from.values.size(); at += length) {
    std::int64_t place = 0;
    for (std::size_t axis = 0; axis < axes; ++axis) place = place * shape[axis] + index[axis];
    std::copy_n(from.values.begin() + static_cast<std::ptrdiff_t>(at), length, to + place);
    for (std::size_t axis = axes - 1; axis-- > 0;) {
      if (++index[axis] < from.shape[axis]) break;
      index[axis] = 0;
    }
  }
}

// Weights are W, K, Q, p and v, of the run itself or of something in it ("path.W", "svm.W"); another array of one axis
// goes along the records.
bool is_curve(const std::string& name, const Shape& shape) {
  const std::string last = name.substr(name.rfind('.') + 1);
  static const std::set<std::string> weights{"W", "K", "Q", "p", "v"};
  return shape.size() == 1 && !weights.contains(last);
}

NpzEntry array_entry(const SweepDatabase& database, const std::string& name, const Shape& shape,
                     std::int64_t runs) {
  NpzEntry entry;
  entry.name = (is_curve(name, shape) ? "curve." : "array.") + name;
  entry.descr = "<f8";
  entry.shape = shape;
  entry.shape.insert(entry.shape.begin(), runs);
  element_count(entry.shape, DType::float64, name);
  const std::size_t volume = element_count(shape, DType::float64, name);
  entry.make = [&database, name, shape, volume, runs] {
    std::vector<std::byte> bytes(static_cast<std::size_t>(runs) * volume * sizeof(double));
    std::vector<double> one(volume);
    std::size_t at = 0;
    database.for_each_array(name, [&](const std::optional<RowArray>& array) {
      std::fill(one.begin(), one.end(), nothing);
      if (array) copy_corner(*array, shape, one.data());
      if (volume > 0) std::memcpy(bytes.data() + at, one.data(), volume * sizeof(double));
      at += volume * sizeof(double);
    });
    return bytes;
  };
  return entry;
}

}  // namespace

void export_npz(const SweepDatabase& database, const std::filesystem::path& path) {
  check_export_target(database, path);
  const SweepDatabase::Snapshot snapshot(database);
  std::vector<ColumnExtent> extents;
  std::vector<std::string> names;
  for (const auto& column : database.columns()) {
    if (column.name == "config") continue;  // JSON of a thousand letters, four bytes each
    extents.push_back({column});
    names.push_back(column.name);
  }
  std::int64_t runs = 0;
  database.for_each_run(names, [&](std::span<const Cell> cells) {
    ++runs;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (std::holds_alternative<std::monostate>(cells[i])) extents[i].complete = false;
      if (const auto* text = std::get_if<std::string>(&cells[i]))
        extents[i].letters = std::max(extents[i].letters, letters_of(*text).size());
    }
  });

  std::vector<NpzEntry> entries = column_entries(database, extents, runs);
  for (const auto& [name, shapes] : database.array_shapes())
    entries.push_back(array_entry(database, name, common_shape(name, shapes), runs));
  save_npz_entries(path, entries);
}

}  // namespace attmirror

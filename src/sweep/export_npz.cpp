// Two passes over the database: the first finds out how wide, how long and how complete each column and array is, the
// second, driven by the archive, makes one array at a time.
#include "data/npz_stream.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/sweep/export.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace attmirror {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

// Unicode's numbers of the letters of UTF-8 text; bytes that are none become U+FFFD.
std::u32string letters_of(const std::string& text) {
  std::u32string letters;
  letters.reserve(text.size());
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char lead = byte(i);
    const std::size_t length = lead < 0x80 ? 1 : lead >= 0xF0 && lead < 0xF5 ? 4 : lead >= 0xE0 ? 3 : 2;
    bool whole = (lead < 0x80 || (lead >= 0xC2 && lead < 0xF5)) && i + length <= text.size();
    char32_t code = length == 1 ? lead : lead & (0xFFu >> (length + 1));
    for (std::size_t k = 1; whole && k < length; ++k) {
      whole = (byte(i + k) & 0xC0) == 0x80;
      code = (code << 6) | (byte(i + k) & 0x3Fu);
    }
    // Longer than need be, halves of UTF-16 pairs, and beyond Unicode: numpy would refuse to read them.
    constexpr std::array<char32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
    whole = whole && code >= least[length] && !(code >= 0xD800 && code < 0xE000) && code <= 0x10FFFF;
    letters += whole ? code : char32_t{0xFFFD};
    i += whole ? length : 1;
  }
  return letters;
}

// What the first pass learns of a column.
struct ColumnExtent {
  RowColumn column;
  bool complete = true;
  std::size_t letters = 1;  // numpy has no type for texts of none
};

class ByteSink {
 public:
  explicit ByteSink(std::size_t bytes) { bytes_.reserve(bytes); }
  template <class T>
  void put(const T& value) {
    const auto raw = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }
  void fill(std::size_t bytes) { bytes_.resize(bytes_.size() + bytes); }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

NpzEntry column_entry(const SweepDatabase& database, const ColumnExtent& extent, std::int64_t runs) {
  NpzEntry entry;
  entry.name = extent.column.name;
  entry.shape = {runs};
  const auto scan = [&database, name = extent.column.name](auto visit) {
    database.for_each_run(std::span(&name, 1), [&](std::span<const Cell> cells) { visit(cells[0]); });
  };
  const auto count = static_cast<std::size_t>(runs);
  if (extent.column.type == CellType::text) {
    const std::size_t letters = extent.letters;
    entry.descr = fmt::format("<U{}", letters);
    entry.item_bytes = letters * sizeof(char32_t);
    entry.compression = NpzCompression::deflated;
    entry.make = [=] {
      ByteSink sink(count * letters * sizeof(char32_t));
      scan([&](const Cell& cell) {
        const auto* text = std::get_if<std::string>(&cell);
        const std::u32string code = text ? letters_of(*text) : std::u32string();
        for (const char32_t letter : code) sink.put(letter);
        sink.fill((letters - code.size()) * sizeof(char32_t));
      });
      return sink.take();
    };
  } else if (extent.column.type == CellType::integer && extent.complete) {
    entry.descr = "<i8";
    entry.make = [=] {
      ByteSink sink(count * sizeof(std::int64_t));
      scan([&](const Cell& cell) { sink.put(std::get<std::int64_t>(cell)); });
      return sink.take();
    };
  } else {
    entry.descr = "<f8";
    entry.make = [=] {
      ByteSink sink(count * sizeof(double));
      scan([&](const Cell& cell) {
        const auto* whole = std::get_if<std::int64_t>(&cell);
        const auto* real = std::get_if<double>(&cell);
        sink.put(whole ? static_cast<double>(*whole) : real ? *real : nothing);
      });
      return sink.take();
    };
  }
  return entry;
}

// The smallest shape that all arrays of this name fit into.
Shape common_shape(const SweepDatabase& database, const std::string& name) {
  std::optional<Shape> common;
  database.for_each_array(name, [&](const std::optional<RowArray>& array) {
    if (!array) return;
    if (!common) common = array->shape;
    if (common->size() != array->shape.size())
      throw bad_input(
          fmt::format("array \"{}\" has {} axes in some runs and {} in others: they cannot be stacked", name,
                      common->size(), array->shape.size()));
    for (std::size_t axis = 0; axis < common->size(); ++axis)
      (*common)[axis] = std::max((*common)[axis], array->shape[axis]);
  });
  return common.value_or(Shape{});
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

NpzEntry array_entry(const SweepDatabase& database, const std::string& name, std::int64_t runs) {
  const Shape shape = common_shape(database, name);
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

  std::vector<NpzEntry> entries;
  for (const auto& extent : extents) entries.push_back(column_entry(database, extent, runs));
  for (const auto& name : database.array_names()) entries.push_back(array_entry(database, name, runs));
  save_npz_entries(path, entries);
}

}  // namespace attmirror
